/**
 * How much longer programs run beside others: a factor on the running time, learned for each pair of groups, with its
 * uncertainty. Ours; the papers learn preferences alone.
 *
 * log(running time) = own + sum over groups of neighbours of (exposure to them x theta), where `own` belongs to the
 * template and theta to the pair of groups; exposure.ts says what exposure is. Both are normal with independent errors, updated by
 * each measurement (a Kalman filter with a diagonal covariance): what is not known stays at theta = 0, a factor of 1.
 */

/** A normal distribution. */
export interface Normal {
  readonly mean: number;
  readonly variance: number;
}

/** Pairs of which nothing is known: beside neighbours that use all of a device hardly ever above 1.6. */
export const NO_PAIR: Normal = { mean: 0, variance: 0.35 ** 2 };
/** The first running time of a template says nearly all about its own. */
const NO_OWN_VARIANCE = 4;
/** Variance of log(running time) of a template with no measurement, and how much the next one changes it. */
const NOISE_AT_FIRST = 0.2 ** 2;
const NOISE_STEP = 0.1;
const LEAST_NOISE = 0.01 ** 2;
/** Programs change: what is known fades by this much with each measurement. */
const DRIFT = 1e-5;

export interface Own extends Normal {
  readonly noise: number;
}

/** Exposure to the programs of one group, >= 0 (exposure.ts). */
export interface Beside {
  readonly group: string;
  readonly exposure: number;
}

export interface Known {
  readonly own: Own | null;
  readonly pairs: ReadonlyMap<string, Normal>;
}

/** Beliefs after a measurement: the template's own, and those of each pair that it tells of. O(beside). */
export function measured(
  logS: number,
  beside: readonly Beside[],
  { own, pairs }: Known,
): Required<Known> & { own: Own } {
  const thetas = beside.map(({ group }) => pairs.get(group) ?? NO_PAIR);
  const first: Own = { mean: logS - shift(beside, thetas), variance: NO_OWN_VARIANCE, noise: NOISE_AT_FIRST };
  const of = own ?? first;
  const error = logS - of.mean - shift(beside, thetas);
  const spread = of.variance + beside.reduce((sum, { exposure }, i) => sum + exposure ** 2 * varianceOf(thetas[i]), 0);
  const total = spread + of.noise;
  const gain = (variance: number, exposure: number): number => (variance * exposure) / total;
  const after = ({ mean, variance }: Normal, exposure: number): Normal => {
    const k = gain(variance, exposure);
    return { mean: mean + k * error, variance: variance * (1 - k * exposure) + DRIFT };
  };
  // What the belief itself does not explain is noise.
  const unexplained = Math.max(LEAST_NOISE, error ** 2 - spread);
  const noise = own === null ? NOISE_AT_FIRST : of.noise + NOISE_STEP * (Math.min(1, unexplained) - of.noise);
  return {
    own: { ...after(of, 1), noise },
    pairs: new Map(beside.map(({ group, exposure }, i) => [group, after(thetas[i] ?? NO_PAIR, exposure)])),
  };
}

/** Factor on the running time. */
export interface Slowdown {
  /** Expected factor, >= 1. */
  readonly factor: number;
  /** Standard deviation of its logarithm. */
  readonly sd: number;
}

export const NO_SLOWDOWN: Slowdown = { factor: 1, sd: 0 };

/** O(beside). */
export function slowdownBeside(beside: readonly Beside[], pairs: ReadonlyMap<string, Normal>): Slowdown {
  let [mean, variance] = [0, 0];
  for (const { group, exposure } of beside) {
    const theta = pairs.get(group);
    mean += exposure * (theta?.mean ?? NO_PAIR.mean);
    variance += exposure ** 2 * varianceOf(theta);
  }
  return { factor: Math.exp(Math.max(0, mean)), sd: Math.sqrt(variance) };
}

/** Bounds of a factor between two places: beyond these nothing was ever measured. */
const MOST_FACTOR = 4;

/**
 * Factor between two places, of the differences of their exposures: below 1 where it is slowed down less. Groups that
 * nothing is known of do not count. O(groups).
 */
export function slowdownBetween(more: readonly Beside[], pairs: ReadonlyMap<string, Normal>): Slowdown {
  let [mean, variance] = [0, 0];
  for (const { group, exposure } of more) {
    const theta = pairs.get(group);
    if (theta === undefined) continue;
    mean += exposure * surelyOf(theta);
    variance += exposure ** 2 * theta.variance;
  }
  const factor = Math.max(1 / MOST_FACTOR, Math.min(MOST_FACTOR, Math.exp(mean)));
  return { factor, sd: Math.sqrt(variance) };
}

/**
 * Slow-down of a pair that decisions count on: what lies beyond one standard deviation. Neighbours do not make a
 * program faster, and chance is not to move work about.
 */
export const surelyOf = ({ mean, variance }: Normal): number => Math.max(0, mean - Math.sqrt(variance));

const varianceOf = (theta: Normal | undefined): number => (theta ?? NO_PAIR).variance;

const shift = (beside: readonly Beside[], thetas: readonly Normal[]): number =>
  beside.reduce((sum, { exposure }, i) => sum + exposure * (thetas[i]?.mean ?? 0), 0);
