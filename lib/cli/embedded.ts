import type { StopManner } from '../local/engine.ts';
import type { BatchClient } from './client.ts';

/** The engine of this process as `run` and `up` see it; composed in compose.ts. */
export interface Embedded {
  readonly client: BatchClient;
  start(): Promise<void>;
  /** Rejects when the engine gives up; never resolves. */
  readonly failed: Promise<never>;
  /** Serves the API; resolves to its URL. Throws `port-in-use`. */
  listen(at: { readonly bind: string; readonly port: number; readonly token: string | null }): Promise<string>;
  /** Resolves when nothing is left running. A second call with a harder manner overtakes the first. */
  stop(manner: StopManner): Promise<void>;
}
