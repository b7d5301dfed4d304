/**
 * Load that a service is to be ready for (Tributary, section 2.4.2). Each reads the monitor's series alone, so that the
 * same series gives the same answer after a crash.
 */
import { linearRegression, linearRegressionLine, mean } from 'simple-statistics';
import type { LoadSeries, ScalingPolicy } from '../../policy/services/contracts.ts';

/** Time of low load before a service has less (Gandhi et al., whom the paper follows), seconds. */
const LOW_S = 180;
/** Window of the predictive policies, seconds: the paper has one of a fixed size and does not say which. */
const WINDOW_S = 600;

const lastPeriods = ({ periodS, rps }: LoadSeries, overS: number): readonly number[] =>
  rps.slice(-Math.max(1, Math.round(overS / periodS)));

const isMeasured = (rps: number): boolean => !Number.isNaN(rps);

/**
 * Out at once, in only after three minutes of lower load: the most of the last three minutes. O(periods of the window),
 * as all of them.
 */
export const reactive: ScalingPolicy = (load) => {
  const measured = lastPeriods(load, LOW_S).filter(isMeasured);
  return measured.length === 0 ? null : measured.reduce((most, rps) => Math.max(most, rps), 0);
};

/** The mean of a sliding window. */
export const movingAverage: ScalingPolicy = (load) => {
  const measured = lastPeriods(load, WINDOW_S).filter(isMeasured);
  return measured.length === 0 ? null : mean(measured);
};

/** The line through a sliding window (least squares), at the next period; never below 0. */
export const linearRegressionPolicy: ScalingPolicy = (load) => {
  const window = lastPeriods(load, WINDOW_S);
  const points = window.flatMap((rps, at) => (isMeasured(rps) ? [[at, rps]] : []));
  if (points.length === 0) return null;
  return Math.max(0, linearRegressionLine(linearRegression(points))(window.length));
};
