/**
 * Streaming histogram in bounded memory: Ben-Haim and Tom-Tov's, the NumericHistogram that SLearn (section 5.2.1) names
 * and that stands behind 3Sigma's per-feature distributions (SLearn section 2.3).
 *
 * A histogram is a block of `BLOCK` doubles inside a larger array, so that a hundred thousand of them are one
 * allocation. Layout from its offset: [bins in use, 1 if bins were ever merged, BINS centroids, BINS weights].
 *
 * Invariants: centroids ascend strictly; weights are > 0 and sum to the number of values added; the weighted mean of the
 * centroids is the mean of the values (merging keeps sums). As long as at most BINS distinct values came, it is exact.
 *
 * One departure from the paper: the two bins to merge are those with the smallest ratio between centroids, not the
 * smallest difference. Runtimes span five decades; differences would spend all bins on the few longest ones.
 * Adding costs O(BINS), memory is O(BINS) whatever the number of values.
 */

/** Bins kept per histogram. SLearn and 3Sigma name no number; 32 keeps the median of a log-normal within 2 % (test). */
export const BINS = 32;
const LOSSY = 1;
const CENTROIDS = 2;
const WEIGHTS = CENTROIDS + BINS;
/** Doubles that one histogram takes. */
export const BLOCK = WEIGHTS + BINS;

/** Adds `value` (> 0) to the histogram at `at`. */
export function addToHistogram(h: Float64Array, at: number, value: number): void {
  const count = h[at] as number;
  const first = at + CENTROIDS;
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((h[first + middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  const weights = at + WEIGHTS;
  if (low < count && h[first + low] === value) {
    h[weights + low] = (h[weights + low] as number) + 1;
    return;
  }
  if (count === BINS) {
    addToFull(h, at, low, value);
    return;
  }
  for (let i = count; i > low; i--) {
    h[first + i] = h[first + i - 1] as number;
    h[weights + i] = h[weights + i - 1] as number;
  }
  h[first + low] = value;
  h[weights + low] = 1;
  h[at] = count + 1;
}

/** Adds a bin of `value` before that at `low` and merges the two that are then closest, at once: only bins between the two places move. */
function addToFull(h: Float64Array, at: number, low: number, value: number): void {
  const first = at + CENTROIDS;
  const weights = at + WEIGHTS;
  h[at + LOSSY] = 1;
  const closest = closestWith(h, first, low, value);
  if (closest === low - 1 || closest === low) {
    const weight = h[weights + closest] as number;
    h[first + closest] = ((h[first + closest] as number) * weight + value) / (weight + 1);
    h[weights + closest] = weight + 1;
    return;
  }
  const left = closest < low ? closest : closest - 1;
  const a = h[weights + left] as number;
  const b = h[weights + left + 1] as number;
  const merged = ((h[first + left] as number) * a + (h[first + left + 1] as number) * b) / (a + b);
  h[first + closest] = merged;
  h[weights + closest] = a + b;
  // Of two bins there is one now: the other's place moves to where the value belongs.
  let hole = closest < low ? closest + 1 : closest - 1;
  for (; hole < low - 1; hole++) {
    h[first + hole] = h[first + hole + 1] as number;
    h[weights + hole] = h[weights + hole + 1] as number;
  }
  for (; hole > low; hole--) {
    h[first + hole] = h[first + hole - 1] as number;
    h[weights + hole] = h[weights + hole - 1] as number;
  }
  h[first + hole] = value;
  h[weights + hole] = 1;
}

/**
 * Of BINS bins from `first` with one of `value` before that at `low`: which one is closest to the one after it, the first of several. Looks from
 * `value` to both sides: the gap that it halves is often the smallest then.
 */
function closestWith(h: Float64Array, first: number, low: number, value: number): number {
  let closest = low;
  let lowLeft = value;
  let lowRight = low === BINS ? Infinity : (h[first + low] as number);
  let right = value;
  for (let i = low - 1; i >= 0; i--) {
    const left = h[first + i] as number;
    // right / left <= lowRight / lowLeft without dividing.
    if (right * lowLeft <= lowRight * left) {
      lowLeft = left;
      lowRight = right;
      closest = i;
    }
    right = left;
  }
  for (let i = low + 1; i < BINS; i++) {
    const left = h[first + i - 1] as number;
    right = h[first + i] as number;
    if (right * lowLeft < lowRight * left) {
      lowLeft = left;
      lowRight = right;
      closest = i;
    }
  }
  return closest;
}

/**
 * Median of what was added (`total` values, >= 1). Exact while no bins were merged (the mean of the two middle values
 * when their number is even); then interpolated, each bin's weight lying half on either side of its centroid.
 */
export function histogramMedian(h: Float64Array, at: number, total: number): number {
  const count = h[at] as number;
  const first = at + CENTROIDS;
  const weights = at + WEIGHTS;
  const target = total / 2;
  let below = 0;
  if (h[at + LOSSY] === 0) {
    for (let i = 0; i < count; i++) {
      below += h[weights + i] as number;
      if (below > target || i + 1 === count) return h[first + i] as number;
      if (below === target) return ((h[first + i] as number) + (h[first + i + 1] as number)) / 2;
    }
  }
  let beforeMass = 0;
  let before = h[first] as number;
  for (let i = 0; i < count; i++) {
    const weight = h[weights + i] as number;
    const centroid = h[first + i] as number;
    const mass = below + weight / 2;
    if (mass >= target) {
      return i === 0 ? centroid : before + ((centroid - before) * (target - beforeMass)) / (mass - beforeMass);
    }
    below += weight;
    beforeMass = mass;
    before = centroid;
  }
  return before;
}

/** Where the bins lie in the array: `count` centroids from `values`, as many weights from `weights`. */
export const histogramBins = (h: Float64Array, at: number): Bins => ({
  count: h[at] as number,
  values: at + CENTROIDS,
  weights: at + WEIGHTS,
});

export interface Bins {
  readonly count: number;
  readonly values: number;
  readonly weights: number;
}

/** A histogram as plain data, to be stored. */
export interface HistogramState {
  readonly centroids: readonly number[];
  readonly weights: readonly number[];
  readonly lossy: boolean;
}

export function readHistogram(h: Float64Array, at: number): HistogramState {
  const { count, values, weights } = histogramBins(h, at);
  return {
    centroids: [...h.subarray(values, values + count)],
    weights: [...h.subarray(weights, weights + count)],
    lossy: h[at + LOSSY] === 1,
  };
}

/** Overwrites the block with `state` (at most BINS bins). */
export function writeHistogram(h: Float64Array, at: number, state: HistogramState): void {
  h.fill(0, at, at + BLOCK);
  h[at] = state.centroids.length;
  h[at + LOSSY] = state.lossy ? 1 : 0;
  h.set(state.centroids, at + CENTROIDS);
  h.set(state.weights, at + WEIGHTS);
}
