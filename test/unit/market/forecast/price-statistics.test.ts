import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { gridCorrelation, priceStatistics, revertedPrice } from '../../../../lib/market/forecast/price-statistics.ts';

const HOUR = 3_600_000;
const T0 = 480_000 * HOUR;

const hourly = (prices: readonly number[]) => ({
  atMs: Float64Array.from(prices, (_, i) => T0 + i * HOUR),
  usdPerHour: Float64Array.from(prices),
});
const statisticsOf = (prices: readonly number[]) => {
  const s = priceStatistics(hourly(prices), T0, T0 + (prices.length - 1) * HOUR);
  if (s === null) throw new Error('no statistics');
  return s;
};

describe('price statistics', () => {
  it('weighs by time held', () => {
    const steps = { atMs: Float64Array.of(0, 6 * HOUR, 7 * HOUR), usdPerHour: Float64Array.of(1, 9, 2) };
    const s = priceStatistics(steps, 0, 10 * HOUR);
    expect(s?.medianUsd).toBe(1);
    expect(s?.meanUsd).toBeCloseTo((6 * 1 + 9 + 3 * 2) / 10, 12);
  });

  it('is null before the first price', () => {
    expect(priceStatistics(hourly([1]), T0 - 2 * HOUR, T0 - HOUR)).toBeNull();
    expect(priceStatistics(hourly([]), T0, T0 + HOUR)).toBeNull();
  });

  it('finds the half-life of an autoregression and falls back to a constant without one', () => {
    const random = randomStream(5, 'ar');
    const kept = 0.5 ** (1 / 4);
    const prices = [1];
    let x = 0;
    for (let i = 0; i < 4000; i++) {
      x = kept * x + (random() - 0.5) * 0.1;
      prices.push(1 + x);
    }
    expect(statisticsOf(prices).halfLifeS / 3600).toBeGreaterThan(3);
    expect(statisticsOf(prices).halfLifeS / 3600).toBeLessThan(5.5);
    expect(statisticsOf(new Array<number>(50).fill(1))).toMatchObject({ halfLifeS: 6 * 3600, estimated: false });
  });

  it('halves the deviation from the median every half-life', () => {
    const s = { ...statisticsOf([1, 1, 1]), medianUsd: 1, halfLifeS: 100 };
    expect(revertedPrice(s, 3, 0)).toBe(3);
    expect(revertedPrice(s, 3, 100)).toBeCloseTo(2, 12);
    expect(revertedPrice(s, 0.6, 200)).toBeCloseTo(0.9, 12);
  });
});

describe('correlation', () => {
  const random = randomStream(9, 'correlation');
  const a = Array.from({ length: 60 }, () => 1 + random());
  const b = a.map((x) => 0.7 * x + 0.3 * random());

  it('is Pearson on the common grid', () => {
    const ma = a.reduce((s, x) => s + x, 0) / a.length;
    const mb = b.reduce((s, x) => s + x, 0) / b.length;
    const cov = a.reduce((s, x, i) => s + (x - ma) * ((b[i] ?? 0) - mb), 0);
    const va = a.reduce((s, x) => s + (x - ma) ** 2, 0);
    const vb = b.reduce((s, x) => s + (x - mb) ** 2, 0);
    expect(gridCorrelation(statisticsOf(a), statisticsOf(b))).toBeCloseTo(cov / Math.sqrt(va * vb), 10);
  });

  it('is 1 with itself, -1 with its mirror, 0 with a price that stands still', () => {
    const s = statisticsOf(a);
    expect(gridCorrelation(s, s)).toBeCloseTo(1, 12);
    expect(gridCorrelation(s, statisticsOf(a.map((x) => 3 - x)))).toBeCloseTo(-1, 12);
    expect(gridCorrelation(s, statisticsOf(a.map(() => 1)))).toBe(0);
  });

  it('aligns grids of unequal length at their ends', () => {
    const short = priceStatistics(hourly(a), T0 + 20 * HOUR, T0 + 59 * HOUR);
    if (short === null) throw new Error('no statistics');
    expect(short.grid.length).toBe(40);
    expect(gridCorrelation(statisticsOf(a), short)).toBeCloseTo(1, 12);
    expect(gridCorrelation(short, statisticsOf(a))).toBeCloseTo(1, 12);
  });
});
