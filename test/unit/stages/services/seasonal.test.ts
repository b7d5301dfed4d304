import { describe, expect, it } from '@jest/globals';
import { randomNormal } from 'd3-random';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { seasonal } from '../../../../lib/stages/services/seasonal.ts';

const DAY = 1440;
const curve = (minute: number): number =>
  100 + 60 * Math.sin((2 * Math.PI * minute) / DAY) + 20 * Math.cos((4 * Math.PI * minute) / DAY);

/** Minutes of the curve with noise that has no memory. */
const days = (count: number, noise: number, seed = 1): number[] => {
  const normal = randomNormal.source(randomStream(seed, 'seasonal'))(0, noise);
  return Array.from({ length: Math.round(count * DAY) }, (_, minute) => Math.max(0, curve(minute) + normal()));
};
const answer = (rps: readonly number[]): number => seasonal({ periodS: 60, rps }) ?? NaN;

describe('seasonal scaling', () => {
  it('is as much as comes in 95 % of minutes, and little more', () => {
    const all = days(3, 5);
    let covered = 0;
    let above = 0;
    const asked = Array.from({ length: 300 }, (_, i) => DAY + i * 9);
    for (const minute of asked) {
      const ready = answer(all.slice(0, minute));
      if ((all[minute] ?? 0) <= ready) covered += 1;
      above += ready - curve(minute);
    }
    expect(covered / asked.length).toBeGreaterThan(0.9);
    expect(covered / asked.length).toBeLessThan(0.99);
    // 1.64 times the noise, and what the fit misses.
    expect(above / asked.length).toBeGreaterThan(6);
    expect(above / asked.length).toBeLessThan(14);
  });

  it('has a buffer that follows the uncertainty', () => {
    const buffer = (noise: number): number => answer(days(2, noise)) - curve(2 * DAY);
    expect(buffer(1)).toBeLessThan(buffer(10) / 3);
  });

  it('sees the rise of the morning coming, which the mean does not', () => {
    const rising = days(2, 1).slice(0, 2 * DAY - 90);
    const recent = rising.slice(-120);
    const mean = recent.reduce((sum, r) => sum + r, 0) / recent.length;
    const next = curve(2 * DAY - 90);
    expect(Math.abs(answer(rising) - next)).toBeLessThan(Math.abs(mean - next) / 2);
  });

  it('goes on over gaps, and answers from little or nothing', () => {
    const holes = days(2, 2).map((rps, i) => (i % 7 < 3 ? NaN : rps));
    expect(Math.abs(answer(holes) - curve(2 * DAY))).toBeLessThan(15);
    expect(answer([5, 5, 5, 5, 5, 5])).toBeCloseTo(5, 6);
    expect(answer([3, 9])).toBe(9);
    expect(answer([0, 0, 0, 0, 0, 0, 0])).toBe(0);
    expect(seasonal({ periodS: 60, rps: [] })).toBeNull();
    expect(seasonal({ periodS: 60, rps: [NaN, NaN] })).toBeNull();
  });
});
