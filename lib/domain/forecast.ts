import { EbbError } from '../kernel/errors.ts';
import { least, raw, type EpochMs, type Seconds, type UsdPerHour } from '../kernel/units.ts';
import type { GroupId, PoolId } from '../kernel/ids.ts';
import type { Distribution } from './distribution.ts';
import type { Bid } from './pool.ts';

/** Running time of one task of a group from its beginning on a reference machine, with the origin of the forecast. */
export interface RuntimeForecast {
  readonly runtime: Distribution;
  /** history: runs of similar jobs; hint: the user's expectedRuntime; prior: nothing is known (cold start). */
  readonly basis: 'history' | 'hint' | 'prior';
  /** Chosen feature and estimator, samples, NRMSE: for people. */
  readonly reason: string;
  /** The same for programs, where runs of the past were used. */
  readonly evidence?: {
    readonly feature: string;
    readonly estimator: string;
    /** The feature says little about the job itself (its owner, all jobs). */
    readonly broad: boolean;
    readonly samples: number;
    /** RMSE of past predictions over the mean runtime; Infinity while there was none. Absent: not measured. */
    readonly nrmse?: number;
    /** Recency-weighted share of past predictions within a factor of two. Absent: not measured, or none yet. */
    readonly hitRate?: number;
    /** Number of runs that `runtime` stands for. Absent: follows from `estimator` and the share of unseen times. */
    readonly worthRuns?: number;
    /** The point prediction that `runtime` belongs to. */
    readonly pointS: Seconds;
  };
}

/**
 * P(interrupted within h) for a pool at a bid as a function of h: a survival curve, 1 - S(h).
 * Invariants: both arrays have one length >= 1; `horizonS` ascends strictly from > 0; `pInterrupted` does not descend,
 * in [0, 1].
 */
export interface InterruptionCurve {
  readonly horizonS: Float64Array;
  readonly pInterrupted: Float64Array;
  /** Evidence behind the curve, for people. */
  readonly reason: string;
  /** Version of the trained model behind its risk of the price. Absent: none, history says it. */
  readonly priceBy?: string;
  /** Limit on questions. Absent: the curve answers for any time. */
  readonly limit?: CurveLimit;
}

/** The asker of a curve and its longest horizon. */
export interface CurveLimit {
  readonly by: string;
  readonly horizonS: Seconds;
}

/** P(capacity ends within h) alone. `by`: the version of the trained model that says so, or `observed`. */
export interface CapacityCurve extends Omit<InterruptionCurve, 'reason' | 'priceBy'> {
  readonly by: string;
}

/**
 * The curve for who asks no further than `horizonS`, at most as far as it could be asked before. Within that it says
 * the same.
 */
export function curveWithin(curve: InterruptionCurve, { by, horizonS: asked }: CurveLimit): InterruptionCurve {
  const horizonS = curve.limit === undefined ? asked : least(asked, curve.limit.horizonS);
  const covers = curve.horizonS.findIndex((h) => h >= raw(horizonS));
  const points = covers === -1 ? curve.horizonS.length : covers + 1;
  return {
    ...curve,
    horizonS: curve.horizonS.slice(0, points),
    pInterrupted: curve.pInterrupted.slice(0, points),
    limit: { by, horizonS },
  };
}

/**
 * P(interrupted within `h`): linear between horizons and from 0, constant hazard beyond the last one. Throws `internal`
 * beyond the limit of the curve.
 */
export function pInterruptedWithin(curve: Omit<InterruptionCurve, 'reason'>, h: Seconds): number {
  const s = raw(h);
  if (curve.limit !== undefined && s > raw(curve.limit.horizonS)) throw beyond(curve.limit, h);
  if (s <= 0) return 0;
  let fromS = 0;
  let fromP = 0;
  for (let i = 0; i < curve.horizonS.length; i++) {
    const toS = curve.horizonS[i] ?? 0;
    const toP = curve.pInterrupted[i] ?? 0;
    if (s <= toS) return fromP + ((toP - fromP) * (s - fromS)) / (toS - fromS);
    fromS = toS;
    fromP = toP;
  }
  if (fromP >= 1) return 1;
  return 1 - (1 - fromP) ** (s / fromS);
}

/** Checks that a curve answers for any time. Throws `internal` for a limited one. */
export function expectUnlimited({ limit }: InterruptionCurve): void {
  if (limit !== undefined) throw beyond(limit, 'any time');
}

const beyond = ({ by, horizonS }: CurveLimit, asked: Seconds | 'any time'): EbbError =>
  new EbbError('internal', {
    what: `${by} asks for the risk within ${asked === 'any time' ? asked : `${raw(asked)} s`}, which it does not declare`,
    allowed: `up to ${raw(horizonS)} s`,
    next: 'declare the longest horizon in the policy’s `asks`',
  });

export const NEVER_INTERRUPTED: InterruptionCurve = {
  horizonS: Float64Array.of(3600),
  pInterrupted: Float64Array.of(0),
  reason: 'not interruptible',
};

/**
 * One way to run one task of a group: a pool at a bid, appraised. `candidates` per group are pruned to the best few;
 * `rejected` ones are kept with the reason for explanations only.
 */
export interface Offer {
  readonly group: GroupId;
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly priceUsdPerHour: UsdPerHour;
  /** Fraction of the instance that one task takes (dominant share). */
  readonly share: number;
  /**
   * Cost of the task over the price of the instance times the running time, on an instance that has room: its dominant
   * share, less where the time is paid anyway.
   */
  readonly roomShare: number;
  /**
   * The same on a new instance: the part that no other known work uses included. Above 1 where more than the running
   * time is charged.
   */
  readonly newShare: number;
  /** Expected time from buying to the task's start. */
  readonly startDelayS: Seconds;
  /** P(interrupted before the task is done). */
  readonly pInterrupted: number;
  /**
   * P(the task's own deadline is missed), counting a restart on on-demand after an interruption; 0 without a deadline.
   */
  readonly pLate: number;
  /** Expected work lost to interruptions past the last checkpoint. */
  readonly expectedLostS: Seconds;
  /** Expected time from starting on this offer to completion, restarts included. */
  readonly expectedDurationS: Seconds;
  /**
   * Expected cost of one task on a new instance, US dollars: `newShare` x price x time + expected redone work -
   * expected refunds.
   */
  readonly expectedCostUsd: number;
  /** Next try of a pool without capacity now; `p`: chance of capacity then. Absent: the pool is available now. */
  readonly opens?: { readonly atMs: EpochMs; readonly p: number };
  /** Running time there over that where all soft constraints are met (slowdown.ts). Absent: 1. */
  readonly slowdown?: number;
  /** Bonus of this pool by soft constraints, US dollars: plans minimise expectedCostUsd - preferenceUsd. Absent = 0. */
  readonly preferenceUsd?: number;
}

/**
 * A trained model of price losses, loaded. Input: rows of features (lib/market/features/names.ts). Output: P(the price
 * passes the bid within each horizon) per row. Outputs that are not finite are reported with the first such row.
 */
export interface LossModel {
  readonly version: string;
  /** Seconds, ascending. Empty before the first answer of a model that is opened by it. */
  readonly horizonsS: readonly number[];
  run(
    rows: Float32Array,
  ): Promise<
    | { readonly kind: 'values'; readonly values: Float32Array }
    | { readonly kind: 'not-finite'; readonly row: number }
    | { readonly kind: 'failed'; readonly what: string }
  >;
}

/**
 * A trained model of capacity: rows of features (lib/market/features/capacity-features.ts) in, P(capacity ends within
 * each horizon) out.
 */
export interface CapacityModel extends LossModel {
  /** Pools in its training data. */
  readonly pools: ReadonlySet<PoolId>;
}

/** A forecast that was chosen, as it could be had. */
interface Chosen<M extends LossModel> {
  /** Chosen forecast: `history`, `observed` and `oracle` use no model; else `by-regime`, `model` or a version. */
  readonly chosen: string;
  /** Null: the forecast uses no model. */
  readonly model: M | null;
  /** Reason why the chosen model cannot be used, for people; null if it can, or if none was chosen. */
  readonly refused: string | null;
}
/** Chosen forecast of prices. */
export interface ChosenForecast extends Chosen<LossModel> {
  /** The model answers for pools whose price spikes, and while its forecasts come true; history for others. */
  readonly byRegime?: boolean;
}
/** Chosen forecast of capacity. */
export type ChosenCapacity = Chosen<CapacityModel>;

/** Name of the choice that asks the model in use about pools that spike, and leaves others to history. */
export const BY_REGIME = 'by-regime';
/** Prices forecast from their history, by choice. */
export const FROM_HISTORY: ChosenForecast = { chosen: 'history', model: null, refused: null };
/** Capacity forecast from observed interruptions, by choice. */
export const FROM_OBSERVED: ChosenCapacity = { chosen: 'observed', model: null, refused: null };

/** Origin of a decision's market forecast, stored in the plan. */
export interface ForecastOrigin extends Pick<ChosenForecast, 'chosen' | 'refused'> {
  /** Version of the trained model that answered; null: history did. */
  readonly version: string | null;
  /** Capped spot bids that the model was to answer, and did. */
  readonly byModel: number;
  /** Bids answered by history instead, by reason; the most frequent first. */
  readonly byHistory: readonly { readonly why: string; readonly bids: number }[];
  /** The same of capacity; absent where no model was chosen for it. */
  readonly capacity?: CapacityOrigin;
}

export interface CapacityOrigin extends Pick<ChosenCapacity, 'chosen' | 'refused'> {
  /** Version of the trained model that answered; null: observed interruptions did. */
  readonly version: string | null;
  /** Spot pools that the model was to answer, and did. */
  readonly byModel: number;
  /** Pools answered by observed interruptions instead, by reason; the most frequent first. */
  readonly byObserved: readonly { readonly why: string; readonly pools: number }[];
}

/** Forecast of a spot pool now, for each bid that a decision would try. */
export interface PoolForecast {
  readonly pool: PoolId;
  readonly priceUsdPerHour: UsdPerHour;
  readonly bids: readonly {
    readonly bid: Bid;
    readonly curve: InterruptionCurve;
    readonly drivers: PriceDrivers | null;
  }[];
}

/** Evidence behind the risk of a bid. */
export interface PriceDrivers {
  /** Bid above the price in force, USD per hour; below 0 where the price has passed it. */
  readonly aboveUsd: number;
  /** Seconds since the price was last above the bid; null: not within `knownS`. */
  readonly lastAboveS: number | null;
  /** Length of the observed history, seconds; a week at most. */
  readonly knownS: number;
  /** Highest less lowest price of the last 24 hours, USD per hour. */
  readonly range24hUsd: number;
}
