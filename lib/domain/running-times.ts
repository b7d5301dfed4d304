import { add, raw, seconds, type Seconds } from '../kernel/units.ts';
import { distribution, type Distribution } from './distribution.ts';

/**
 * Running times of a stage's successful tasks in bounded space: counts in bins of equal ratio (DDSketch: Masson, Rim,
 * Lee, VLDB 2019, section 2). Bin i holds times in (r^(i-1), r^i] seconds; any quantile is within ACCURACY of the true
 * one. If times span more than MAX_BINS bins, the shortest share the lowest bin. Counts do not depend on the order.
 */
export interface RunningTimes {
  readonly count: number;
  readonly sumS: Seconds;
  /** Index of the first bin of `counts`. */
  readonly first: number;
  /** Neither the first nor the last is 0. At most MAX_BINS. */
  readonly counts: readonly number[];
}

/** Relative error of a quantile. */
export const ACCURACY = 0.05;
const RATIO = (1 + ACCURACY) / (1 - ACCURACY);
/** Times that differ by up to a factor of 600 keep bins of their own. */
export const MAX_BINS = 64;
/** Shorter ones are taken for this long. */
const LEAST_S = 0.001;

const binOf = (s: number): number => Math.ceil(Math.log(Math.max(s, LEAST_S)) / Math.log(RATIO));
/** Representative time of a bin, within ACCURACY of all its times. */
const timeOf = (bin: number): number => (2 * RATIO ** bin) / (RATIO + 1);

/** Adds one time. O(MAX_BINS). */
export function withTime(times: RunningTimes | undefined, runtimeS: Seconds): RunningTimes {
  const bin = binOf(raw(runtimeS));
  if (times === undefined) return { count: 1, sumS: runtimeS, first: bin, counts: [1] };
  const [count, sumS] = [times.count + 1, add(times.sumS, runtimeS)];
  const known = times.counts[bin - times.first];
  // Most times fall in a bin that is there.
  if (known !== undefined) return { ...times, count, sumS, counts: times.counts.with(bin - times.first, known + 1) };
  const last = times.first + times.counts.length - 1;
  const to = Math.max(last, bin);
  const least = to - MAX_BINS + 1;
  const first = Math.max(least, Math.min(times.first, bin));
  const counts = Array.from({ length: to - first + 1 }, () => 0);
  times.counts.forEach((n, i) => addTo(counts, Math.max(times.first + i, first) - first, n));
  addTo(counts, Math.max(bin, first) - first, 1);
  return { count, sumS, first, counts };
}

const addTo = (counts: number[], at: number, n: number): void => {
  counts[at] = (counts[at] ?? 0) + n;
};

export const meanTime = ({ sumS, count }: RunningTimes): Seconds => seconds(raw(sumS) / count);

/** Bins in use, ascending: representative time and count. */
export const binsOf = ({ first, counts }: RunningTimes): readonly (readonly [atS: Seconds, count: number])[] =>
  counts.flatMap((n, i) => (n === 0 ? [] : [[seconds(timeOf(first + i)), n] as const]));

/** The times as a distribution: a point for each bin in use. */
export const distributionOfTimes = (times: RunningTimes): Distribution =>
  distribution(binsOf(times).map(([atS, n]) => [raw(atS), n] as const));
