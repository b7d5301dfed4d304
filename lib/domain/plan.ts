import type { AttemptId, EffectKey, GroupId, InstanceId, JobId, PlanId, PoolId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { ForecastOrigin, Offer, PriceDrivers } from './forecast.ts';
import type { Beneficiary, ForecastAtPurchase } from './instance.ts';
import type { AttemptRole, MoveUsd, TaskRef } from './job.ts';
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

/** Answer of the value stage for a group (or for a running task's stage): curve and time limits. */
export interface Worth {
  readonly curve: UtilityCurve;
  /** Latest end of this stage's tasks that lets the stages behind them meet the deadline; null without a deadline. */
  readonly taskDeadlineMs: EpochMs | null;
  /**
   * Last instant to begin (or resume) on on-demand and still be done by `taskDeadlineMs` at the safety quantile of the
   * runtime, start-up and restore included. Null without a deadline. May lie in the past: then it is likely late.
   */
  readonly latestSafeStartMs: EpochMs | null;
  readonly reason: string;
}

/** Work of a job, in seconds of its tasks. */
export interface JobWork {
  readonly submittedMs: EpochMs;
  /** Expected work of the tasks that wait or run, and of the stages that come after them. */
  readonly leftS: number;
  /** Work that its tasks have had, running ones included. */
  readonly attainedS: number;
}

/** One choice of the plan for up to `group.count` tasks: start them at `startMs` on `offer`. */
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

/** Running attempts that may be preempted (KillnCk), alike in pool, needs and cost. */
export interface PreemptOption {
  readonly pool: PoolId;
  readonly attempts: readonly AttemptId[];
  readonly need: Resources;
  /**
   * Expected cost of stopping one of them now, US dollars: worth forgone and work redone; includes a small epsilon
   * against thrashing.
   */
  readonly costUsd: number;
}

export const WAIT_REASONS = [
  'capacity',
  'price',
  'cheaper-later',
  'dependency',
  'constraint',
  'placement',
  'budget',
  'backoff',
  'not-before',
  'gang',
  'starting-instance',
  'cancelling',
  'held',
  'disk',
] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** A held instance, or a pool, in which an instance is bought where none has room. */
export type NamedTarget =
  | { readonly instance: InstanceId; readonly pool?: never }
  | { readonly pool: PoolId; readonly bid: Bid; readonly instance?: never };
/** Where a move leads: from non-interruptible capacity to spot, or to what it names. Absent: off spot. */
export type MoveTarget = 'spot' | NamedTarget;

/** Starts of tasks of one group by one option. */
export interface PlannedStart {
  readonly option: StartOption;
  readonly count: number;
  readonly reason: string;
  /**
   * pilot: so many tasks of the group, the first to start, run for their siblings: what they take is known before
   * others start (`finishedTimes`). Absent: original. Copies are asked for by the speculate stage.
   */
  readonly role?: Exclude<AttemptRole, 'copy'>;
}

/** Answer of the plan stage: how many tasks of which group, on what, when. */
export interface Allotment {
  readonly starts: readonly PlannedStart[];
  readonly deferred: readonly Omit<PlannedStart, 'role'>[];
  /**
   * Earliest starts, from the next decision on; what starts in this one starts. Recorded with the plan, and valid until
   * a later plan says otherwise. Absent: nothing new.
   */
  readonly earliest?: readonly EarliestStart[];
  readonly preemptions: readonly { readonly attempt: AttemptId; readonly reason: string }[];
  /**
   * Attempts that are to go on elsewhere (`MoveTarget`). They run on until there is a place for them.
   */
  readonly moves: readonly { readonly running: RunningTask; readonly reason: string; readonly to?: MoveTarget }[];
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

/** Report on the search; every number in the objective's unit (US dollars of expected worth less cost). */
export interface SolveReport {
  /** Origin of the plan. */
  readonly used: 'milp' | 'greedy';
  readonly status: 'optimal' | 'feasible' | 'no-solution' | 'infeasible' | 'failed' | 'not-needed';
  readonly objective: number;
  readonly greedyObjective: number;
  /** Upper bound on any plan's objective, of the kind that `boundKind` names; null when none was computed. */
  readonly bound: number | null;
  readonly boundKind: 'lagrangian' | 'mip' | null;
  /** (bound - objective) / max(|bound|, 1e-9); null without a bound. */
  readonly gap: number | null;
  /**
   * (bound - objective) / expected cost of the plan's starts, at least 1e-9 USD: the overspending at most; null without
   * a bound.
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
  /** Bought ahead, for these groups of the later demand. Absent: for work that waits now. */
  readonly serves?: readonly GroupId[];
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

/**
 * One change of the world by the cycle. Its key makes it idempotent: repeated under the same key it has no further
 * effect.
 */
export type Effect =
  | {
      readonly kind: 'launch';
      readonly key: EffectKey;
      readonly instance: InstanceId;
      readonly allocation: EffectKey;
      readonly pool: PoolId;
      readonly bid: Bid;
      readonly reason: string;
      /** Jobs for which the instance is bought. */
      readonly boughtFor?: readonly Beneficiary[];
      /** Expected time until release, seconds; absent unless a limit of the deployment needs it. */
      readonly expectedS?: number;
      /** Forecast of the loss of a spot instance. */
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
      /** Of its soft constraints on that instance's pool (`slowdownOn`), times `beside`. Absent: 1. */
      readonly slowdown?: number;
      /** Of its neighbours there. Absent: 1. */
      readonly beside?: number;
    }
  | {
      readonly kind: 'stop';
      readonly key: EffectKey;
      readonly attempt: AttemptId;
      readonly why: 'preempted' | 'cancelled' | 'timed-out' | 'superseded';
      readonly reason: string;
      /** Target of a move: the instance on which its task goes on. */
      readonly to?: InstanceId;
      /** What its policy expects of the move. Absent: it does not say. */
      readonly usd?: MoveUsd;
    }
  | { readonly kind: 'release'; readonly key: EffectKey; readonly instance: InstanceId; readonly reason: string };

export type EffectOutcome =
  | { readonly status: 'done'; readonly detail?: string }
  /** A refusal for a lasting reason, which the next cycle must know. */
  | {
      readonly status: 'refused';
      readonly why: RefusedWhy;
      readonly detail: string;
    }
  /** A failure that may pass. `why`: it lasts until a person acts. */
  | { readonly status: 'failed'; readonly detail: string; readonly why?: 'denied' };

/**
 * `quota`: shared by all pools with the same `quotaOf`. `denied`: a right, or a part of the deployment, is missing.
 * `no-answer`: the outcome stayed unknown for too long. `unsupported`: the zone does not offer the type, which is
 * normal. `invalid`: the request can never succeed: a defect, or an inconsistent deployment. `job-fault`: the job's
 * record allows no valid request; the job is held.
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

/** A forecast behind a decision. */
export interface ForecastSeen {
  readonly pool: PoolId;
  readonly bid: Bid;
  /** P(interrupted within an hour). */
  readonly pWithinHour: number;
  /** Forecaster and evidence, for people. */
  readonly reason: string;
  /** Null for a bid that no price passes, or a pool without a price. */
  readonly drivers: PriceDrivers | null;
}

/** waits: for its target. saves: it stops and writes its checkpoint. arrives: it has stopped and starts there. */
export type MoveState = 'waits' | 'saves' | 'arrives';

/** A place of a move. */
export interface MovePlace {
  /** Null: one that is to be bought, or any that has room. */
  readonly instance: InstanceId | null;
  /** Null: it is not decided, or not known any more. */
  readonly pool: PoolId | null;
}

/** What becomes of a copy. dropped: there is no room for it now. */
export type CopyState = 'runs' | 'starts' | 'waits' | 'dropped';

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
  /** Copies of its tasks, beside those that are placed; absent where there are none. */
  readonly copies?: readonly {
    readonly stage: string;
    readonly index: number;
    readonly state: CopyState;
    readonly why: string;
  }[];
  /** Moves of its tasks; absent where there are none. */
  readonly moves?: readonly (MoveUsd & {
    readonly stage: string;
    readonly index: number;
    readonly from: MovePlace;
    readonly to: MovePlace;
    readonly state: MoveState;
    readonly why: string;
  })[];
  readonly considered: readonly ConsideredOffer[];
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
  /** Forecasts of its spot pools, or of the best ones if it waits; absent without one. */
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
  /** Fault, one line. */
  readonly why: string;
  /** The policy that answered in its place. */
  readonly standIn: string;
  /** True if people are to be told: no earlier decision had this refusal. */
  readonly isNew: boolean;
}

export const refusalText = ({ stage, policy, why, standIn }: PolicyRefusal): string =>
  `an answer of your policy ${stage}: ${policy} was refused: ${why}; ${standIn} answered in its place`;

/** Earliest start of tasks, whatever room there is. The latest plan's value holds. */
export interface EarliestStart {
  readonly job: JobId;
  readonly stage: string;
  /** A task that was tried and waits. Absent: all of the stage that wait, those never tried too. */
  readonly index?: number;
  /** Null: any time. A back-off after a failure stays. */
  readonly notBeforeMs: EpochMs | null;
}

/** The decision of one cycle, written before any effect. */
export interface Plan {
  readonly id: PlanId;
  readonly token: number;
  readonly atMs: EpochMs;
  readonly preset: string;
  /** Origin of the market forecast; absent if none was needed, and in plans of versions that kept none. */
  readonly forecast?: ForecastOrigin;
  readonly effects: readonly Effect[];
  /** Absent: nothing new is said of earliest starts. */
  readonly earliest?: readonly EarliestStart[];
  /** Limits of the deployment that refused a purchase for the first time in this plan; absent: none. */
  readonly limitsReached?: readonly LimitReached[];
  /** Refused answers of the user's own policies; absent: none. */
  readonly refusedPolicies?: readonly PolicyRefusal[];
  readonly explanations: readonly Explanation[];
  readonly solve: SolveReport;
}
