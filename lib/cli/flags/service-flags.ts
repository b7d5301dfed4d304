export interface ApplyOptions {
  readonly wait?: boolean;
}

export interface ServiceLogsOptions {
  readonly replica?: number;
  readonly stderr?: boolean;
  readonly follow?: boolean;
}

export interface LoadFlags {
  readonly trace?: string;
  /** Mean requests per second. */
  readonly rate?: number;
  /** Seconds on the wall. */
  readonly for?: number;
  readonly speed?: number;
  readonly path: string;
  readonly seed: number;
}
