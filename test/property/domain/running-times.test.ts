import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { quantile } from '../../../lib/domain/distribution.ts';
import {
  ACCURACY,
  distributionOfTimes,
  MAX_BINS,
  meanTime,
  withTime,
  type RunningTimes,
} from '../../../lib/domain/running-times.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';

const timesOf = (runtimes: readonly number[]): RunningTimes =>
  runtimes.reduce<RunningTimes | undefined>((times, s) => withTime(times, seconds(s)), undefined) as RunningTimes;
const LEAST_P = 0.01;

/** Of one stage: within a factor of 500 of each other, from a second to a week. */
const siblings = fc
  .tuple(
    fc.double({ min: 1, max: 1200, noNaN: true }),
    fc.array(fc.double({ min: 1, max: 500, noNaN: true }), { minLength: 1, maxLength: 300 }),
  )
  .map(([least, factors]) => factors.map((f) => least * f));

describe('running times of siblings', () => {
  it('tell each quantile within the accuracy', () => {
    fc.assert(
      fc.property(siblings, fc.double({ min: LEAST_P, max: 1, noNaN: true }), (runtimes, p) => {
        const sorted = runtimes.toSorted((a, b) => a - b);
        const exact = sorted[Math.max(0, Math.ceil(p * sorted.length - 1e-9) - 1)] as number;
        const told = raw(quantile(distributionOfTimes(timesOf(runtimes)), p));
        expect(Math.abs(told - exact) / exact).toBeLessThanOrEqual(ACCURACY + 1e-6);
      }),
    );
  });

  it('are the same in any order, and count and mean are exact', () => {
    const anything = fc.array(fc.double({ min: 0, max: 1e7, noNaN: true }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(anything, (runtimes) => {
        const { sumS: _, ...there } = timesOf(runtimes);
        const { sumS: __, ...back } = timesOf(runtimes.toReversed());
        expect(back).toEqual(there);
        expect(there.count).toBe(runtimes.length);
        expect(there.counts.reduce((a, b) => a + b, 0)).toBe(runtimes.length);
        const mean = runtimes.reduce((a, b) => a + b, 0) / runtimes.length;
        expect(raw(meanTime(timesOf(runtimes)))).toBeCloseTo(mean, 3);
      }),
    );
  });

  it('take a bounded room, whatever they are and however many', () => {
    const every = Array.from({ length: 5000 }, (_, i) => 0.01 * 1.005 ** i);
    const times = timesOf(every);
    expect(times.counts).toHaveLength(MAX_BINS);
    expect(JSON.stringify(times).length).toBeLessThan(500);
    // The longest keep their accuracy; the shortest share a bin.
    const longest = every.at(-1) as number;
    expect(Math.abs(raw(quantile(distributionOfTimes(times), 1)) - longest) / longest).toBeLessThan(ACCURACY);
  });
});
