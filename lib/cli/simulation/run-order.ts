import type { Stragglers } from '../../drivers/sim/stragglers.ts';
import type { SimulatedService } from '../../drivers/sim/services/sim-traffic.ts';
import { EbbError, type ErrorCode, type ErrorFacts } from '../../kernel/errors.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { WorkloadOptions } from '../../workload/options.ts';
import type { WorkloadReport } from '../../workload/workload.ts';
import type { RunOutcome } from '../../report/outcome.ts';

/** Order of one simulation: all data from which a thread composes it. */
export interface RunOrder {
  readonly preset: string;
  readonly seed: number;
  /** Source of jobs: a workload, or the directory of an engine; null: no jobs, services alone. */
  readonly workload: { readonly path: string; readonly options: WorkloadOptions } | { readonly replay: string } | null;
  /** Absent: none. */
  readonly services?: readonly SimulatedService[];
  /** Absolute path; null: the generated market of `marketSeed`. */
  readonly market: string | null;
  /** Machines of the user's own (lib/market/cluster.ts), beside the market or, without one, alone. Absent: none. */
  readonly cluster?: string;
  readonly marketSeed: number;
  /** True if each seed generates a market of its own. */
  readonly ownMarkets: boolean;
  /** Directory of an engine, with its models. */
  readonly dir: string;
  /** Cache of converted markets. */
  readonly cache: string;
  /** Start, epoch ms; null: the first recorded submission. */
  readonly fromMs: number | null;
  /** End, epoch ms; null: the end of the market. */
  readonly toMs: number | null;
  readonly config: Partial<SchedulerConfig>;
  readonly vcpus: number;
  readonly minGapS: number;
  readonly setupS: number;
  /** Megabytes of a task's memory that a move transfers per second. Absent: the default of the setting. */
  readonly migrationMBPerS?: number;
  /** Attempts that take longer than others. Absent: every attempt takes the time of the workload. */
  readonly stragglers?: Stragglers;
  /** True: the outcome has the on-demand reference and the lower bound. They take up to half as long as a fast run. */
  readonly references: boolean;
  /** Log file with a JSON line per event; null: none. */
  readonly log: string | null;
}

/** Messages of a simulation's thread. */
export type FromRun =
  | {
      readonly is: 'progress';
      readonly nowMs: number;
      readonly fromMs: number;
      readonly toMs: number;
      readonly steps: number;
      readonly submitted: number;
      readonly arrived: number;
      /** Upper bound of jobs of the workload; null: unknown before it is read. */
      readonly mostJobs: number | null;
    }
  | { readonly is: 'done'; readonly result: RunResult }
  | { readonly is: 'failed'; readonly error: PlainError };
/** Message that stops the simulation at its present time. */
export interface ToRun {
  readonly why: string;
}

export interface RunResult {
  readonly outcome: RunOutcome;
  readonly workload: WorkloadFacts;
  /** Assumptions of the market's import, and its billing. */
  readonly marketNotes: readonly string[];
  /** Wall time, s. */
  readonly tookS: number;
}

export interface WorkloadFacts {
  readonly name: string;
  readonly format: string;
  readonly notes: readonly string[];
  readonly report: WorkloadReport;
}

/** Error as data: errors lose their class between threads. */
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
