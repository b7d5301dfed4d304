import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { epochMs, raw, seconds, usd } from '../../../lib/kernel/units.ts';
import { attribute } from '../../../lib/cycle/ledger.ts';
import type { Bill } from '../../../lib/domain/ledger.ts';
import { attempt, instance, job, pool, resources } from '../../support/builders.ts';

const HOUR = 3_600_000;

const billOf = (pieces: readonly (readonly [ms: number, usd: number])[]): Bill => {
  let at = 0;
  const made = pieces.map(([ms, dollars]) => {
    const piece = { fromMs: epochMs(at), toMs: epochMs(at + ms), usd: dollars, onDemandUsd: dollars * 3 };
    at += ms;
    return piece;
  });
  return { totalUsd: usd(pieces.reduce((s, p) => s + p[1], 0)), pieces: made };
};

const arbitraryBill = fc
  .array(fc.tuple(fc.integer({ min: 0, max: HOUR }), fc.double({ min: 0, max: 2, noNaN: true })), {
    minLength: 1,
    maxLength: 12,
  })
  .map(billOf);

const arbitraryAttempts = fc
  .array(
    fc.record({
      from: fc.integer({ min: 0, max: 6 * HOUR }),
      lasts: fc.integer({ min: 0, max: 6 * HOUR }),
      cpus: fc.integer({ min: 1, max: 4 }),
      keptS: fc.integer({ min: 0, max: 6 * 3600 }),
      outcome: fc.constantFrom('succeeded' as const, 'interrupted' as const, 'failed' as const),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map((a, index) =>
      attempt({
        index,
        state: 'ended',
        startedMs: epochMs(a.from),
        endedMs: epochMs(a.from + a.lasts),
        outcome: a.outcome,
        keptS: seconds(a.keptS),
        resources: resources(a.cpus),
      }),
    ),
  );

const rowsOf = (bill: Bill, attempts: ReturnType<typeof attempt>[]) =>
  attribute({
    instance: instance(),
    pool: pool(),
    bill,
    attempts,
    jobs: new Map([['j-test', job()]]),
    until: epochMs(12 * HOUR),
  });

describe('attribution of an instance to those who used it', () => {
  it('sums to the bill, whatever overlaps', () => {
    let overlapping = 0;
    fc.assert(
      fc.property(arbitraryBill, arbitraryAttempts, (bill, attempts) => {
        if (attempts.length > 3) overlapping += 1;
        const rows = rowsOf(bill, attempts);
        const sum = rows.reduce((s, r) => s + r.usd, 0);
        expect(Math.abs(sum - raw(bill.totalUsd))).toBeLessThan(1e-6);
        const onDemand = rows.reduce((s, r) => s + r.onDemandUsd, 0);
        expect(Math.abs(onDemand - 3 * raw(bill.totalUsd))).toBeLessThan(1e-6);
        for (const r of rows) expect(r.usd).toBeGreaterThanOrEqual(0);
      }),
      { seed: 7, numRuns: 300 },
    );
    expect(overlapping).toBeGreaterThan(50);
  });

  it('charges half an instance to a task of half its cores and the rest to idle', () => {
    const rows = rowsOf(billOf([[HOUR, 1]]), [
      attempt({
        state: 'ended',
        startedMs: epochMs(0),
        endedMs: epochMs(HOUR),
        outcome: 'succeeded',
        resources: resources(2),
      }),
    ]);
    expect(rows.map((r) => [r.kind, Number(r.usd.toFixed(9)), r.owner])).toEqual([
      ['work', 0.5, 'tester'],
      ['idle', 0.5, null],
    ]);
  });

  it('splits an interrupted attempt at its last checkpoint into work and waste', () => {
    const rows = rowsOf(billOf([[HOUR, 1]]), [
      attempt({
        state: 'ended',
        startedMs: epochMs(0),
        endedMs: epochMs(HOUR),
        outcome: 'interrupted',
        keptS: seconds(2700),
        resources: resources(4),
      }),
    ]);
    expect(Object.fromEntries(rows.map((r) => [r.kind, Number(r.usd.toFixed(9))]))).toEqual({
      work: 0.75,
      wasted: 0.25,
    });
  });
});
