import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomLogNormal } from 'd3-random';
import {
  BINS,
  BLOCK,
  addToHistogram,
  histogramMedian,
  readHistogram,
  writeHistogram,
} from '../../../../lib/stages/estimate/histogram.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';

const OFFSET = 5;
function histogramOf(values: readonly number[]): Float64Array {
  const h = new Float64Array(OFFSET + BLOCK);
  for (const v of values) addToHistogram(h, OFFSET, v);
  return h;
}

function restored(h: Float64Array): Float64Array<ArrayBuffer> {
  const other = new Float64Array(OFFSET + BLOCK);
  writeHistogram(other, OFFSET, readHistogram(h, OFFSET));
  return other;
}

function exactMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** Centroids and weights, by inserting each value and then looking at all pairs. */
function mergedOneByOne(values: readonly number[]): { centroids: number[]; weights: number[] } {
  const bins: { centroid: number; weight: number }[] = [];
  for (const value of values) {
    const same = bins.find((b) => b.centroid === value);
    if (same !== undefined) same.weight++;
    else bins.push({ centroid: value, weight: 1 });
    bins.sort((a, b) => a.centroid - b.centroid);
    if (bins.length <= BINS) continue;
    const ratios = bins.slice(1).map((b, i) => b.centroid / (bins[i]?.centroid ?? NaN));
    const at = ratios.indexOf(Math.min(...ratios));
    const [a, b] = bins.slice(at, at + 2);
    if (a === undefined || b === undefined) throw new RangeError('there are two bins to merge');
    const weight = a.weight + b.weight;
    bins.splice(at, 2, { centroid: (a.centroid * a.weight + b.centroid * b.weight) / weight, weight });
  }
  return { centroids: bins.map((b) => b.centroid), weights: bins.map((b) => b.weight) };
}

const runtime = fc.double({ min: 0.001, max: 1e6, noNaN: true });

describe('streaming histogram', () => {
  it('keeps number, mean and range of the values, in bounded memory and ascending bins', () => {
    fc.assert(
      fc.property(fc.array(runtime, { minLength: 1, maxLength: 300 }), (values) => {
        const { centroids, weights } = readHistogram(histogramOf(values), OFFSET);
        const sum = values.reduce((a, b) => a + b, 0);
        expect(centroids.length).toBeLessThanOrEqual(BINS);
        expect(weights.reduce((a, b) => a + b, 0)).toBe(values.length);
        const binned = centroids.reduce((a, c, i) => a + c * (weights[i] ?? 0), 0);
        expect(Math.abs(binned - sum)).toBeLessThanOrEqual(1e-9 * sum);
        expect(centroids.every((c, i) => i === 0 || c > (centroids[i - 1] ?? Infinity))).toBe(true);
        expect(Math.min(...values) * (1 - 1e-12)).toBeLessThanOrEqual(centroids[0] ?? NaN);
        expect(centroids.at(-1)).toBeLessThanOrEqual(Math.max(...values) * (1 + 1e-12));
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  it('merges the two bins with the smallest ratio between them, wherever the value goes, and stored in between', () => {
    for (let seed = 0; seed < 20; seed++) {
      const draw = randomStream(seed, 'merged');
      const values = Array.from({ length: 400 }, () => 100 * (1 + draw()) ** (1 + (seed % 3)));
      let h = new Float64Array(OFFSET + BLOCK);
      values.forEach((value, i) => {
        addToHistogram(h, OFFSET, value);
        if (i % 100 === 99) h = restored(h);
      });
      const { centroids, weights } = readHistogram(h, OFFSET);
      const expected = mergedOneByOne(values);
      expect(weights).toEqual(expected.weights);
      centroids.forEach((c, i) => expect(c / (expected.centroids[i] ?? NaN)).toBeCloseTo(1, 9));
    }
  });

  it('writes nothing outside its block', () => {
    const h = new Float64Array(2 * BLOCK).fill(-7);
    h.fill(0, 10, 10 + BLOCK);
    for (let i = 1; i < 200; i++) addToHistogram(h, 10, i * 1.37);
    expect([...h.subarray(0, 10), ...h.subarray(10 + BLOCK)].every((x) => x === -7)).toBe(true);
  });

  it('has the exact median while the distinct values fit', () => {
    const few = fc.array(fc.integer({ min: 1, max: BINS }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(few, (values) => {
        expect(histogramMedian(histogramOf(values), OFFSET, values.length)).toBe(exactMedian(values));
      }),
      { seed: 12, numRuns: 300 },
    );
  });

  it.each([0.2, 1, 1.8])('stays within 2 %% rank of the median of 20,000 log-normal runtimes, sigma %d', (sigma) => {
    const draw = randomLogNormal.source(randomStream(3, `runtimes ${sigma}`))(Math.log(100), sigma);
    const values = Array.from({ length: 20_000 }, () => draw());
    const found = histogramMedian(histogramOf(values), OFFSET, values.length);
    const rank = values.filter((v) => v <= found).length / values.length;
    expect(Math.abs(rank - 0.5)).toBeLessThan(0.02);
  });

  it('comes back as it was stored and goes on the same way', () => {
    fc.assert(
      fc.property(fc.array(runtime, { minLength: 1, maxLength: 80 }), fc.array(runtime, { maxLength: 20 }), (a, b) => {
        const one = histogramOf(a);
        const other = restored(one);
        for (const v of b) {
          addToHistogram(one, OFFSET, v);
          addToHistogram(other, OFFSET, v);
        }
        expect(readHistogram(other, OFFSET)).toEqual(readHistogram(one, OFFSET));
      }),
      { seed: 13 },
    );
  });
});
