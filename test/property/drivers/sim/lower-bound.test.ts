/**
 * The lower bound against the cheapest schedule by brute force, and against what presets are billed, over small random
 * scenarios.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { cheapestByBruteForce } from '../../../support/brute-force.ts';
import { boundOf, gridOf, needsFor, scenario, totalsOf } from '../../../support/grid-scenario.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

describe('the lower bound', () => {
  it('is no more than the cheapest schedule there is, and often most of it', () => {
    const shares: number[] = [];
    fc.assert(
      fc.property(scenario, (any) => {
        const of = { ...any, billing: 'per-second' as const };
        const best = cheapestByBruteForce(gridOf(of));
        if (best === null) return;
        // The start-up of a task that is alone is not on the grid.
        const needs = needsFor(of);
        const bound = boundOf(of, { ...needs, changeoverMs: needs.setupMs });
        expect(bound).toBeLessThanOrEqual(best + 1e-9);
        shares.push(bound / best);
      }),
      { seed: 3, numRuns: runs(400) },
    );
    const mean = shares.reduce((sum, x) => sum + x, 0) / Math.max(1, shares.length);
    expect(shares.length).toBeGreaterThan(seenMoreThan(300));
    expect(mean).toBeGreaterThan(seenMoreThan(0.85));
  }, 60_000);

  it.each(['ebbtide', 'on-demand', 'spot-greedy', 'uniform-progress', 'greedy', 'fleet'])(
    'is no more than the charges of %s before refunds where that does all work in time',
    async (preset) => {
      const seen = { met: 0, hourly: 0, interrupted: 0, refunded: 0 };
      await fc.assert(
        fc.asyncProperty(scenario, async (of) => {
          const totals = await totalsOf(of, preset);
          if (totals.missed > 0 || totals.succeeded < of.tasks.length) return;
          expect(boundOf(of)).toBeLessThanOrEqual(totals.billedUsd + totals.refundedUsd + 1e-9);
          seen.met++;
          seen.hourly += Number(of.billing === 'per-hour');
          seen.interrupted += Number(totals.interruptions > 0);
          seen.refunded += Number(totals.refundedUsd > 0);
          if (!of.refunds) expect(totals.refundedUsd).toBe(0);
        }),
        { seed: 7, numRuns: runs(120) },
      );
      expect(seen.met).toBeGreaterThan(seenMoreThan(20));
      expect(seen.hourly).toBeGreaterThan(seenMoreThan(4));
      if (preset === 'on-demand') return;
      expect(seen.interrupted).toBeGreaterThan(seenMoreThan(4));
      expect(seen.refunded).toBeGreaterThan(seenMoreThan(1));
    },
    120_000,
  );
});
