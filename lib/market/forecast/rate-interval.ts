/**
 * Interval of a rate with several events at once: one price change takes every instance of a pool with a lower bid. Fay
 * and Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma distribution",
 * Statistics in Medicine 16, 1997: a sum of Poisson numbers with weights, here the number at once. With single events
 * it is the exact interval of Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28, 1936.
 */

/** P that the number falls outside of its interval on one side: 95 % in all. */
const TAIL = 0.025;

/** Interval of the mean number of events, given the number at each time. */
export function rateInterval(atOnce: readonly number[]): { readonly low: number; readonly high: number } {
  const sum = atOnce.reduce((a, n) => a + n, 0);
  const squares = atOnce.reduce((a, n) => a + n * n, 0);
  const most = atOnce.reduce((a, n) => Math.max(a, n), 1);
  return intervalOf({ sum, squares, most });
}

/** The same by sums: of the events, of the squared numbers at once, and the number of one more time. */
export function intervalOf({ sum, squares, most }: Readonly<Record<'sum' | 'squares' | 'most', number>>): {
  readonly low: number;
  readonly high: number;
} {
  return {
    low: sum === 0 ? 0 : gammaQuantile(TAIL, sum, squares),
    high: gammaQuantile(1 - TAIL, sum + most, squares + most * most),
  };
}

/** Quantile of a gamma distribution by its mean and variance; by bisection. */
function gammaQuantile(p: number, mean: number, variance: number): number {
  const [shape, scale] = [(mean * mean) / variance, variance / mean];
  let [from, to] = [0, shape + 8 * Math.sqrt(shape) + 10];
  for (let step = 0; step < 60; step++) {
    const middle = (from + to) / 2;
    if (gammaBelow(shape, middle) < p) from = middle;
    else to = middle;
  }
  return ((from + to) / 2) * scale;
}

/**
 * P(a gamma variable of this shape and scale 1 is below x): the series of the incomplete gamma function, whose terms
 * are all positive. O(x).
 */
function gammaBelow(shape: number, x: number): number {
  if (x <= 0) return 0;
  let [term, sum] = [1, 1];
  for (let n = 1; term > sum * Number.EPSILON; n++) {
    term *= x / (shape + n);
    sum += term;
  }
  return Math.min(1, Math.exp(shape * Math.log(x) - x - logGamma(shape + 1) + Math.log(sum)));
}

/** Argument from which three terms of Stirling's series are exact to ten digits. */
const FAR = 10;

function logGamma(z: number): number {
  let below = 0;
  let at = z;
  for (; at < FAR; at++) below += Math.log(at);
  const tail = 1 / (12 * at) - 1 / (360 * at ** 3) + 1 / (1260 * at ** 5);
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + tail - below;
}
