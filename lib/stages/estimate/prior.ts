import { raw, seconds, type Seconds } from '../../kernel/units.ts';
import { distribution, distributionOf, type Distribution, type Doubles } from '../../domain/distribution.ts';

/**
 * Standard normal quantiles at the middle of ten equally likely slices (5 %, 15 % .. 95 %), and the 99 % quantile for
 * the tail: a log-normal as eleven points. Weights below.
 */
const Z = [-1.6449, -1.0364, -0.6745, -0.3853, -0.1257, 0.1257, 0.3853, 0.6745, 1.0364, 1.6449, 2.3263];
const Z_WEIGHT = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.08, 0.02];

/**
 * Spread of a user's guess: the standard deviation of ln(runtime / guess) that puts nine in ten within a factor of two,
 * as for JVuPredict's predictions (JamaisVu section 6.2). The paper calls users' estimates of widely varying quality
 * (section 2.2) and names no figure; a worse guess corrects itself with the first runs.
 */
const HINT_SIGMA = Math.LN2 / 1.6449;

/**
 * Prior of an unknown task: median and spread of the 385,582 finished jobs of the Google 2011 trace (median 109 s; 90 %
 * below 1,058 s, so sigma = ln(1058 / 109) / 1.2816).
 */
const PRIOR_MEDIAN_S: Seconds = seconds(109);
const PRIOR_SIGMA = 1.77;

function logNormal(median: Seconds, sigma: number): Distribution {
  return distribution(Z.map((z, i) => [raw(median) * Math.exp(sigma * z), Z_WEIGHT[i] ?? 0]));
}

/** The distribution of a user's guess: log-normal with the guess as its median. */
export const hintDistribution = (expected: Seconds): Distribution => logNormal(expected, HINT_SIGMA);

const PRIOR = logNormal(PRIOR_MEDIAN_S, PRIOR_SIGMA);

export const priorDistribution = (): Distribution => PRIOR;

/** Mixture: `a` with probability `weight`, else `b`. */
export function blend(a: Distribution, weight: number, b: Distribution, doubles: Doubles): Distribution {
  if (weight >= 1) return a;
  if (weight <= 0) return b;
  const points = a.atS.length + b.atS.length;
  const atS = doubles.take(points);
  const weights = doubles.take(points);
  atS.set(a.atS);
  atS.set(b.atS, a.atS.length);
  for (let i = 0; i < points; i++) {
    const j = i - a.atS.length;
    weights[i] = j < 0 ? (a.weight[i] ?? 0) * weight : (b.weight[j] ?? 0) * (1 - weight);
  }
  return distributionOf(atS, weights);
}

/** No attempt runs longer than its timeout, so longer times count as the timeout. */
export function capped(d: Distribution, timeout: Seconds | null, doubles: Doubles): Distribution {
  if (timeout === null || (d.atS.at(-1) ?? 0) <= raw(timeout)) return d;
  const atS = doubles.take(d.atS.length);
  const weight = doubles.take(d.atS.length);
  for (let i = 0; i < atS.length; i++) atS[i] = Math.min(d.atS[i] ?? 0, raw(timeout));
  weight.set(d.weight);
  return distributionOf(atS, weight);
}
