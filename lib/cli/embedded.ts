import type { SchedulerConfig } from '../domain/config.ts';
import type { BatchClient } from './client.ts';

/** What `run` and `up` ask of an engine in this process; composed in compose.ts. */
export interface EmbeddedOptions {
  /** Absolute. Holds the database, logs, checkpoints and the lock. */
  readonly dir: string;
  /** Absolute path of a market, or null for the generated one. */
  readonly market: string | null;
  /** Epoch ms of market time at which a new directory begins; null: the market's start. */
  readonly fromMs: number | null;
  readonly speed: number;
  readonly seed: number;
  readonly preset: string | null;
  readonly config: Partial<SchedulerConfig>;
  /** Absolute path to write each plan's model to, or null. */
  readonly dumpModel: string | null;
}

/**
 * drained: nothing is left to do, give everything back. checkpoint: tasks are asked to save, then instances are given
 * back; the directory can be resumed. at-once: end tasks and instances without waiting for anybody.
 */
export type StopManner = 'drained' | 'checkpoint' | 'at-once';

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
