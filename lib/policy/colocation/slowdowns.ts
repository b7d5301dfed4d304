/**
 * How much longer programs run beside others: a factor on the running time, learned for each pair of groups, with its
 * uncertainty. Ours; the papers learn preferences alone.
 *
 * log(running time) = mean of the template + sum over groups of neighbours of (exposure - mean exposure of the
 * template) x theta, where theta belongs to the pair of groups (exposure.ts says what exposure is). Only differences
 * between runs of one template teach: one that always had the same neighbours says nothing about them. Thetas are
 * normal with independent errors, updated by each measurement (a Kalman filter with a diagonal covariance): what is not
 * known stays at theta = 0, a factor of 1.
 */

/** A normal distribution. */
export interface Normal {
  readonly mean: number;
  readonly variance: number;
}

/** Pairs of which nothing is known: beside neighbours that use all of a device hardly ever above 1.6. */
export const NO_PAIR: Normal = { mean: 0, variance: 0.35 ** 2 };
/** Variance of log(running time) of a template with one measurement, and how much the next one changes it. */
const NOISE_AT_FIRST = 0.2 ** 2;
const NOISE_STEP = 0.1;
const LEAST_NOISE = 0.01 ** 2;
/** Weight of a new measurement in the means of a template, once there are more. */
const LEAST_STEP = 0.1;
/** Programs change: what is known fades by this much with each measurement. */
const DRIFT = 1e-5;
/** Mean exposures below this are left out. */
const LEAST_USUAL = 1e-4;

/** What the runs of a template had in common. */
export interface Usual {
  /** Mean of log(running time, seconds), its variance from run to run, and the number of runs. */
  readonly mean: number;
  readonly noise: number;
  readonly count: number;
  /** Mean exposure by group. */
  readonly exposures: Readonly<Record<string, number>>;
}

/** Exposure to the programs of one group, >= 0; as a difference of any sign (exposure.ts). */
export interface Beside {
  readonly group: string;
  readonly exposure: number;
}

export interface Known {
  readonly usual: Usual | null;
  readonly pairs: ReadonlyMap<string, Normal>;
}

export interface Run {
  /** log(running time, seconds). */
  readonly logS: number;
  readonly beside: readonly Beside[];
  /** Runs that vary together, as the tasks of one job do: all of them tell as much as one. */
  readonly alike: number;
}

/** Beliefs after a measurement: the template's own, and those of each pair that it tells of. O(groups). */
export function measured({ logS, beside, alike }: Run, { usual, pairs }: Known): Required<Known> & { usual: Usual } {
  if (usual === null) {
    const exposures = Object.fromEntries(beside.map(({ group, exposure }) => [group, exposure]));
    return { usual: { mean: logS, noise: NOISE_AT_FIRST, count: 1, exposures }, pairs: new Map() };
  }
  const more = beyondUsual(beside, usual.exposures);
  const thetas = more.map(({ group }) => pairs.get(group) ?? NO_PAIR);
  const explained = more.reduce((sum, { exposure }, i) => sum + exposure * (thetas[i]?.mean ?? 0), 0);
  const error = logS - usual.mean - explained;
  const spread = more.reduce((sum, { exposure }, i) => sum + exposure ** 2 * varianceOf(thetas[i]), 0);
  const total = spread + usual.noise * (1 + 1 / usual.count) * Math.max(1, alike);
  const after = new Map(
    more.map(({ group, exposure }, i) => {
      const { mean, variance } = thetas[i] ?? NO_PAIR;
      const k = (variance * exposure) / total;
      return [group, { mean: mean + k * error, variance: variance * (1 - k * exposure) + DRIFT }];
    }),
  );
  // What the belief itself does not explain is noise.
  const unexplained = Math.min(1, Math.max(LEAST_NOISE, error ** 2 - spread));
  const step = Math.max(LEAST_STEP, 1 / (usual.count + 1));
  const exposures = Object.fromEntries(
    more
      .map(({ group, exposure }) => [group, round((usual.exposures[group] ?? 0) + step * exposure)] as const)
      .filter(([, mean]) => mean >= LEAST_USUAL),
  );
  return {
    usual: {
      mean: usual.mean + step * (logS - usual.mean),
      noise: usual.noise + NOISE_STEP * (unexplained - usual.noise),
      count: Math.min(1 / LEAST_STEP, usual.count + 1),
      exposures,
    },
    pairs: after,
  };
}

/** Exposures less those that are usual, for every group that there is or usually was. */
export function beyondUsual(beside: readonly Beside[], usual: Readonly<Record<string, number>>): readonly Beside[] {
  const now = new Map(beside.map(({ group, exposure }) => [group, exposure]));
  const groups = new Set([...now.keys(), ...Object.keys(usual)]);
  return [...groups].map((group) => ({ group, exposure: (now.get(group) ?? 0) - (usual[group] ?? 0) }));
}

/** The same with what was beside a group that is no more beside its heir; null: it has none. */
export function besideHeir(of: Usual, group: string, heir: string | null): Usual {
  const { [group]: was, ...exposures } = of.exposures;
  if (was === undefined) return of;
  return { ...of, exposures: heir === null ? exposures : { ...exposures, [heir]: (exposures[heir] ?? 0) + was } };
}

const round = (x: number): number => Math.round(1e6 * x) / 1e6;

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

const SURE = 2;
/**
 * Slow-down of a pair that decisions count on: what lies beyond `SURE` standard deviations. Neighbours do not make a
 * program faster, and chance is not to move work about.
 */
export const surelyOf = ({ mean, variance }: Normal): number => Math.max(0, mean - SURE * Math.sqrt(variance));

const varianceOf = (theta: Normal | undefined): number => (theta ?? NO_PAIR).variance;
