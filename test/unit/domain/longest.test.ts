import { describe, expect, it } from '@jest/globals';
import { certain, distribution } from '../../../lib/domain/distribution.ts';
import { expectedLongestS } from '../../../lib/domain/longest.ts';
import { seconds } from '../../../lib/kernel/units.ts';

const one = (left: ReturnType<typeof certain>, count = 1) => ({ left, count });

describe('the longest of several running times', () => {
  it('is the longest of certain ones, and none of none', () => {
    expect(expectedLongestS([])).toBe(0);
    expect(expectedLongestS([one(certain(seconds(10))), one(certain(seconds(30)), 5)])).toBe(30);
  });

  it('is expected to be longer than the mean of each', () => {
    const either = distribution([
      [10, 0.5],
      [30, 0.5],
    ]);
    expect(expectedLongestS([one(either)])).toBeCloseTo(20, 9);
    // Both are done at 10 in one case of four.
    expect(expectedLongestS([one(either, 2)])).toBeCloseTo(25, 9);
    expect(expectedLongestS([one(either), one(either)])).toBeCloseTo(25, 9);
    expect(expectedLongestS([one(either, 2), one(certain(seconds(20)))])).toBeCloseTo(27.5, 9);
  });
});
