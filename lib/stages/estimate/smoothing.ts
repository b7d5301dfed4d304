/**
 * Kernel-smoothed distributions of running times on the log scale: a mixture of one normal per run, of one bandwidth.
 * The bandwidth follows the spread of the runs, so that the distribution is sharp where runs repeat.
 */
import { distributionOf, type Distribution, type Doubles } from '../../domain/distribution.ts';

/**
 * Bandwidths in ln(seconds). MOST_BANDWIDTH is that of a lone run and of runs that scatter. Below LEAST_BANDWIDTH, 2 %,
 * nothing that a plan asks for changes.
 */
export const MOST_BANDWIDTH = 0.2;
const LEAST_BANDWIDTH = 0.02;
/**
 * Bandwidth over spread x runs^(-1/5). Silverman, "Density Estimation", 1986, equation 3.31, has 0.9; with 0.8 the
 * outer deciles are flat (below).
 */
const SHARPNESS = 0.8;
/** Interquartile range of a normal, in standard deviations. */
const NORMAL_IQR = 1.34;

/**
 * Share of probability, in runs, for running times unlike any seen: log-normal about the runs' mean. Share and spread
 * make the outer deciles of the probability integral transform flat on the first half of the Google trace.
 */
const UNSEEN_RUNS = 0.75;
const UNSEEN_SIGMA = 1.2;
/** Standard normal quantiles, each of the same weight: 1/12, 3/12 .. 11/12. */
const UNSEEN_Z = [-1.383, -0.6745, -0.2104, 0.2104, 0.6745, 1.383];

/** Grid of the kernel: half a bandwidth, three bandwidths to either side. */
const REACH = 6;
const TAPS = 2 * REACH + 1;
const KERNEL = normalised(Float64Array.from({ length: TAPS }, (_, t) => Math.exp(-((t - REACH) ** 2) / 8)));
/** Least weight of a point of the distribution, so that there are at most a few dozen; outermost ones are finer. */
const POINT = 1 / 32;
const OUTER_POINT = 1 / 80;
const OUTER = 0.1;

function normalised(weights: Float64Array): Float64Array {
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / sum);
}

/** Runs to be smoothed: `count` logarithms of seconds, ascending, with positive weights. */
export interface WeightedRuns {
  readonly logS: Float64Array;
  readonly weight: Float64Array;
  readonly count: number;
  /** Number of runs behind them, where equal ones are one entry. Absent: `count`. */
  readonly runs?: number;
}

interface Summary {
  readonly total: number;
  readonly mean: number;
  readonly bandwidth: number;
}

function summary({ logS, weight, count }: WeightedRuns): Summary {
  let [total, squares, mean] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    const w = weight[i] as number;
    total += w;
    squares += w * w;
    mean += w * (logS[i] as number);
  }
  mean /= total;
  let variance = 0;
  let below = 0;
  let [lower, upper] = [NaN, NaN];
  for (let i = 0; i < count; i++) {
    const l = logS[i] as number;
    const w = weight[i] as number;
    variance += w * (l - mean) ** 2;
    below += w;
    if (Number.isNaN(lower) && below >= total / 4) lower = l;
    if (Number.isNaN(upper) && below >= (3 * total) / 4) upper = l;
  }
  // Kish's number of equal weights: few runs say little of their own spread.
  const runs = (total * total) / squares;
  const spread = Math.min(Math.sqrt(variance / total), (upper - lower) / NORMAL_IQR);
  const wanted = SHARPNESS * spread * runs ** -0.2 + MOST_BANDWIDTH / (runs + 1);
  return { total, mean, bandwidth: Math.min(MOST_BANDWIDTH, Math.max(LEAST_BANDWIDTH, wanted)) };
}

/** Points being made of ascending cells of the grid: each stands for as many cells as its least weight takes. */
class Points {
  readonly atS: Float64Array;
  readonly weight: Float64Array;
  count = 0;
  #mass = 0;
  #moment = 0;
  #below = 0;

  constructor(most: number, doubles: Doubles) {
    this.atS = doubles.take(most);
    this.weight = doubles.take(most);
  }

  add(log: number, mass: number): void {
    this.#mass += mass;
    this.#moment += mass * log;
    const isOuter = this.#below < OUTER || this.#below > 1 - OUTER;
    if (this.#mass >= (isOuter ? OUTER_POINT : POINT)) this.close();
  }

  close(): void {
    if (this.#mass === 0) return;
    this.put(this.#moment / this.#mass, this.#mass);
    this.#below += this.#mass;
    this.#mass = 0;
    this.#moment = 0;
  }

  put(log: number, mass: number): void {
    this.atS[this.count] = Math.exp(log);
    this.weight[this.count++] = mass;
  }
}

/** Points at most: by their least weights, with one for what is left. */
const MOST_POINTS = Math.ceil((1 - 2 * OUTER) / POINT + (2 * OUTER) / OUTER_POINT) + 2 + UNSEEN_Z.length;

export class Smoother {
  readonly #doubles: Doubles;
  /** Cells of the grid within reach of the last run, by their number modulo TAPS. */
  readonly #window = new Float64Array(TAPS);

  constructor(doubles: Doubles) {
    this.#doubles = doubles;
  }

  /**
   * Distribution of the next running time, times exp(`offset`). O(count), and one exponential for each of at most
   * MOST_POINTS points.
   */
  of(runs: WeightedRuns, offset = 0): Distribution {
    const { total, mean, bandwidth } = summary(runs);
    const unseen = UNSEEN_RUNS / ((runs.runs ?? runs.count) + 1);
    const step = bandwidth / 2;
    const points = new Points(MOST_POINTS, this.#doubles);
    const share = (1 - unseen) / total;
    let first = cellOf(runs, 0, step);
    for (let i = 0; i < runs.count; i++) {
      const cell = cellOf(runs, i, step);
      // No later run reaches the cells before.
      const gone = Math.min(cell, first + TAPS);
      for (; first < gone; first++) this.#handOut(points, first, step, offset);
      first = cell;
      const mass = (runs.weight[i] as number) * share;
      for (let t = 0; t < TAPS; t++) {
        const at = placeOf(cell + t);
        this.#window[at] = (this.#window[at] as number) + mass * (KERNEL[t] as number);
      }
    }
    for (let t = 0; t < TAPS; t++) this.#handOut(points, first + t, step, offset);
    points.close();
    for (const z of UNSEEN_Z) points.put(mean + offset + UNSEEN_SIGMA * z, unseen / UNSEEN_Z.length);
    return distributionOf(points.atS.subarray(0, points.count), points.weight.subarray(0, points.count));
  }

  #handOut(points: Points, cell: number, step: number, offset: number): void {
    const at = placeOf(cell);
    const mass = this.#window[at] as number;
    if (mass === 0) return;
    this.#window[at] = 0;
    points.add(cell * step + offset, mass);
  }
}

/** First cell that a run reaches. */
const cellOf = ({ logS }: WeightedRuns, i: number, step: number): number =>
  Math.round((logS[i] as number) / step) - REACH;

const placeOf = (cell: number): number => ((cell % TAPS) + TAPS) % TAPS;
