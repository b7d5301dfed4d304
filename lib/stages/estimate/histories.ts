import { Doubles, type Distribution } from '../../domain/distribution.ts';
import { BLOCK, addToHistogram, histogramBins, histogramMedian, readHistogram, writeHistogram } from './histogram.ts';
import { withUnseen } from './unseen.ts';
import type { HistogramState } from './histogram.ts';

/**
 * The four estimators of JamaisVu section 3.3, then the same four on the median-filtered history (section 3.4). The
 * order decides between equally good ones.
 */
export const ESTIMATORS = [
  'median',
  'average',
  'recent',
  'rolling',
  'filtered median',
  'filtered average',
  'filtered recent',
  'filtered rolling',
] as const;
export type Estimator = (typeof ESTIMATORS)[number];
const E = ESTIMATORS.length;

/** "Recent" averages the last 20 runtimes (JamaisVu section 3.3). */
export const RECENT = 20;
/** Weight of the newest runtime in "rolling" (JamaisVu section 3.3). */
export const ALPHA = 0.5;
/**
 * Relative error of one imagined past prediction of every pair: half the mean runtime. Without it, a history of one or
 * two runs would win by luck, or lose for lack of a past. JamaisVu chooses by the bare NRMSE; on the Google trace this
 * puts 89.3 % instead of 88.9 % of predictions within a factor of two.
 */
const UNPROVEN = 0.5;
// Layout of a slot, in doubles.
const N = 0;
const SUM = 1;
const ROLLING = 2;
const FILTERED_SUM = 3;
const FILTERED_ROLLING = 4;
const SCORE = 5;
const BEST = 6;
const PREDICTION = 7;
const SQUARED_ERROR = PREDICTION + E;
const RING = SQUARED_ERROR + E;
const FILTERED_RING = RING + RECENT;
const STRIDE = FILTERED_RING + RECENT;

/** State of one feature-value, as plain data. */
export interface HistoryState {
  readonly n: number;
  readonly sum: number;
  readonly rolling: number;
  readonly filteredSum: number;
  readonly filteredRolling: number;
  readonly squaredErrors: readonly number[];
  /** Oldest first, at most RECENT. */
  readonly recent: readonly number[];
  readonly filteredRecent: readonly number[];
  /** Absent while n < 2: the one runtime is `recent`. */
  readonly histogram: HistogramState | null;
  readonly filteredHistogram: HistogramState | null;
}

/**
 * Runtime histories, one per slot, each in bounded memory: sums, a ring of the last 20, and from the second runtime on
 * two streaming histograms (raw and median-filtered). 63 doubles per slot and 2 x 66 more with histograms: 0.5 to 1.6
 * kB for any number of runtimes. Adding is O(BINS + RECENT), reading a prediction O(1).
 */
export class Histories {
  #slots = new Float64Array(0);
  #blockOf = new Int32Array(0);
  #blocks = new Float64Array(0);
  #blocksUsed = 0;
  readonly #freeBlocks: number[] = [];
  readonly #doubles = new Doubles();
  /** Scratch space for the distribution. */
  readonly #sorted = new Float64Array(RECENT);
  readonly #sortedWeight = new Float64Array(RECENT);

  /** Makes room for slots 0 .. count-1. New ones are empty. */
  reserve(count: number): void {
    if (this.#blockOf.length >= count) return;
    const slots = new Float64Array(count * STRIDE);
    slots.set(this.#slots);
    const blockOf = new Int32Array(count).fill(-1);
    blockOf.set(this.#blockOf);
    this.#slots = slots;
    this.#blockOf = blockOf;
  }

  clear(slot: number): void {
    this.#slots.fill(0, slot * STRIDE, (slot + 1) * STRIDE);
    const block = this.#blockOf[slot] as number;
    if (block !== -1) this.#freeBlocks.push(block);
    this.#blockOf[slot] = -1;
  }

  count(slot: number): number {
    return this.#slots[slot * STRIDE + N] as number;
  }

  /** Score of the slot's best estimator; lower is better. Its NRMSE with one UNPROVEN prediction counted in. */
  score(slot: number): number {
    return this.#slots[slot * STRIDE + SCORE] as number;
  }

  /** Index into ESTIMATORS of the estimator with the lowest error so far. */
  best(slot: number): number {
    return this.#slots[slot * STRIDE + BEST] as number;
  }

  /** Next prediction of `estimator`, seconds. */
  prediction(slot: number, estimator: number): number {
    return this.#slots[slot * STRIDE + PREDICTION + estimator] as number;
  }

  /**
   * Error of one estimator of the slot: RMSE of its past predictions divided by the mean runtime (JamaisVu section
   * 3.3). Infinity before any prediction could be checked (fewer than two runtimes).
   */
  nrmseOf(slot: number, estimator: number): number {
    const o = slot * STRIDE;
    const n = this.#slots[o + N] as number;
    if (n < 2) return Infinity;
    return (
      Math.sqrt((this.#slots[o + SQUARED_ERROR + estimator] as number) / (n - 1)) /
      ((this.#slots[o + SUM] as number) / n)
    );
  }

  /**
   * Judges every estimator's current prediction by the runtime (seconds, > 0), then adds the runtime to the history.
   */
  add(slot: number, runtimeS: number): void {
    const f = this.#slots;
    const o = slot * STRIDE;
    const n = f[o + N] as number;
    if (n > 0) {
      for (let e = 0; e < E; e++) {
        const error = (f[o + PREDICTION + e] as number) - runtimeS;
        f[o + SQUARED_ERROR + e] = (f[o + SQUARED_ERROR + e] as number) + error * error;
      }
    }
    // Unsigned integers: a remainder of doubles would be a call.
    const newest = (n >>> 0) % RECENT;
    f[o + RING + newest] = runtimeS;
    const filtered = this.#filtered(o, n);
    f[o + FILTERED_RING + newest] = filtered;
    f[o + N] = n + 1;
    f[o + SUM] = (f[o + SUM] as number) + runtimeS;
    f[o + FILTERED_SUM] = (f[o + FILTERED_SUM] as number) + filtered;
    const keep = n === 0 ? 0 : 1 - ALPHA;
    f[o + ROLLING] = keep * (f[o + ROLLING] as number) + (1 - keep) * runtimeS;
    f[o + FILTERED_ROLLING] = keep * (f[o + FILTERED_ROLLING] as number) + (1 - keep) * filtered;
    this.#addToHistograms(slot, n, runtimeS, filtered);
    this.#refresh(slot);
  }

  /**
   * Median of the last three runtimes up to the n-th; of fewer at the beginning. JamaisVu section 3.4 gives no width;
   * three removes single outliers at the least delay (five was no better on the Google trace).
   */
  #filtered(o: number, n: number): number {
    const f = this.#slots;
    const ring = o + RING;
    const count = n >>> 0;
    const a = f[ring + (count % RECENT)] as number;
    if (count === 0) return a;
    const b = f[ring + ((count - 1) % RECENT)] as number;
    if (count === 1) return (a + b) / 2;
    const c = f[ring + ((count - 2) % RECENT)] as number;
    return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
  }

  #addToHistograms(slot: number, n: number, runtimeS: number, filtered: number): void {
    if (n === 0) return;
    let at = this.#blockAt(slot);
    if (at === -1) {
      at = this.#newBlock(slot);
      // The first runtime is its own filtered value.
      const first = this.#slots[slot * STRIDE + RING] as number;
      addToHistogram(this.#blocks, at, first);
      addToHistogram(this.#blocks, at + BLOCK, first);
    }
    addToHistogram(this.#blocks, at, runtimeS);
    addToHistogram(this.#blocks, at + BLOCK, filtered);
  }

  #blockAt(slot: number): number {
    const block = this.#blockOf[slot] as number;
    return block === -1 ? -1 : block * 2 * BLOCK;
  }

  #newBlock(slot: number): number {
    let block = this.#freeBlocks.pop();
    if (block === undefined) {
      block = this.#blocksUsed++;
      if ((block + 1) * 2 * BLOCK > this.#blocks.length) {
        const grown = new Float64Array(Math.max(64 * 2 * BLOCK, this.#blocks.length * 2));
        grown.set(this.#blocks);
        this.#blocks = grown;
      }
    }
    this.#blockOf[slot] = block;
    const at = block * 2 * BLOCK;
    this.#blocks.fill(0, at, at + 2 * BLOCK);
    return at;
  }

  /** Recomputes the eight predictions and the best of them from the history. */
  #refresh(slot: number): void {
    const f = this.#slots;
    const o = slot * STRIDE;
    const n = f[o + N] as number;
    const at = this.#blockAt(slot);
    const kept = Math.min(n, RECENT);
    let recent = 0;
    let filteredRecent = 0;
    for (let i = 0; i < kept; i++) {
      recent += f[o + RING + i] as number;
      filteredRecent += f[o + FILTERED_RING + i] as number;
    }
    const first = f[o + RING] as number;
    f[o + PREDICTION] = at === -1 ? first : histogramMedian(this.#blocks, at, n);
    f[o + PREDICTION + 1] = (f[o + SUM] as number) / n;
    f[o + PREDICTION + 2] = recent / kept;
    f[o + PREDICTION + 3] = f[o + ROLLING] as number;
    f[o + PREDICTION + 4] = at === -1 ? first : histogramMedian(this.#blocks, at + BLOCK, n);
    f[o + PREDICTION + 5] = (f[o + FILTERED_SUM] as number) / n;
    f[o + PREDICTION + 6] = filteredRecent / kept;
    f[o + PREDICTION + 7] = f[o + FILTERED_ROLLING] as number;

    let best = 0;
    for (let e = 1; e < E; e++) {
      if ((f[o + SQUARED_ERROR + e] as number) < (f[o + SQUARED_ERROR + best] as number)) best = e;
    }
    f[o + BEST] = best;
    const meanS = (f[o + SUM] as number) / n;
    const squares = (f[o + SQUARED_ERROR + best] as number) / (meanS * meanS);
    f[o + SCORE] = Math.sqrt((squares + UNPROVEN * UNPROVEN) / n);
  }

  /** The whole (unfiltered) history. */
  wholeDistribution(slot: number): Distribution {
    const at = this.#blockAt(slot);
    const runs = this.count(slot);
    const doubles = this.#doubles;
    if (at !== -1) return withUnseen(this.#blocks, this.#blocks, { ...histogramBins(this.#blocks, at), runs, doubles });
    return withUnseen(this.#slots, ONE, { count: 1, values: slot * STRIDE + RING, weights: 0, runs, doubles });
  }

  /**
   * The last runtimes (unfiltered), at most RECENT; each weighs `decay` times the one after it. Under a decay the
   * oldest one stands for all before it, as the first value of an exponential average does: the mean is "rolling"
   * itself.
   */
  recentDistribution(slot: number, decay: number): Distribution {
    const o = slot * STRIDE;
    const n = this.#slots[o + N] as number;
    const sorted = this.#sorted;
    const sortedWeight = this.#sortedWeight;
    let count = 0;
    let weight = 1;
    const kept = Math.min(n, RECENT);
    for (let age = 0; age < kept; age++) {
      const value = this.#slots[o + RING + ((n - 1 - age) % RECENT)] as number;
      let i = count++;
      for (; i > 0 && (sorted[i - 1] as number) > value; i--) {
        sorted[i] = sorted[i - 1] as number;
        sortedWeight[i] = sortedWeight[i - 1] as number;
      }
      sorted[i] = value;
      sortedWeight[i] = decay < 1 && age + 1 === kept ? weight / (1 - decay) : weight;
      weight *= decay;
    }
    return withUnseen(sorted, sortedWeight, { count, values: 0, weights: 0, runs: count, doubles: this.#doubles });
  }

  read(slot: number): HistoryState {
    const o = slot * STRIDE;
    const f = this.#slots;
    const n = f[o + N] as number;
    const at = this.#blockAt(slot);
    const ring = (begin: number): number[] => {
      const kept = Math.min(n, RECENT);
      return Array.from({ length: kept }, (_, i) => f[o + begin + ((n - kept + i) % RECENT)] as number);
    };
    return {
      n,
      sum: f[o + SUM] as number,
      rolling: f[o + ROLLING] as number,
      filteredSum: f[o + FILTERED_SUM] as number,
      filteredRolling: f[o + FILTERED_ROLLING] as number,
      squaredErrors: [...f.subarray(o + SQUARED_ERROR, o + SQUARED_ERROR + E)],
      recent: ring(RING),
      filteredRecent: ring(FILTERED_RING),
      histogram: at === -1 ? null : readHistogram(this.#blocks, at),
      filteredHistogram: at === -1 ? null : readHistogram(this.#blocks, at + BLOCK),
    };
  }

  /** Replaces the slot's content by `state`. */
  write(slot: number, state: HistoryState): void {
    this.clear(slot);
    const o = slot * STRIDE;
    const f = this.#slots;
    f[o + N] = state.n;
    f[o + SUM] = state.sum;
    f[o + ROLLING] = state.rolling;
    f[o + FILTERED_SUM] = state.filteredSum;
    f[o + FILTERED_ROLLING] = state.filteredRolling;
    f.set(state.squaredErrors, o + SQUARED_ERROR);
    const kept = state.recent.length;
    for (let i = 0; i < kept; i++) {
      f[o + RING + ((state.n - kept + i) % RECENT)] = state.recent[i] as number;
      f[o + FILTERED_RING + ((state.n - kept + i) % RECENT)] = state.filteredRecent[i] as number;
    }
    if (state.histogram !== null && state.filteredHistogram !== null) {
      const at = this.#newBlock(slot);
      writeHistogram(this.#blocks, at, state.histogram);
      writeHistogram(this.#blocks, at + BLOCK, state.filteredHistogram);
    }
    this.#refresh(slot);
  }
}

const ONE = Float64Array.of(1);
