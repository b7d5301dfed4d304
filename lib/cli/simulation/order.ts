import { EbbError, type ErrorCode, type ErrorFacts } from '../../kernel/errors.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { WorkloadOptions } from '../../workload/options.ts';
import type { WorkloadReport } from '../../workload/workload.ts';
import type { RunOutcome } from '../../report/outcome.ts';

/** One simulation as data: all that a thread needs to compose it. */
export interface RunOrder {
  readonly preset: string;
  readonly seed: number;
  /** Where jobs come from: what the user named, or a directory that an engine left behind. */
  readonly workload: { readonly path: string; readonly options: WorkloadOptions } | { readonly replay: string };
  /** Absolute path; null: the generated market of `marketSeed`. */
  readonly market: string | null;
  readonly marketSeed: number;
  /** Whether each seed has a generated market of its own. */
  readonly ownMarkets: boolean;
  /** An engine's directory, whose own models may be asked. */
  readonly dir: string;
  /** Where converted markets are kept. */
  readonly cache: string;
  /** Epoch ms; null: when the first recorded job was submitted. */
  readonly fromMs: number | null;
  /** Epoch ms; null: at the end of the market. */
  readonly toMs: number | null;
  readonly config: Partial<SchedulerConfig>;
  readonly vcpus: number;
  readonly minGapS: number;
  readonly setupS: number;
  /** File that gets every event as a JSON line; null: none. */
  readonly log: string | null;
}

/** What a thread sends back. */
export type FromRun =
  | {
      readonly is: 'progress';
      readonly nowMs: number;
      readonly fromMs: number;
      readonly toMs: number;
      readonly steps: number;
      readonly submitted: number;
      readonly arrived: number;
      /** Of the workload; null: not known before it is read to its end. */
      readonly mostJobs: number | null;
    }
  | { readonly is: 'done'; readonly result: RunResult }
  | { readonly is: 'failed'; readonly error: PlainError };
/** Ends the simulation where it stands. */
export interface ToRun {
  readonly why: string;
}

export interface RunResult {
  readonly outcome: RunOutcome;
  readonly workload: WorkloadFacts;
  /** What was assumed when the market was imported, and how it is billed. */
  readonly marketNotes: readonly string[];
  /** Real time, s. */
  readonly tookS: number;
}

export interface WorkloadFacts {
  readonly name: string;
  readonly format: string;
  readonly notes: readonly string[];
  readonly report: WorkloadReport;
}

/** Errors lose their class on the way between threads. */
export interface PlainError {
  readonly known: { readonly code: ErrorCode; readonly facts: ErrorFacts } | null;
  readonly message: string;
  readonly stack: string | undefined;
}

export function plainError(error: unknown): PlainError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  if (!(error instanceof EbbError)) return { known: null, message, stack };
  const { cause: _, ...facts } = error.facts;
  return { known: { code: error.code, facts }, message, stack };
}

export function thrownAgain({ known, message, stack }: PlainError): Error {
  if (known !== null) return new EbbError(known.code, known.facts);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
