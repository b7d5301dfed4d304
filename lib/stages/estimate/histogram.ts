/**
 * Streaming histogram in bounded memory: Ben-Haim and Tom-Tov's, the NumericHistogram of SLearn (section 5.2.1) and of
 * 3Sigma's per-feature distributions (SLearn section 2.3).
 * A histogram is a block of `BLOCK` doubles inside a larger array, so that a hundred thousand of them are one
 * allocation. Layout from its offset: [bins in use, least ratio, BINS + 1 centroids, BINS + 1 weights] (one spare bin
 * holds the value being added until two bins merge). Least ratio: 0 until bins are merged for the first time, then a
 * number >= 1 that no two neighbouring centroids are closer than.
 * Invariants: centroids ascend strictly; weights are > 0 and sum to the number of values added; the weighted mean of
 * the centroids is the mean of the values (merging keeps sums). As long as at most BINS distinct values came, it is
 * exact.
 * One departure from the paper: the two bins to merge are those with the smallest ratio between centroids, not the
 * smallest difference. Runtimes span five decades; differences would spend all bins on the few longest ones. Adding
 * costs O(log BINS) mostly (`absorb`), O(BINS) else; memory is O(BINS) whatever the number of values.
 */

/** Bins kept per histogram. SLearn and 3Sigma name no number; 32 keeps the median of a log-normal within 2 % (test). */
export const BINS = 32;
const LEAST_RATIO = 1;
const CENTROIDS = 2;
const WEIGHTS = CENTROIDS + BINS + 1;
/** Doubles that one histogram takes. */
export const BLOCK = WEIGHTS + BINS + 1;

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
  if (count === BINS && absorb(h, at, low, value)) return;
  for (let i = count; i > low; i--) {
    h[first + i] = h[first + i - 1] as number;
    h[weights + i] = h[weights + i - 1] as number;
  }
  h[first + low] = value;
  h[weights + low] = 1;
  h[at] = count + 1;
  if (count + 1 > BINS) mergeClosest(h, at);
}

/**
 * Adds `value`, which belongs before the bin at `low`, to the closer one of its two neighbours, if it is closer to that
 * than any two bins are to each other: the general case would merge these two. False if that is unknown. Once a
 * histogram is full, false is rare.
 */
function absorb(h: Float64Array, at: number, low: number, value: number): boolean {
  const first = at + CENTROIDS;
  const below = low === 0 ? 0 : (h[first + low - 1] as number);
  const above = low === BINS ? Infinity : (h[first + low] as number);
  const isAbove = value * value > below * above;
  const least = h[at + LEAST_RATIO] as number;
  if ((isAbove ? above / value : value / below) >= least) return false;
  const into = isAbove ? low : low - 1;
  const weight = h[at + WEIGHTS + into] as number;
  const centroid = ((h[first + into] as number) * weight + value) / (weight + 1);
  h[first + into] = centroid;
  h[at + WEIGHTS + into] = weight + 1;
  // The bin has moved towards its neighbour on the other side of the value.
  h[at + LEAST_RATIO] = Math.min(least, isAbove ? centroid / below : above / centroid);
  return true;
}

function mergeClosest(h: Float64Array, at: number): void {
  const first = at + CENTROIDS;
  const weights = at + WEIGHTS;
  const count = h[at] as number;
  let closest = 0;
  let left = h[first] as number;
  let right = h[first + 1] as number;
  let lowLeft = left;
  let lowRight = right;
  for (let i = 1; i + 1 < count; i++) {
    left = right;
    right = h[first + i + 1] as number;
    // right / left < lowRight / lowLeft without dividing.
    if (right * lowLeft < lowRight * left) {
      lowLeft = left;
      lowRight = right;
      closest = i;
    }
  }
  const a = h[weights + closest] as number;
  const b = h[weights + closest + 1] as number;
  h[first + closest] = ((h[first + closest] as number) * a + (h[first + closest + 1] as number) * b) / (a + b);
  h[weights + closest] = a + b;
  for (let i = closest + 1; i + 1 < count; i++) {
    h[first + i] = h[first + i + 1] as number;
    h[weights + i] = h[weights + i + 1] as number;
  }
  h[at] = count - 1;
  h[at + LEAST_RATIO] = lowRight / lowLeft;
}

/**
 * Median of the added values (`total` values, >= 1). Exact while no bins were merged (the mean of the two middle values
 * for an even number); then interpolated, with half of each bin's weight on either side of its centroid.
 */
export function histogramMedian(h: Float64Array, at: number, total: number): number {
  const count = h[at] as number;
  const first = at + CENTROIDS;
  const weights = at + WEIGHTS;
  const target = total / 2;
  let below = 0;
  if (h[at + LEAST_RATIO] === 0) {
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

/** Bins in the array: `count` centroids from `values`, as many weights from `weights`. */
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
    lossy: h[at + LEAST_RATIO] !== 0,
  };
}

/** Overwrites the block with `state` (at most BINS bins). */
export function writeHistogram(h: Float64Array, at: number, state: HistogramState): void {
  h.fill(0, at, at + BLOCK);
  h[at] = state.centroids.length;
  // 1 is a safe least ratio: neighbours are never closer.
  h[at + LEAST_RATIO] = state.lossy ? 1 : 0;
  h.set(state.centroids, at + CENTROIDS);
  h.set(state.weights, at + WEIGHTS);
}
