/** Forecasters: the questions of stages about running times and markets. */
import type { JobId } from '../kernel/ids.ts';
import type { EpochMs, Seconds, UsdPerHour } from '../kernel/units.ts';
import type { CapacityCurve, ForecastOrigin, InterruptionCurve, PriceDrivers, RuntimeForecast } from './forecast.ts';
import { stageKey, type Attempt, type StageSpec } from './job.ts';
import type { Bid, Pool } from './pool.ts';
import type { Resources } from './resources.ts';

/** Input of a runtime prediction: facts known at submission. */
export interface JobFeatures {
  readonly owner: string;
  /** Templated job name: digits and dates taken out. */
  readonly jobName: string;
  /** Base name of the program. */
  readonly program: string;
  readonly stage: string;
  readonly resources: Resources;
  readonly submittedMs: EpochMs;
  /** Tasks of the stage. Absent: one. */
  readonly tasks?: number;
  /** Labels as `key=value`, ascending, at most MAX_LABELS. Absent: none. */
  readonly labels?: readonly string[];
  /** The user's guess, `expectedRuntime`. Absent: none. */
  readonly expectedRuntimeS?: Seconds;
}

/** Labels of a job that count as features: the first in the order of their keys. */
export const MAX_LABELS = 4;

/** Forecasts from past runs. Null: nothing is known (lib/stages/estimate then answers). */
export interface RuntimeHistory {
  predict(features: JobFeatures): RuntimeForecast | null;
}

/** Learned running times, in the form of each estimate policy. */
export interface LearnedRuntimes extends RuntimeHistory {
  /** Recent runs, chosen by hit rate. `predict` itself is JVuPredict. */
  readonly recurring: RuntimeHistory;
}

/** `${job}/${stage}`. */
export type StageKey = string;

/**
 * Forecast of a whole task from its beginning, for each stage that waits or runs. Most stages are never asked about, so
 * a forecast may be made on first use, if nothing is learned in between. Iterating makes all. A Map fulfils this
 * contract.
 */
export interface StageForecasts extends Iterable<[StageKey, RuntimeForecast]> {
  get(key: StageKey): RuntimeForecast | undefined;
  /**
   * The same, found by the identity of the stage's record, which must not change any more: no text to hash. Absent:
   * look up by key.
   */
  ofStage?(job: JobId, stage: Pick<StageSpec, 'name'>): RuntimeForecast | undefined;
}

/** Forecast for a running task; asked for several times per cycle. */
export function forecastFor(
  runtime: StageForecasts,
  { attempt, stage }: { readonly attempt: Pick<Attempt, 'job' | 'stage'>; readonly stage: Pick<StageSpec, 'name'> },
): RuntimeForecast | undefined {
  if (runtime.ofStage !== undefined) return runtime.ofStage(attempt.job, stage);
  return runtime.get(stageKey(attempt));
}

/** Forecasts of spot pools, made on demand and cached within a cycle. */
export interface MarketForecast {
  interruption(pool: Pool, bid: Bid): InterruptionCurve;
  /** Expected price at a later time, given that it is `now` now. */
  expectedPrice(pool: Pool, at: EpochMs): UsdPerHour | null;
  /**
   * Expected mean price under an uncapped bid, spikes included: over so long from now, or in the long run. Null without
   * a price or history.
   */
  meanPrice?(pool: Pool, over?: Seconds): UsdPerHour | null;
  /** Pearson correlation of two pools' prices over the history, in [-1, 1]; 0 when unknown (Tributary 2.2.2). */
  correlation(a: Pool, b: Pool): number;
  /** Prices of a spot pool of the last week, USD per hour, one per hour, the oldest first. Absent: not known here. */
  hourlyUsd?(pool: Pool): readonly number[];
  /** Origin of the forecast; absent where there was no choice. */
  readonly origin?: ForecastOrigin;
  /** Evidence behind the risk of a bid; null without a price, or without a bid that a price can pass. */
  drivers?(pool: Pool, bid: Bid): PriceDrivers | null;
  /** Capacity's part in the risk of a bid; null if capacity is never lost, or unknown. */
  capacity?(pool: Pool): CapacityCurve | null;
}

export interface Forecasts {
  readonly runtime: StageForecasts;
  readonly market: MarketForecast;
}
