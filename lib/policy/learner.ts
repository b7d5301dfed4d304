/**
 * Learners fold events into beliefs, the base of forecasts and policies. A learner is told of each event once, in the
 * order of its cycle, and stored in the same commit as that event, so that nothing counts twice after a crash.
 * All registered learners (lib/stages/learners.ts) always learn, whatever the preset reads: a preset chosen later finds
 * the earlier events. Beliefs are another matter: a decision recalls those that the preset's policies declare, and no
 * policy can read others.
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
  /**
   * The ended attempt. `index`, `number`, `resources`, `startedMs` (null: its process never started), `keptS` are here.
   */
  readonly attempt: Attempt;
  /** Running time of the whole task, over all of its attempts, on reference speed. Null unless it succeeded. */
  readonly runtimeS: Seconds | null;
  readonly instance: Instance;
  readonly pool: Pool;
  /**
   * Other attempts with a running process on the instance when this one ended; their start times give the time
   * together. Each pair is told with the one that ends first, or with both if they end at once. Empty for an attempt
   * whose process never started. O(attempts on the instance).
   */
  readonly neighbours: readonly { readonly attempt: Attempt; readonly job: Job }[];
  /** Null where the driver does not measure it. */
  readonly usage: Usage | null;
  /** Its running time over that beside the usual neighbours, as far as these are known to matter. Absent: 1. */
  readonly slowed?: number;
}

/** An instance ended and its bill is known. */
export interface InstanceEnded {
  readonly kind: 'instance-ended';
  readonly instance: Instance;
  readonly pool: Pool;
  /** Null: it was never up. */
  readonly launchedMs: EpochMs | null;
  readonly endedMs: EpochMs;
  /** Time of the notice of an interruption for lack of capacity. Null: there was none. */
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
 * One learner. Lifecycle: `restore` stored rows, then `observe`; `takeDirty` hands out changed rows for the commit of
 * the observed events. One owner, no concurrency. The result of `belief` stays valid for the learner's life and
 * reflects later observations. It answers questions and cannot teach: policies of users read it.
 */
export interface Learner<Belief> {
  readonly name: string;
  /** Subject of learning, one sentence. */
  readonly about: string;
  /** Paper and section, or measurement. */
  readonly source: string;
  /** Key prefix of its rows, ending in `/`: no other rows begin so. */
  readonly prefix: string;
  /** The events that it is told of. */
  readonly learnsFrom: readonly LearningEventKind[];
  /**
   * Takes in one event. Its cost must not grow with the job or with earlier events. An error is reported and stops
   * nothing else; a learner that throws must leave its state unchanged.
   */
  observe(event: LearningEvent): void;
  belief(): Belief;
  /** Rows that changed since the last call. An empty row stands for one that is no more. O(rows that changed). */
  takeDirty(): ReadonlyMap<string, string>;
  /**
   * Replaces all state, stored or not, by these rows; empty ones are among them. Throws `store.corrupt` for
   * indispensable rows that it cannot read. Reads rows of each earlier version.
   */
  restore(rows: ReadonlyMap<string, string>): void;
}

export interface LearnerTerms {
  /** False: nothing is stored and `takeDirty` is never called, as in a simulation. A log of changes would only grow. */
  readonly isKept: boolean;
}

/** Makes a learner; also the key under which its belief is asked for. */
export type LearnerFactory<Belief = unknown> = (terms: LearnerTerms) => Learner<Belief>;

/** Beliefs by learner. Throws `internal` for a learner that is not registered. */
export interface Beliefs {
  of<Belief>(learner: LearnerFactory<Belief>): Belief;
  /** False: `of` would throw, because the policy does not declare the learner. Absent: it never would. */
  has?(learner: LearnerFactory): boolean;
}
