export interface ApplyOptions {
  readonly wait?: boolean;
}

export interface ServiceLogsOptions {
  readonly replica?: number;
  readonly stderr?: boolean;
  readonly follow?: boolean;
}
