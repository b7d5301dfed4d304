/**
 * Learners: what folds events into beliefs that forecasts and policies rest on. A learner is told of each event once,
 * in the order in which its cycle took it in, and stored in the same commit as that event, so that nothing counts twice
 * after a crash.
 *
 * All registered learners learn always, whatever the preset reads: a preset that is chosen later finds what happened
 * before it.
 */
import type { PoolId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { Instance } from '../domain/instance.ts';
import type { Attempt, AttemptOutcome, Job, StageSpec, Usage } from '../domain/job.ts';
import type { RefusedWhy } from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';

/**
 * An attempt ended. Told of attempts that an instance reported, or that ended with their instance; not of a start that
 * never reached one. `instance`, `pool` and `neighbours` are worked out when they are read, and only while `observe`
 * runs: a learner keeps values, never the event.
 */
export interface AttemptEnded {
  readonly kind: 'attempt-ended';
  readonly atMs: EpochMs;
  readonly outcome: AttemptOutcome;
  readonly job: Job;
  readonly stage: StageSpec;
  /** As it ended. `index`, `number`, `resources`, `startedMs` (null: its process never started), `keptS` are here. */
  readonly attempt: Attempt;
  /** Running time of the whole task, over all of its attempts, on reference speed. Null unless it succeeded. */
  readonly runtimeS: Seconds | null;
  readonly instance: Instance;
  readonly pool: Pool;
  /**
   * Other attempts whose processes ran on the instance when this one ended; of each the time it started, so that the
   * time together is known. Each pair that ran together is told with the one that ends first, or with both where they
   * end at once. Empty for an attempt whose process never started. O(attempts on the instance).
   */
  readonly neighbours: readonly Attempt[];
  /** Null where the driver does not measure it. */
  readonly usage: Usage | null;
}

/** An instance ended and its bill is known. */
export interface InstanceEnded {
  readonly kind: 'instance-ended';
  readonly instance: Instance;
  readonly pool: Pool;
  /** Null: it was never up. */
  readonly launchedMs: EpochMs | null;
  readonly endedMs: EpochMs;
  /** When the market took it for want of capacity: its notice, which comes before its end. Null: it did not. */
  readonly takenMs: EpochMs | null;
}

export interface LaunchRefused {
  readonly kind: 'launch-refused';
  readonly atMs: EpochMs;
  readonly poolId: PoolId;
  readonly why: RefusedWhy;
}

export type LearningEvent = AttemptEnded | InstanceEnded | LaunchRefused;
export type LearningEventKind = LearningEvent['kind'];

/**
 * One learner. Lifecycle: `restore` what a store kept, then `observe`; `takeDirty` hands out rows for the commit of
 * what was observed. One owner, no concurrency. What `belief` returns stays valid for the learner's life and reflects
 * all that was observed since.
 */
export interface Learner<Belief> {
  readonly name: string;
  /** What it learns, one sentence. */
  readonly about: string;
  /** Paper and section, or measurement. */
  readonly source: string;
  /** Key prefix of its rows, ending in `/`: no other rows begin so. */
  readonly prefix: string;
  /** The events that it is told of. */
  readonly learnsFrom: readonly LearningEventKind[];
  /**
   * Takes in one event. What it costs must not grow with the job or with what was learned before. An error is reported
   * and stops nobody: to throw, leave the state as it was.
   */
  observe(event: LearningEvent): void;
  belief(): Belief;
  /** Rows that changed since the last call. An empty row stands for one that is no more. O(rows that changed). */
  takeDirty(): ReadonlyMap<string, string>;
  /**
   * Forgets everything, also what was observed and not stored, and takes over these rows, empty ones among them. Throws
   * `store.corrupt` for rows that it cannot do without. Reads the rows of each earlier version.
   */
  restore(rows: ReadonlyMap<string, string>): void;
}

export interface LearnerTerms {
  /**
   * False: nothing is stored and `takeDirty` is never called, as in a simulation. A log of what is to be stored would
   * only grow.
   */
  readonly isKept: boolean;
}

/** Makes a learner; also the key under which its belief is asked for. */
export type LearnerFactory<Belief = unknown> = (terms: LearnerTerms) => Learner<Belief>;

/** What was learned, by who learned it. Throws `internal` for a learner that is not registered. */
export interface Beliefs {
  of<Belief>(learner: LearnerFactory<Belief>): Belief;
}
