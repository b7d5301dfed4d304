import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Bootstrap, LEVEL, type Share } from '../../../lib/report/bootstrap.ts';
import { randomStream } from '../../../lib/kernel/random.ts';

const means = (values: readonly number[]): Share[] => values.map((above) => ({ above, below: 1 }));

/** All n^n resamples, each as likely: what random ones approach. */
function exactRatios(units: readonly Share[]): readonly number[] {
  const n = units.length;
  return Array.from({ length: n ** n }, (_, code) => {
    let [above, below, rest] = [0, 0, code];
    for (let k = 0; k < n; k++) {
      const unit = units[rest % n] ?? { above: 0, below: 0 };
      above += unit.above;
      below += unit.below;
      rest = Math.floor(rest / n);
    }
    return above / below;
  }).sort((a, b) => a - b);
}

describe('intervals', () => {
  it('are close to those of all possible resamples', () => {
    const units = [3, 9, 4, 20, 7, 11].map((above, i) => ({ above, below: i + 1 }));
    const exact = exactRatios(units);
    const share = (x: number): number => exact.filter((v) => v <= x).length / exact.length;
    const { interval } = new Bootstrap().ratio(units);
    // 2,000 draws estimate a share of 0.025 to about 0.0035 (binomial); four of these.
    expect(Math.abs(share(interval?.low ?? NaN) - 0.025)).toBeLessThan(0.014);
    expect(Math.abs(share(interval?.high ?? NaN) - 0.975)).toBeLessThan(0.014);
  });

  it('hold the true mean about as often as they say', () => {
    const random = randomStream(5, 'coverage');
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const bootstrap = new Bootstrap();
    const held = Array.from({ length: 400 }, () => {
      const { interval } = bootstrap.ratio(means(Array.from({ length: 20 }, () => 10 + normal())));
      return interval !== null && interval.low <= 10 && interval.high >= 10;
    }).filter(Boolean).length;
    // The percentile bootstrap is known to fall a little short for small n.
    expect(held / 400).toBeGreaterThan(LEVEL - 0.05);
    expect(held / 400).toBeLessThan(LEVEL + 0.04);
  });

  it('lie within the range of the units, and scale with them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.1, max: 1e4, noNaN: true }), { minLength: 2, maxLength: 9 }),
        fc.constantFrom(2, 8, 0.5),
        (values, k) => {
          const { interval } = new Bootstrap().ratio(means(values));
          const scaled = new Bootstrap().ratio(means(values.map((x) => k * x))).interval;
          expect(interval?.low).toBeGreaterThanOrEqual(Math.min(...values) * (1 - 1e-12));
          expect(interval?.high).toBeLessThanOrEqual(Math.max(...values) * (1 + 1e-12));
          expect(scaled).toEqual({ low: k * (interval?.low ?? NaN), high: k * (interval?.high ?? NaN) });
        },
      ),
      { seed: 7, numRuns: 40 },
    );
  });

  it('are none for a single unit, and there is no ratio to nothing', () => {
    expect(new Bootstrap().ratio(means([4]))).toEqual({ value: 4, interval: null, n: 1 });
    expect(new Bootstrap().ratio([{ above: 1, below: 0 }])).toEqual({ value: null, interval: null, n: 1 });
    expect(new Bootstrap().ratio([])).toEqual({ value: null, interval: null, n: 0 });
  });
});
