import type { AttemptId, EffectKey, InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import { epochMs, msBetween, raw, seconds, type EpochMs, type Seconds, type Usd } from '../kernel/units.ts';
import type { Bid } from './pool.ts';
import type { Resources } from './resources.ts';

/**
 * requested -> starting -> ready -> (warned | releasing ->) ended. `requested`: an intent without a known outcome.
 * `warned`: has its interruption notice. `releasing`: is being given back. The last two take no new task.
 */
export type InstanceState = 'requested' | 'starting' | 'ready' | 'warned' | 'releasing' | 'ended';
/** interrupted: by the market; released: by us; lost: its supervisor died; failed: never came up. */
export type EndCause = 'interrupted' | 'released' | 'lost' | 'failed';

/** Forecast for a spot instance at the time of its purchase. */
export interface ForecastAtPurchase {
  /** The version of the trained model that answered about the price, or `history`. */
  readonly by: string;
  /** Seconds, ascending, and P(interrupted within each). */
  readonly horizonS: readonly number[];
  readonly pInterrupted: readonly number[];
  /** Loss of capacity alone, within the same horizons. Absent in records of versions that kept none. */
  readonly capacity?: {
    /** The version of the trained model that was asked about capacity, or `observed`. */
    readonly by: string;
    readonly pInterrupted: readonly number[];
  };
}

/**
 * A job for which an instance is bought, and its part of the purchase: constraining resource x expected time, over all
 * such jobs.
 */
export interface Beneficiary {
  readonly job: JobId;
  /** Parts of one instance sum to 1. */
  readonly part: number;
  /** Expected cost of the instance to the job, US dollars. Absent for jobs without a limit. */
  readonly usd?: number;
}

/** Most jobs recorded per instance: those with the largest parts. They share the cost of its start-up. */
export const MAX_BENEFICIARIES = 8;

/** Room kept for a task that is on its way from another instance. */
export interface Reservation {
  /** The attempt that was stopped for the move. */
  readonly attempt: AttemptId;
  readonly job: JobId;
  readonly resources: Resources;
  readonly sinceMs: EpochMs;
  /** Time at which the task turned out not to come; null: it is awaited. */
  readonly untilMs: EpochMs | null;
}

/** Why the market takes an instance or launches none: there is no capacity, or the price is above the bid. */
export type MarketCause = 'capacity' | 'price';

export interface Instance {
  readonly id: InstanceId;
  /** The launch that made it: pool, bid and time together. */
  readonly allocation: EffectKey;
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly state: InstanceState;
  readonly requestedMs: EpochMs;
  /** Billing starts here; null until the market says so. */
  readonly launchedMs: EpochMs | null;
  /** Time of its first task, or the expected one. */
  readonly readyMs: EpochMs | null;
  /** Time of the interruption notice, and of the expected end. */
  readonly warnedMs: EpochMs | null;
  readonly goneMs: EpochMs | null;
  /** A rebalance recommendation came. */
  readonly rebalance: boolean;
  readonly endedMs: EpochMs | null;
  readonly endCause: EndCause | null;
  /** Cause of an interruption or of a refused launch. Absent for others, and in records of versions that kept none. */
  readonly marketCause?: MarketCause;
  /** Final bill; null until it ended. */
  readonly costUsd: Usd | null;
  /** Jobs for which it was bought; absent in records of versions that kept none. */
  readonly boughtFor?: readonly Beneficiary[];
  /** Seconds from its request that it was expected to be held; absent where no limit of the deployment asks. */
  readonly expectedS?: number;
  /**
   * Room kept for arrivals of moves. A task that arrives takes its reservation over (`Attempt.reservedMs`); one that
   * does not leaves it here, closed. Absent: none.
   */
  readonly reservations?: readonly Reservation[];
  /** Absent without a forecast: on-demand instances, and records of versions that kept none. */
  readonly forecast?: ForecastAtPurchase;
}

/** EC2 gives two minutes of notice (EC2 User Guide, "Spot Instance interruption notices"). */
export const NOTICE_S: Seconds = seconds(120);

export const isLive = (i: Instance): boolean => i.state !== 'ended';

const HOUR_MS = 3_600_000;

/** End of the instance-hour that has begun: billing by the hour has charged it already. */
export function startedHourEndMs(launchedMs: EpochMs, now: EpochMs): EpochMs {
  const age = Math.max(0, msBetween(launchedMs, now));
  return epochMs(raw(launchedMs) + (Math.floor(age / HOUR_MS) + 1) * HOUR_MS);
}

/** True for an instance that may take a task: it is not ending, and has no rebalance recommendation. */
export const takesTasks = ({ rebalance, state }: Instance): boolean =>
  !rebalance && (state === 'requested' || state === 'starting' || state === 'ready');
