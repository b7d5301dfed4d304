/** Expected maximum of independent running times. */
import type { Distribution } from './distribution.ts';

/** Alike running times, and how many of them. */
export interface Alike {
  readonly left: Distribution;
  readonly count: number;
}

/** Seconds; 0 of none. O(points log points). */
export function expectedLongestS(of: readonly Alike[]): number {
  const steps = of.flatMap(({ left, count }, i) =>
    Array.from(left.atS, (atS, at) => ({ atS, i, weight: left.weight[at] ?? 0, count })),
  );
  steps.sort((a, b) => a.atS - b.atS);
  const done = new Float64Array(of.length);
  // P(all done) is a product, in which those that cannot be done yet are counted apart.
  let undone = of.length;
  let product = 1;
  let expected = 0;
  let lastS = 0;
  for (const { atS, i, weight, count } of steps) {
    expected += (atS - lastS) * (1 - (undone > 0 ? 0 : product));
    lastS = atS;
    const before = done[i] ?? 0;
    const after = Math.min(1, before + weight);
    if (after === before) continue;
    if (before === 0) undone--;
    product *= (before === 0 ? after : after / before) ** count;
    done[i] = after;
  }
  return expected;
}
