import type { StopManner } from '../drivers/local/engine/local-engine.ts';
import type { TlsFiles } from '../api/server/tls.ts';
import type { BatchClient } from './client.ts';

export interface Listening {
  readonly bind: string;
  readonly port: number;
  readonly token: string | null;
  /** TLS files; null: plain HTTP. */
  readonly tls: TlsFiles | null;
}

/** Engine of this process as `run` and `up` see it (compose.ts). */
export interface Embedded {
  readonly client: BatchClient;
  start(): Promise<void>;
  /** Rejects when the engine fails; never resolves. */
  readonly failed: Promise<never>;
  /** Serves the API; resolves to its URL. Throws `port-in-use`. */
  listen(at: Listening): Promise<string>;
  /** Resolves when nothing runs any more. A second call with a harder manner replaces the first. */
  stop(manner: StopManner): Promise<void>;
}
