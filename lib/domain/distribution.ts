import { invariant } from '../kernel/errors.ts';
import { raw, seconds, type Seconds } from '../kernel/units.ts';

/**
 * A distribution over durations as at most a few dozen weighted points: never only a point estimate.
 * Invariants: `atS` ascends strictly and is >= 0; `weight` has the same length (>= 1), is positive and sums to 1.
 */
export interface Distribution {
  /** Support, seconds. */
  readonly atS: Float64Array;
  /** Probability mass at each support point. */
  readonly weight: Float64Array;
}

/** Builds a distribution from unsorted points; equal points merge, weights are normalised. */
export function distribution(points: readonly (readonly [seconds: number, weight: number])[]): Distribution {
  return distributionOf(
    Float64Array.from(points, ([s]) => s),
    Float64Array.from(points, ([, w]) => w),
  );
}

/** The same of points in two arrays, which it takes over. O(points) where they ascend, or nearly so. */
export function distributionOf(atS: Float64Array, weight: Float64Array): Distribution {
  const sorted = sortPoints(atS, weight);
  let total = 0;
  let count = 0;
  for (let i = 0; i < sorted; i++) {
    const s = atS[i] as number;
    const w = weight[i] as number;
    total += w;
    if (count > 0 && atS[count - 1] === s) weight[count - 1] = (weight[count - 1] as number) + w;
    else {
      atS[count] = s;
      weight[count++] = w;
    }
  }
  invariant(count === 0 ? null : count, 'a distribution has at least one point of positive weight');
  for (let i = 0; i < count; i++) weight[i] = (weight[i] as number) / total;
  return count === atS.length ? { atS, weight } : { atS: atS.subarray(0, count), weight: weight.subarray(0, count) };
}

/** Moves points of positive weight to the front, ascending; equal points keep their order. Returns their number. */
function sortPoints(atS: Float64Array, weight: Float64Array): number {
  let count = 0;
  for (let i = 0; i < atS.length; i++) {
    const s = atS[i] as number;
    const w = weight[i] as number;
    if (!(w > 0)) continue;
    let at = count++;
    for (; at > 0 && (atS[at - 1] as number) > s; at--) {
      atS[at] = atS[at - 1] as number;
      weight[at] = weight[at - 1] as number;
    }
    atS[at] = s;
    weight[at] = w;
  }
  return count;
}

/**
 * Zeroed doubles, carved out of shared buffers: an ArrayBuffer for each forecast would make a forecast six times as
 * dear. No double is used twice. A buffer is freed with the last forecast in it. One object per maker of forecasts.
 */
export class Doubles {
  #buffer = new ArrayBuffer(0);
  #used = 0;

  take(count: number): Float64Array {
    const bytes = count * Float64Array.BYTES_PER_ELEMENT;
    if (this.#used + bytes > this.#buffer.byteLength) {
      this.#buffer = new ArrayBuffer(Math.max(BUFFER_BYTES, bytes));
      this.#used = 0;
    }
    const view = new Float64Array(this.#buffer, this.#used, count);
    this.#used += bytes;
    return view;
  }
}
const BUFFER_BYTES = 8192;

/** All mass at one duration. */
export const certain = (s: Seconds): Distribution => ({ atS: Float64Array.of(raw(s)), weight: Float64Array.of(1) });

export function meanS(d: Distribution): number {
  let sum = 0;
  for (let i = 0; i < d.atS.length; i++) sum += (d.atS[i] ?? 0) * (d.weight[i] ?? 0);
  return sum;
}
export const mean = (d: Distribution): Seconds => seconds(meanS(d));

/** Smallest duration, in seconds, that is not exceeded with probability >= p. */
export function quantileS(d: Distribution, p: number): number {
  let mass = 0;
  for (let i = 0; i < d.atS.length; i++) {
    mass += d.weight[i] ?? 0;
    if (mass >= p - 1e-12) return d.atS[i] ?? 0;
  }
  return d.atS.at(-1) ?? 0;
}
export const quantile = (d: Distribution, p: number): Seconds => seconds(quantileS(d, p));

/**
 * Remaining work after `done`: the distribution of duration - done given duration > done. Work that has outlived its
 * whole distribution was underestimated; its honest guess is as long again as it has run (Harchol-Balter and Downey, as
 * cited in JamaisVu section 2.2 and Stratus section 3.2.4).
 */
export function remaining(d: Distribution, done: Seconds): Distribution {
  const { atS, weight } = d;
  const doneS = raw(done);
  const first = firstAfter(d, doneS);
  if (first === atS.length) return certain(done);
  const total = massFrom(d, first);
  const left = { atS: atS.slice(first), weight: weight.slice(first) };
  for (let i = 0; i < left.atS.length; i++) {
    left.atS[i] = (left.atS[i] ?? 0) - doneS;
    left.weight[i] = (left.weight[i] ?? 0) / total;
  }
  return left;
}

/**
 * `mean(remaining(d, done))`, seconds, to the last bit. Asked for each running task in each cycle: nothing is
 * allocated.
 */
export function meanRemaining(d: Distribution, done: Seconds): number {
  const doneS = raw(done);
  const first = firstAfter(d, doneS);
  if (first === d.atS.length) return doneS;
  const total = massFrom(d, first);
  let sum = 0;
  for (let i = first; i < d.atS.length; i++) sum += ((d.atS[i] ?? 0) - doneS) * ((d.weight[i] ?? 0) / total);
  return sum;
}

/** `quantile(remaining(d, done), p)`, likewise. */
export function quantileRemaining(d: Distribution, done: Seconds, p: number): Seconds {
  const doneS = raw(done);
  const first = firstAfter(d, doneS);
  if (first === d.atS.length) return done;
  const total = massFrom(d, first);
  let mass = 0;
  for (let i = first; i < d.atS.length; i++) {
    mass += (d.weight[i] ?? 0) / total;
    if (mass >= p - 1e-12) return seconds((d.atS[i] ?? 0) - doneS);
  }
  return seconds((d.atS.at(-1) ?? 0) - doneS);
}

/** P(duration > s) of `remaining(d, done)`, likewise. */
export function exceedsRemaining(d: Distribution, done: Seconds, s: Seconds): number {
  const [doneS, leastS] = [raw(done), raw(s)];
  const first = firstAfter(d, doneS);
  if (first === d.atS.length) return doneS > leastS ? 1 : 0;
  const total = massFrom(d, first);
  let mass = 0;
  for (let i = first; i < d.atS.length; i++) {
    if ((d.atS[i] ?? 0) - doneS > leastS) mass += (d.weight[i] ?? 0) / total;
  }
  return mass;
}

/** Expectation of `f(seconds left)` over `remaining(d, done)`, likewise. */
export function expectRemaining(d: Distribution, done: Seconds, f: (s: number) => number): number {
  const doneS = raw(done);
  const first = firstAfter(d, doneS);
  if (first === d.atS.length) return f(doneS);
  const total = massFrom(d, first);
  let sum = 0;
  for (let i = first; i < d.atS.length; i++) sum += f((d.atS[i] ?? 0) - doneS) * ((d.weight[i] ?? 0) / total);
  return sum;
}

/** Index of the first point above `doneS`; the number of points if there is none. */
function firstAfter({ atS }: Distribution, doneS: number): number {
  let low = 0;
  let high = atS.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((atS[middle] as number) <= doneS) low = middle + 1;
    else high = middle;
  }
  return low;
}

function massFrom({ weight }: Distribution, first: number): number {
  let total = 0;
  for (let i = first; i < weight.length; i++) total += weight[i] ?? 0;
  return total;
}
