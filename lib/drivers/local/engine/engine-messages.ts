import type { ErrorCode, ErrorFacts } from '../../../kernel/errors.ts';
import type { CycleStep } from '../../../cycle/engine.ts';
import type { DiskState } from '../../../domain/disk-budget.ts';

/** Start data of the engine's thread; it reads everything else from the directory's world. */
export interface EngineThreadData {
  readonly dir: string;
  readonly database: string;
  readonly dumpModel: string | null;
  /** Why the engine that this one replaces was ended; null: there was none. Its first decision is made in trials. */
  readonly replaces: string | null;
  /** Nothing starts any more, as after `drain`. */
  readonly isDraining: boolean;
  /** Signs of life of the watched main thread (main-watch.ts); null: it is not watched. */
  readonly beats: SharedArrayBuffer | null;
  /** Null: not measured yet. */
  readonly disk: DiskState | null;
}

/**
 * wake: there may be something to do; drain: stop tasks, release instances, then end; end: end now, leave all as it is;
 * disk: its level has changed.
 */
export type ToEngine =
  | { readonly do: 'wake' }
  | { readonly do: 'disk'; readonly disk: DiskState }
  | { readonly do: 'drain' }
  | { readonly do: 'end' };

export type FromEngine =
  | { readonly is: 'ready' }
  /** Present step of the cycle: a sign of life. */
  | { readonly is: 'step'; readonly step: CycleStep }
  /** `idle`: nothing is left to do until the next wake. */
  | { readonly is: 'cycle'; readonly atMs: number; readonly live: number; readonly idle: boolean }
  | { readonly is: 'fault'; readonly text: string }
  /** Something went wrong beside the cycle, which is not the worse for it. */
  | { readonly is: 'remark'; readonly text: string }
  /** The main thread hung for this long; its call was ended. */
  | { readonly is: 'interrupted'; readonly afterS: number }
  /** The thread ends with this error; as an object it would lose its class between threads. */
  | { readonly is: 'gave-up'; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | { readonly is: 'ended' };
