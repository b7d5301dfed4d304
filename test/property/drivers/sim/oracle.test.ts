/**
 * The oracle over small random scenarios: it misses nothing that can be met, a task alone costs about the least by
 * brute force, and no bill is below the lower bound.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { cheapestByBruteForce } from '../../../support/brute-force.ts';
import { boundOf, gridOf, scenario, totalsOf, type Scenario } from '../../../support/grid-scenario.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

const SLOTS = 6;
/** A start-up of 160 s and the minute until the next decision, for as many stays as a task may need. */
const SPARED_S = 4 * 220;
/** An on-demand machine for as long. */
const OVERHEAD_USD = SPARED_S / 3600;

/** With a slot to spare before the deadline: start-ups and decisions take time that the grid does not have. */
const leastUsd = (of: Scenario): number | null => cheapestByBruteForce(gridOf(of, SLOTS - 1));

describe('the oracle', () => {
  it('misses nothing that can be met, and is billed no less than the lower bound', async () => {
    const seen = { possible: 0, hourly: 0 };
    await fc.assert(
      fc.asyncProperty(scenario, async (of) => {
        if (leastUsd(of) === null) return;
        const totals = await totalsOf(of, 'oracle');
        expect({ of, missed: totals.missed, done: totals.succeeded }).toEqual({ of, missed: 0, done: of.tasks.length });
        expect(boundOf(of)).toBeLessThanOrEqual(totals.billedUsd + totals.refundedUsd + 1e-9);
        seen.possible++;
        seen.hourly += Number(of.billing === 'per-hour');
      }),
      { seed: 29, numRuns: runs(150) },
    );
    expect(seen.possible).toBeGreaterThan(seenMoreThan(90));
    expect(seen.hourly).toBeGreaterThan(seenMoreThan(20));
  }, 300_000);

  it('gives a task alone about the cheapest way by brute force', async () => {
    const seen = { possible: 0, spot: 0, dear: 0 };
    await fc.assert(
      fc.asyncProperty(scenario, async (any) => {
        const of = { ...any, tasks: any.tasks.slice(0, 1), billing: 'per-second' as const };
        const least = leastUsd(of);
        if (least === null) return;
        const totals = await totalsOf(of, 'oracle', SPARED_S);
        expect({ of, missed: totals.missed }).toEqual({ of, missed: 0 });
        // No way is dearer than on-demand from the beginning to the end.
        expect(totals.billedUsd).toBeLessThanOrEqual(SLOTS / 2 + OVERHEAD_USD);
        // Strategies know time and work in slots of their own, and decide once a minute: the last moment may pass.
        seen.dear += Number(totals.billedUsd > 1.2 * least + OVERHEAD_USD);
        seen.possible++;
        seen.spot += Number(totals.billedUsd < totals.onDemandUsd);
      }),
      { seed: 31, numRuns: runs(200) },
    );
    expect(seen.possible).toBeGreaterThan(seenMoreThan(150));
    expect(seen.spot).toBeGreaterThan(seenMoreThan(80));
    expect(seen.dear).toBeLessThanOrEqual(0.03 * seen.possible);
  }, 300_000);
});
