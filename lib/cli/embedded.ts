import type { StopManner } from '../drivers/local/engine/local-engine.ts';
import type { TlsFiles } from '../api/server/tls.ts';
import type { BatchClient } from './client.ts';

export interface Listening {
  readonly bind: string;
  readonly port: number;
  readonly token: string | null;
  /** Null: plain HTTP. */
  readonly tls: TlsFiles | null;
}

/** The engine of this process as `run` and `up` see it; composed in compose.ts. */
export interface Embedded {
  readonly client: BatchClient;
  start(): Promise<void>;
  /** Rejects when the engine gives up; never resolves. */
  readonly failed: Promise<never>;
  /** Serves the API; resolves to its URL. Throws `port-in-use`. */
  listen(at: Listening): Promise<string>;
  /** Resolves when nothing is left running. A second call with a harder manner overtakes the first. */
  stop(manner: StopManner): Promise<void>;
}
