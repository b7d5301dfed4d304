/** Expected maximum of independent running times. */
import type { Distribution } from './distribution.ts';

/** Alike running times, and how many of them. */
export interface Alike {
  readonly left: Distribution;
  readonly count: number;
  /** Seconds by which each is longer than `left`. Absent: 0. */
  readonly laterS?: number;
}

/** Seconds; 0 of none. O(points x distributions). */
export function expectedLongestS(of: readonly Alike[]): number {
  const next = new Int32Array(of.length);
  const done = new Float64Array(of.length);
  // P(all done) is a product, in which those that cannot be done yet are counted apart.
  let undone = of.length;
  let product = 1;
  let expected = 0;
  let lastS = 0;
  for (;;) {
    let first = -1;
    let atS = Infinity;
    for (let i = 0; i < of.length; i++) {
      const { left, laterS = 0 } = of[i] as Alike;
      const s = (left.atS[next[i] ?? 0] ?? Infinity) + laterS;
      if (s < atS) [first, atS] = [i, s];
    }
    if (first < 0) return expected;
    expected += (atS - lastS) * (undone > 0 ? 1 : 1 - product);
    lastS = atS;
    const { left, count } = of[first] as Alike;
    const at = next[first] ?? 0;
    next[first] = at + 1;
    const before = done[first] ?? 0;
    const after = Math.min(1, before + (left.weight[at] ?? 0));
    if (after === before) continue;
    if (before === 0) undone--;
    product *= before === 0 ? power(after, count) : power(after / before, count);
    done[first] = after;
  }
}

/** Most tasks are alone of their kind, and `**` is slow. */
const power = (x: number, n: number): number => (n === 1 ? x : x ** n);
