import { describe, expect, it } from '@jest/globals';
import { Doubles, type Distribution } from '../../../../lib/domain/distribution.ts';
import { Smoother } from '../../../../lib/stages/estimate/smoothing.ts';
import { below, quantileOf } from '../../../support/recurring-jobs.ts';

const smoothed = (runsS: readonly number[], offset = 0): Distribution =>
  new Smoother(new Doubles()).of(
    {
      logS: Float64Array.from(
        runsS.toSorted((a, b) => a - b),
        Math.log,
      ),
      weight: new Float64Array(runsS.length).fill(1),
      count: runsS.length,
    },
    offset,
  );

describe('a smoothed distribution', () => {
  const sets: readonly (readonly number[])[] = [
    [100],
    [100, 101],
    [1, 100_000],
    Array.from({ length: 32 }, (_, i) => 100 * 1.4 ** i),
    Array.from({ length: 32 }, (_, i) => 100 + i / 10),
    [...Array<number>(30).fill(60), 90_000, 90_001],
  ];

  it.each(sets.map((runsS) => [runsS]))('ascends, sums to one, and has at most a few dozen points: %j', (runsS) => {
    const { atS, weight } = smoothed(runsS);
    expect(atS.every((s, i) => s > (atS[i - 1] ?? 0))).toBe(true);
    expect(weight.every((w) => w > 0)).toBe(true);
    expect(weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
    expect(atS.length).toBeLessThanOrEqual(50);
  });

  it('is sharp where runs repeat, and wide where they scatter', () => {
    const sharp = smoothed(Array.from({ length: 20 }, (_, i) => 300 + (i % 5)));
    expect(quantileOf(sharp, 0.9) / quantileOf(sharp, 0.1)).toBeLessThan(1.12);
    const wide = smoothed(Array.from({ length: 20 }, (_, i) => 300 * 1.2 ** (i - 10)));
    expect(quantileOf(wide, 0.9) / quantileOf(wide, 0.1)).toBeGreaterThan(10);
  });

  it('keeps both of two far modes, with their shares', () => {
    const two = smoothed([...Array<number>(15).fill(60), ...Array<number>(5).fill(6000)]);
    expect(below(two, 600)).toBeGreaterThan(0.7);
    expect(below(two, 600)).toBeLessThan(0.78);
    expect(below(two, 5000) - below(two, 90)).toBeLessThan(0.07);
  });

  it('takes one run for less than certainty', () => {
    const one = smoothed([100]);
    expect(quantileOf(one, 0.5)).toBeGreaterThan(90);
    expect(quantileOf(one, 0.5)).toBeLessThan(111);
    expect(quantileOf(one, 0.95)).toBeGreaterThan(200);
  });

  it('is moved by the offset alone', () => {
    const [at, moved] = [smoothed([60, 70, 90]), smoothed([60, 70, 90], Math.log(10))];
    expect(moved.weight).toEqual(at.weight);
    for (const [i, s] of at.atS.entries()) expect((moved.atS[i] ?? 0) / s).toBeCloseTo(10, 9);
  });
});
