/**
 * Load of a day that repeats itself: a regression on the harmonics of 24 hours (dynamic harmonic regression; Hyndman
 * and Athanasopoulos, "Forecasting: Principles and Practice", 3rd edition, section 10.5), with residuals that follow
 * the last one (AR(1)). The answer is the upper end of the prediction interval, so that the buffer follows the
 * uncertainty: little where minutes resemble one another, much where they do not.
 */
import MLR from 'ml-regression-multivariate-linear';
import { mean, probit, sampleCorrelation, standardDeviation } from 'simple-statistics';
import type { LoadSeries, ScalingPolicy } from '../../policy/services/contracts.ts';

const DAY_S = 86_400;
/** Pairs of sine and cosine: 24, 12 and 8 hours. */
const HARMONICS = 3;
/** Less of a day than this has no season yet. */
const LEAST_DAYS = 0.75;
/** Periods are averaged to steps of so long before the fit: a season has no minutes. */
const STEP_S = 600;
/** One-sided level of the prediction interval. */
const LEVEL = 0.95;
/** Fewer periods than this say nothing about uncertainty. */
const LEAST_PERIODS = 5;
/** Periods whose residuals tell what the next one may do: two hours. */
const RESIDUAL_S = 7200;

/** O(periods x harmonics^2). */
export const seasonal: ScalingPolicy = (load) => {
  const measured = load.rps.flatMap((rps, at) => (Number.isNaN(rps) ? [] : [{ at, rps }]));
  const last = measured.at(-1);
  if (last === undefined) return null;
  const season = seasonOf(load, measured);
  const recent = measured.slice(-Math.max(LEAST_PERIODS, Math.round(RESIDUAL_S / load.periodS)));
  const residuals = recent.map(({ at, rps }) => rps - season(at));
  const next = season(load.rps.length);
  if (residuals.length < LEAST_PERIODS) return Math.max(0, next, last.rps);
  const follows = autocorrelation(residuals);
  const errors = residuals.slice(1).map((r, i) => r - follows * (residuals[i] ?? 0));
  const spread = standardDeviation(errors);
  return Math.max(0, next + follows * (residuals.at(-1) ?? 0) + probit(LEVEL) * spread);
};

/** Share of a residual that is left in the next period, in [0, 1]. */
function autocorrelation(residuals: readonly number[]): number {
  const [before, after] = [residuals.slice(0, -1), residuals.slice(1)];
  if (standardDeviation(before) === 0 || standardDeviation(after) === 0) return 1;
  return Math.min(1, Math.max(0, sampleCorrelation(before, after)));
}

interface Measured {
  readonly at: number;
  readonly rps: number;
}

/** Expected load of each period by its time of day; the mean of the last hours while there is not a day of them. */
function seasonOf({ periodS }: LoadSeries, measured: readonly Measured[]): (at: number) => number {
  const first = measured[0]?.at ?? 0;
  const spanS = ((measured.at(-1)?.at ?? 0) - first) * periodS;
  const level = mean(measured.slice(-Math.max(1, Math.round(RESIDUAL_S / periodS))).map((m) => m.rps));
  if (spanS < LEAST_DAYS * DAY_S) return () => level;
  const perStep = Math.max(1, Math.round(STEP_S / periodS));
  const steps = [...Map.groupBy(measured, ({ at }) => Math.floor(at / perStep))];
  const x = steps.map(([step]) => harmonicsAt((step + 0.5) * perStep * periodS));
  const y = steps.map(([, of]) => [mean(of.map((m) => m.rps))]);
  const fitted = new MLR(x, y, { intercept: true, statistics: false });
  return (at) => fitted.predict(harmonicsAt(at * periodS))[0] ?? level;
}

const harmonicsAt = (s: number): number[] =>
  Array.from({ length: HARMONICS }, (_, k) => (2 * Math.PI * (k + 1) * s) / DAY_S).flatMap((angle) => [
    Math.sin(angle),
    Math.cos(angle),
  ]);
