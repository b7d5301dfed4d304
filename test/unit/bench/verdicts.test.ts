import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DECADES_USD, verdicts } from '../../../bench/forecast/verdicts.ts';
import type { Cell } from '../../../lib/models/evaluation/cells.ts';
import type { DatasetRows } from '../../../lib/models/evaluation/dataset-rows.ts';

interface Bid {
  readonly p: number;
  readonly lost: boolean;
  readonly deltaUsd: number;
}

/** Only what verdicts read. */
const datasetOf = (bids: readonly Bid[]): DatasetRows =>
  ({
    manifest: { features: ['priceUsd', 'bidDeltaUsd'] },
    features: Float32Array.from(bids.flatMap((b) => [1, b.deltaUsd])),
  }) as unknown as DatasetRows;
const cellOf = (bids: readonly Bid[]): Cell => ({
  source: 'a market',
  split: 'test',
  protocol: 'paper',
  rows: bids.map((_, i) => i),
  lost: Uint8Array.from(bids, (b) => Number(b.lost)),
  day: new Int32Array(bids.length),
  days: 1,
});

/** By precision and recall; 0 where nothing was rightly called. */
function f1(bids: readonly Bid[], threshold: number, copies: (b: Bid) => number = () => 1): number {
  const weigh = (of: readonly Bid[]): number => of.map(copies).reduce((a, b) => a + b, 0);
  const called = bids.filter((b) => b.p >= threshold);
  const right = weigh(called.filter((b) => b.lost));
  if (right === 0) return 0;
  const [precision, recall] = [right / weigh(called), right / weigh(bids.filter((b) => b.lost))];
  return (2 * precision * recall) / (precision + recall);
}

it('verdicts in hindsight are those of the best threshold, and of bids drawn otherwise', () => {
  // Eighths are the same numbers in 32 bits.
  const bid = fc.record({
    p: fc.nat(8).map((n) => n / 8),
    lost: fc.boolean(),
    deltaUsd: fc.constantFrom(0.00002, 0.0003, 0.004, 0.05, 0.15).map(Math.fround),
  });
  const some = fc.array(bid, { minLength: 1, maxLength: 30 }).filter((bids) => bids.some((b) => b.lost));
  fc.assert(
    fc.property(some, (bids) => {
      const p = Float64Array.from(bids, (b) => b.p);
      const [of] = verdicts(datasetOf(bids), cellOf(bids), [{ name: 'any', p }]);
      const tried = bids.map((b) => f1(bids, b.p));
      expect(of?.best.f1).toBeCloseTo(Math.max(...tried), 12);
      expect(f1(bids, of?.best.threshold ?? NaN)).toBeCloseTo(Math.max(...tried), 12);
      expect(of?.f1).toBeCloseTo(f1(bids, 0.5), 12);
      expect(of?.evenF1).toBeCloseTo(
        f1(bids, 0.5, (b) => b.deltaUsd),
        12,
      );
      for (const [d, { lost }] of (of?.decades ?? []).entries()) {
        const within = bids.filter(
          ({ deltaUsd }) => deltaUsd >= (DECADES_USD[d] ?? 0) && deltaUsd < (DECADES_USD[d + 1] ?? Infinity),
        );
        if (within.length > 0) expect(lost).toBeCloseTo(within.filter((b) => b.lost).length / within.length, 12);
      }
    }),
    { seed: 3, numRuns: 300 },
  );
});
