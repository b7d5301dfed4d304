import type { StartRequest } from '../../../ports/fleet.ts';
import type { AttemptId, InstanceId } from '../../../kernel/ids.ts';
import type { Quantity } from '../../../kernel/units.ts';
import type { Observation } from '../../../domain/observation.ts';

/** Types of the messages between engine and supervisor. Types only: the supervisor loads nothing for them. */

/** Limits and waits of a local fleet that are the operator's to choose; wall seconds unless the name says otherwise. */
export interface SupervisorLimits {
  /** Bytes kept per log; later output is dropped and counted in a marker. */
  readonly logBytes: number;
  /**
   * Least wall time between an interruption notice and SIGKILL. A market at 600 times the wall would leave 0.2 s, and
   * real processes cannot save their state in that. The bill ends when the market says, not later.
   */
  readonly warningFloorS: number;
  /** Time from SIGTERM to SIGKILL. */
  readonly killAfterS: number;
  /** A supervisor without tasks ends when the engine has not been seen for so long. */
  readonly orphanAfterS: number;
}

/**
 * Engine time for a process of the same boot: `engineMs` was now when the machine's monotonic clock read `monotonicMs`.
 */
export interface SharedClock {
  readonly monotonicMs: number;
  readonly engineMs: number;
  readonly speed: number;
}

/** The market's answer to a launch, written before anything is started: asking again reads it. Times are engine ms. */
export type InstanceSpec = {
  readonly version: 1;
  readonly instance: string;
  readonly key: string;
  readonly pool: string;
  readonly bid: number | 'uncapped';
} & (
  | {
      readonly status: 'refused';
      readonly why: 'insufficient-capacity' | 'bid-below-price' | 'unsupported';
      readonly detail: string;
    }
  | {
      readonly status: 'launched';
      readonly launchedMs: number;
      readonly readyMs: number;
      readonly rebalanceMs: number | null;
      /** Time of its interruption; null: never. */
      readonly interruption: { readonly warnMs: number; readonly goneMs: number; readonly cause: string } | null;
      readonly clock: SharedClock;
      readonly limits: SupervisorLimits;
    }
);
export type LaunchedSpec = Extract<InstanceSpec, { status: 'launched' }>;

export type StopReason = 'interrupted' | 'preempted' | 'cancelled' | 'timed-out' | 'superseded';

/** Quantities are plain numbers in files: seconds and MiB as in the request. */
export type StartCommand = { readonly do: 'start' } & Pick<
  StartRequest,
  'key' | 'command' | 'env' | 'secrets' | 'workdir' | 'inputs' | 'outputs' | 'task' | 'role'
> & {
    readonly attempt: string;
    readonly timeoutS: number | null;
    /** Most memory that its processes may use together; null, or absent in orders of earlier versions: no limit. */
    readonly memoryMib?: number | null;
    /** vCPUs that it asked for; absent in orders of earlier versions. */
    readonly milliCpu?: number;
    readonly checkpoint: { readonly signal: NodeJS.Signals; readonly graceS: number } | null;
  };
export type Command =
  | StartCommand
  | {
      readonly do: 'stop';
      readonly key: string;
      readonly attempt: string;
      readonly why: StopReason;
      /** Target of a move; absent: none, also in orders of earlier versions. */
      readonly to?: string;
    }
  | { readonly do: 'release'; readonly key: string };

/** The same in plain numbers and strings, as in JSON. */
type Plain<T> =
  T extends Quantity<string>
    ? number
    : T extends string
      ? string extends T
        ? string
        : T extends AttemptId | InstanceId
          ? string
          : T
      : T extends object
        ? { readonly [K in keyof T]: Plain<T[K]> }
        : T;

/** An observation without the parts that the journal adds or implies. */
export type Fact = Observation extends infer O
  ? O extends Observation
    ? Plain<Omit<O, 'instance' | 'sequence'>>
    : never
  : never;

/**
 * One line of a journal: an observation (has a sequence), or the receipt of a command. The receipt comes before the
 * command's file is removed, so a command sent again after a crash is known to have arrived.
 */
export type JournalLine =
  | ({ readonly sequence: number } & Fact)
  | { readonly taken: string; readonly attempt: string | null; readonly checkpointDir: string | null };
