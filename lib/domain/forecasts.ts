/** Forecasters: what the stages may ask about running times and markets. */
import type { JobId } from '../kernel/ids.ts';
import type { EpochMs, UsdPerHour } from '../kernel/units.ts';
import type { CapacityCurve, ForecastOrigin, InterruptionCurve, PriceDrivers, RuntimeForecast } from './forecast.ts';
import type { Attempt, StageSpec } from './job.ts';
import type { Bid, Pool } from './pool.ts';
import type { Resources } from './resources.ts';

/** What a runtime prediction may look at: known at submission. */
export interface JobFeatures {
  readonly owner: string;
  /** Templated job name: digits and dates taken out. */
  readonly jobName: string;
  /** Base name of the program. */
  readonly program: string;
  readonly stage: string;
  readonly resources: Resources;
  readonly submittedMs: EpochMs;
}

/** Runs of the past, asked for a forecast. Null: nothing at all is known (lib/stages/estimate answers for that). */
export interface RuntimeHistory {
  predict(features: JobFeatures): RuntimeForecast | null;
}

/** `${job}/${stage}`. */
export type StageKey = string;

/**
 * Of each stage that waits or runs the forecast of a whole task, from its beginning. It may be made when it is first
 * asked for, as long as nothing is learned in between: most stages nobody asks about. To go through them makes all. A
 * map is one.
 */
export interface StageForecasts extends Iterable<[StageKey, RuntimeForecast]> {
  get(key: StageKey): RuntimeForecast | undefined;
  /**
   * The same by the very record of the stage, which must not change any more: one look-up by identity, and no text to
   * hash. Absent: it is found by key.
   */
  ofStage?(job: JobId, stage: Pick<StageSpec, 'name'>): RuntimeForecast | undefined;
}

/** The forecast for a running task: one cycle asks for it several times. */
export function forecastFor(
  runtime: StageForecasts,
  { attempt, stage }: { readonly attempt: Pick<Attempt, 'job' | 'stage'>; readonly stage: Pick<StageSpec, 'name'> },
): RuntimeForecast | undefined {
  if (runtime.ofStage !== undefined) return runtime.ofStage(attempt.job, stage);
  return runtime.get(`${attempt.job}/${attempt.stage}`);
}

/** What is known of spot pools: forecasts are made on demand and remembered within a cycle. */
export interface MarketForecast {
  interruption(pool: Pool, bid: Bid): InterruptionCurve;
  /** Expected price at a later time, given that it is `now` now. */
  expectedPrice(pool: Pool, at: EpochMs): UsdPerHour | null;
  /**
   * Time-weighted mean price over the history: what an uncapped bid, which also rides through spikes, pays in the long
   * run.
   */
  meanPrice?(pool: Pool): UsdPerHour | null;
  /** Pearson correlation of two pools' prices over the history, in [-1, 1]; 0 when unknown (Tributary 2.2.2). */
  correlation(a: Pool, b: Pool): number;
  /** How it was made; absent where nothing was to be chosen. */
  readonly origin?: ForecastOrigin;
  /** What the risk of a bid rests on; null where there is no price, or no bid to be passed. */
  drivers?(pool: Pool, bid: Bid): PriceDrivers | null;
  /** The part of capacity in what a bid risks; null where nothing ends it, or nobody says. */
  capacity?(pool: Pool): CapacityCurve | null;
}

export interface Forecasts {
  readonly runtime: StageForecasts;
  readonly market: MarketForecast;
}
