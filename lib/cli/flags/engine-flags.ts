/** Options of an engine in this process: `run` and `up`. */
export interface EngineOptions {
  readonly market?: string;
  readonly cluster?: string;
  /** Epoch ms. */
  readonly from?: number;
  readonly speed?: number;
  readonly seed?: number;
  readonly dir: string;
  readonly preset?: string;
  readonly vcpus?: number;
  /** Bytes. */
  readonly disk?: number;
  /** Path of a file. */
  readonly settings?: string;
  readonly set?: Readonly<Record<string, unknown>>;
  /** Path of a file. */
  readonly neighbours?: string;
}

export interface RunOptions extends EngineOptions {
  readonly resume?: boolean;
  readonly dumpModel?: string;
}

export interface UpOptions extends EngineOptions {
  readonly bind: string;
  readonly port: number;
  /** False: --no-token. */
  readonly token: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}
