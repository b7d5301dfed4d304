export interface SubmitOptions {
  readonly key?: string;
  readonly keepGoing?: boolean;
}

export interface JobsOptions {
  readonly state?: readonly string[];
  readonly owner?: string;
  readonly name?: string;
  readonly label?: string;
  readonly limit: number;
}

export interface LogsOptions {
  readonly task: number;
  readonly stage?: string;
  readonly attempt?: number;
  readonly stderr?: boolean;
  readonly follow?: boolean;
}

export interface StatusOptions {
  readonly tasks?: boolean;
}
