import type { AttemptId, EffectKey, GroupId, InstanceId, JobId, PlanId, PoolId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { ForecastOrigin, Offer, PriceDrivers } from './forecast.ts';
import type { Beneficiary, ForecastAtPurchase } from './instance.ts';
import type { AttemptRole, TaskRef } from './job.ts';
import type { Bid } from './pool.ts';
import type { StageName } from './preset-spec.ts';
import type { Resources } from './resources.ts';
import type { Period, RunningTask } from './snapshot.ts';

/**
 * Worth of finishing one task of a group at a time, US dollars: piecewise linear through `points` (ascending in time),
 * constant before the first and after the last.
 */
export interface UtilityCurve {
  readonly points: readonly { readonly atMs: EpochMs; readonly usd: number }[];
}

/** What the value stage says of a group (or of a running task's stage): curve and limits in time. */
export interface Worth {
  readonly curve: UtilityCurve;
  /** When this stage's tasks must be done so that the stages behind them still meet the deadline; null without one. */
  readonly taskDeadlineMs: EpochMs | null;
  /**
   * Last instant to begin (or resume) on on-demand and still be done by `taskDeadlineMs` at the safety quantile of the
   * runtime, start-up and restore included. Null without a deadline. May lie in the past: then it is likely late.
   */
  readonly latestSafeStartMs: EpochMs | null;
  readonly reason: string;
}

/** One thing the plan may do with up to `group.count` tasks: begin them at `startMs` on `offer`. */
export interface StartOption {
  readonly group: GroupId;
  readonly offer: Offer;
  /** 0 = now; 1.. = later slots of the look-ahead window. */
  readonly slot: number;
  readonly startMs: EpochMs;
  /**
   * Expected worth of one task, US dollars: the curve integrated over the runtime distribution (and over interruption).
   */
  readonly worthUsd: number;
  /** Expected cost of one task, US dollars, at the price expected for that slot. */
  readonly costUsd: number;
}

/** Running attempts that may give way (KillnCk), alike in pool, needs and cost. */
export interface PreemptOption {
  readonly pool: PoolId;
  readonly attempts: readonly AttemptId[];
  readonly need: Resources;
  /**
   * Expected worth forgone and work redone when one of them stops now, US dollars; includes a small epsilon against
   * thrashing.
   */
  readonly costUsd: number;
}

export type WaitReason =
  | 'capacity'
  | 'price'
  | 'cheaper-later'
  | 'dependency'
  | 'constraint'
  | 'budget'
  | 'backoff'
  | 'not-before'
  | 'gang'
  | 'starting-instance'
  | 'cancelling'
  | 'held'
  | 'disk';

/** The plan stage's answer: how many tasks of which group, on what, when. */
export interface Allotment {
  readonly starts: readonly { readonly option: StartOption; readonly count: number; readonly reason: string }[];
  readonly deferred: readonly { readonly option: StartOption; readonly count: number; readonly reason: string }[];
  readonly preemptions: readonly { readonly attempt: AttemptId; readonly reason: string }[];
  /**
   * Attempts that are to go on elsewhere: off spot to keep their deadline, or, with `to: 'spot'`, from on-demand to
   * spot because it pays. They run on until there is a place for them.
   */
  readonly moves: readonly { readonly running: RunningTask; readonly reason: string; readonly to?: 'spot' }[];
  readonly waits: readonly {
    readonly group: GroupId;
    readonly count: number;
    readonly why: WaitReason;
    readonly detail: string;
    /** Name of the account's vCPU quota that it waits for, as far as refusals tell (quota.ts). */
    readonly quota?: string;
  }[];
  readonly solve: SolveReport;
}

/** How the plan was found; every number in the objective's unit (US dollars of expected worth less cost). */
export interface SolveReport {
  /** Which plan is used. */
  readonly used: 'milp' | 'greedy';
  readonly status: 'optimal' | 'feasible' | 'no-solution' | 'infeasible' | 'failed' | 'not-needed';
  readonly objective: number;
  readonly greedyObjective: number;
  /**
   * Upper bound on any plan's objective (LP relaxation, or the weaker bound that `boundKind` names); null when none was
   * computed.
   */
  readonly bound: number | null;
  readonly boundKind: 'lagrangian' | 'mip' | null;
  /** (bound - objective) / max(|bound|, 1e-9); null without a bound. */
  readonly gap: number | null;
  /**
   * (bound - objective) / expected cost of what the plan starts, at least 1e-9 USD: what it may spend too much; null
   * without a bound.
   */
  readonly gapOfCost: number | null;
  readonly variables: number;
  readonly constraints: number;
  readonly elapsedMs: number;
}

/** The report of a plan that no solver was asked for and no bound is known of. */
export const unsolved = (objective: number): SolveReport => ({
  used: 'greedy',
  status: 'not-needed',
  objective,
  greedyObjective: objective,
  bound: null,
  boundKind: null,
  gap: null,
  gapOfCost: null,
  variables: 0,
  constraints: 0,
  elapsedMs: 0,
});

/** Instances to buy together. */
export interface Purchase {
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly count: number;
  readonly reason: string;
}

export interface Release {
  readonly instance: InstanceId;
  readonly reason: string;
}

/** A task given to an instance that is there, up or starting. */
export interface Placement {
  readonly task: TaskRef;
  readonly group: GroupId;
  readonly on: InstanceId;
  readonly reason: string;
}

/** What the cycle does to the world. The key makes each idempotent: done twice under one key is done once. */
export type Effect =
  | {
      readonly kind: 'launch';
      readonly key: EffectKey;
      readonly instance: InstanceId;
      readonly allocation: EffectKey;
      readonly pool: PoolId;
      readonly bid: Bid;
      readonly reason: string;
      /** Jobs that it is bought for. */
      readonly boughtFor?: readonly Beneficiary[];
      /** How long it is expected to be held, seconds; absent where no limit of the deployment asks. */
      readonly expectedS?: number;
      /** Of a spot instance: what its loss was forecast to be. */
      readonly forecast?: ForecastAtPurchase;
    }
  | {
      readonly kind: 'start';
      readonly key: EffectKey;
      readonly attempt: AttemptId;
      readonly task: TaskRef;
      readonly instance: InstanceId;
      readonly reason: string;
      /** Absent: original. A copy of a task that does not run becomes its original. */
      readonly role?: AttemptRole;
    }
  | {
      readonly kind: 'stop';
      readonly key: EffectKey;
      readonly attempt: AttemptId;
      readonly why: 'preempted' | 'cancelled' | 'timed-out' | 'superseded';
      readonly reason: string;
      /** Target of a move: the instance on which its task goes on. */
      readonly to?: InstanceId;
    }
  | { readonly kind: 'release'; readonly key: EffectKey; readonly instance: InstanceId; readonly reason: string };

export type EffectOutcome =
  | { readonly status: 'done'; readonly detail?: string }
  /** The world said no, for a reason that lasts: what the next cycle must know. */
  | {
      readonly status: 'refused';
      readonly why: RefusedWhy;
      readonly detail: string;
    }
  /** Did not work and may the next time. `why`: it will not before a person has acted. */
  | { readonly status: 'failed'; readonly detail: string; readonly why?: 'denied' };

/**
 * `quota`: one that all pools share that `quotaOf` says. `denied`: a right, or a part of the deployment, is missing.
 * `no-answer`: nobody could say for long whether it happened. `unsupported`: the zone does not offer the type, which is
 * normal. `invalid`: the request can never succeed, which is a defect or a deployment that does not fit together.
 * `job-fault`: no request can be made of what the job's record says; the job is held.
 */
export type RefusedWhy =
  | 'insufficient-capacity'
  | 'bid-below-price'
  | 'quota'
  | 'limit'
  | 'instance-gone'
  | 'denied'
  | 'no-answer'
  | 'unsupported'
  | 'invalid'
  | 'job-fault';

/** One offer in an explanation. */
export interface ConsideredOffer {
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly priceUsdPerHour: number;
  readonly pInterrupted: number;
  readonly pLate: number;
  readonly expectedCostUsd: number;
  readonly verdict: string;
}

/** A forecast that a decision rested on. */
export interface ForecastSeen {
  readonly pool: PoolId;
  readonly bid: Bid;
  /** P(interrupted within an hour). */
  readonly pWithinHour: number;
  /** Who forecast it, out of what: for people. */
  readonly reason: string;
  /** Null for a bid that no price passes, or a pool without a price. */
  readonly drivers: PriceDrivers | null;
}

/** Why a job is where it is: stored with the plan, served as text and JSON from this one record. */
export interface Explanation {
  readonly job: JobId;
  readonly atMs: EpochMs;
  /** One sentence. */
  readonly headline: string;
  readonly waiting: readonly {
    readonly stage: string;
    readonly tasks: number;
    readonly why: WaitReason;
    readonly detail: string;
    readonly wouldChange: string;
    readonly expectedStartMs: EpochMs | null;
  }[];
  readonly placed: readonly {
    readonly stage: string;
    readonly tasks: number;
    readonly pool: PoolId;
    readonly why: string;
  }[];
  readonly considered: readonly ConsideredOffer[];
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
  /** What was forecast of the spot pools that it runs in, or else could best run in; absent where there is none. */
  readonly forecast?: readonly ForecastSeen[];
  readonly runtime: { readonly medianS: Seconds; readonly p90S: Seconds; readonly basis: string } | null;
}

/** A limit of the deployment that refused a purchase, US dollars. */
export interface LimitReached {
  readonly period: Period;
  readonly limitUsd: number;
  readonly settledUsd: number;
  readonly spentUsd: number;
  readonly committedUsd: number;
  readonly text: string;
}

/** An answer of a user's own policy that could not be used. */
export interface PolicyRefusal {
  readonly stage: StageName;
  readonly policy: string;
  /** What was wrong with it, one line. */
  readonly why: string;
  /** The policy that answered in its place. */
  readonly standIn: string;
  /** Whether people are to be told: no decision before was refused for the same reason. */
  readonly isNew: boolean;
}

export const refusalText = ({ stage, policy, why, standIn }: PolicyRefusal): string =>
  `an answer of your policy ${stage}: ${policy} was refused: ${why}; ${standIn} answered in its place`;

/** Tasks that are not to start before an instant, whatever room there is. The last plan to say so holds. */
export interface EarliestStart {
  readonly job: JobId;
  readonly stage: string;
  /** A task that was tried and waits. Absent: all of the stage that wait, those never tried too. */
  readonly index?: number;
  /** Null: at any time. A back-off after a failure stays. */
  readonly notBeforeMs: EpochMs | null;
}

/** The decision of one cycle, written before any effect. */
export interface Plan {
  readonly id: PlanId;
  readonly token: number;
  readonly atMs: EpochMs;
  readonly preset: string;
  /** How the market was forecast; absent where no forecast was needed, and in plans of versions that kept none. */
  readonly forecast?: ForecastOrigin;
  readonly effects: readonly Effect[];
  /** Absent: nothing new is said of earliest starts. */
  readonly earliest?: readonly EarliestStart[];
  /** Limits of the deployment that refused a purchase first in this plan; absent: none did. */
  readonly limitsReached?: readonly LimitReached[];
  /** Answers of the user's own policies that were refused; absent: none were. */
  readonly refusedPolicies?: readonly PolicyRefusal[];
  readonly explanations: readonly Explanation[];
  readonly solve: SolveReport;
}
