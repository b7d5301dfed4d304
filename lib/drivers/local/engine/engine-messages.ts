import type { ErrorCode, ErrorFacts } from '../../../kernel/errors.ts';
import type { CycleStep } from '../../../cycle/engine.ts';
import type { DiskState } from '../../../domain/disk-budget.ts';

/** What the engine's thread is started with; the rest it reads from the directory's world. */
export interface EngineThreadData {
  readonly dir: string;
  readonly database: string;
  readonly dumpModel: string | null;
  /** Why the engine that this one replaces was ended; null: there was none. Its first decision is made in trials. */
  readonly replaces: string | null;
  /** Nothing starts any more, as after `drain`. */
  readonly isDraining: boolean;
  /** Signs of life of the main thread, which is watched over (main-watch.ts); null: it is not. */
  readonly beats: SharedArrayBuffer | null;
  /** Null: not measured yet. */
  readonly disk: DiskState | null;
}

/**
 * wake: there may be something to do; drain: stop tasks, give back instances, then end; end: end now, leave all as it
 * is; disk: its level is another.
 */
export type ToEngine =
  | { readonly do: 'wake' }
  | { readonly do: 'disk'; readonly disk: DiskState }
  | { readonly do: 'drain' }
  | { readonly do: 'end' };

export type FromEngine =
  | { readonly is: 'ready' }
  /** Where the cycle is now: a sign of life. */
  | { readonly is: 'step'; readonly step: CycleStep }
  /** `idle`: nothing is left to do until the next wake. */
  | { readonly is: 'cycle'; readonly atMs: number; readonly live: number; readonly idle: boolean }
  | { readonly is: 'fault'; readonly text: string }
  /** Something went wrong beside the cycle, which is not the worse for it. */
  | { readonly is: 'remark'; readonly text: string }
  /** The main thread hung for so long; what it executed was ended. */
  | { readonly is: 'interrupted'; readonly afterS: number }
  /** It ends with this error; an error that crosses threads by itself loses its class. */
  | { readonly is: 'gave-up'; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | { readonly is: 'ended' };
