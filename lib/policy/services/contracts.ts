/**
 * Contracts of the stages that decide for a service: how much load is to come (`scaling`), and which instances serve it
 * (`footprint`). All are pure: the same context gives the same answer.
 */
import type { SchedulerConfig } from '../../domain/config.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import type { Bid, Pool, PoolView } from '../../domain/pool.ts';
import type { InstanceId, PoolId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';

/** Load of a service as its monitor measured it. */
export interface LoadSeries {
  /** Length of a monitoring period, seconds. */
  readonly periodS: number;
  /** Requests per second of each period, oldest first, the last one just over; NaN where nothing was measured. */
  readonly rps: readonly number[];
}

/** Requests per second to be ready for in the next period; null where the series says nothing. */
export type ScalingPolicy = (load: LoadSeries) => number | null;

/** An instance that serves, or is to. */
export interface HeldInstance {
  readonly id: InstanceId;
  readonly pool: Pool;
  readonly bid: Bid;
  /** Null: requested, not launched yet. */
  readonly launchedMs: EpochMs | null;
  /** vCPUs that serve on it. Absent: all of its pool's type. */
  readonly units?: number;
}

/** What a service needs of its footprint, in vCPUs. */
export interface ServiceDemand {
  /** Share of requests in time with so many vCPUs, in [0, 1]; never falls (Tributary, section 2.2: v). */
  readonly utility: (vcpus: number) => number;
  /** Share of requests that are to be in time, in (0, 1). */
  readonly target: number;
  /** Most vCPUs of one pool, as far as others are sold: the market may take all of a pool at once. Absent: any. */
  readonly most?: number;
}

export interface FootprintContext {
  readonly nowMs: EpochMs;
  readonly config: Pick<SchedulerConfig, 'refundRule' | 'correlationPenalty' | 'startDelayMeanS'>;
  readonly market: MarketForecast;
  readonly pools: readonly PoolView[];
  /** Prices of a spot pool of the last week, USD per hour, one per hour, the oldest first; empty: none are known. */
  readonly hourlyUsd: (pool: Pool) => readonly number[];
  /** Live instances, without those that the market is taking. */
  readonly held: readonly HeldInstance[];
  readonly demand: ServiceDemand;
}

export interface FootprintChange {
  readonly buy: readonly {
    readonly pool: PoolId;
    readonly bid: Bid;
    /** Instances, >= 1. */
    readonly count: number;
    readonly reason: string;
  }[];
  readonly release: readonly { readonly instance: InstanceId; readonly reason: string }[];
}

export type FootprintPolicy = (context: FootprintContext) => FootprintChange;

/** A policy in a list. */
export interface NamedPolicy<Of> {
  /** One line for lists. */
  readonly about: string;
  /** Paper and section; `ours` where it is this project's own. */
  readonly source: string;
  readonly policy: Of;
}
