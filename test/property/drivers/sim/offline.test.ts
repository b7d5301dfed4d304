import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { OfflineStrategy } from '../../../../lib/drivers/sim/offline.ts';

const HOUR_S = 3600;
const WORK_S = 5 * HOUR_S;
const DEADLINE_S = 10 * HOUR_S;
const ON_DEMAND = 1 / HOUR_S;
const SPOT = 0.3 / HOUR_S;

type Stretch = readonly [fromH: number, untilH: number];

/** Of a course in hours: some of the stretches of spot, then steady to the end. Null: not done by the deadline. */
function byHand(stretches: readonly Stretch[], use: readonly boolean[], changeoverS: number): number | null {
  let left = WORK_S;
  let usd = 0;
  let now = 0;
  stretches.forEach(([from, until], i) => {
    if (use[i] !== true || left <= 0) return;
    const runs = Math.min((until - from) * HOUR_S, left + changeoverS);
    usd += runs * SPOT;
    left -= Math.max(0, runs - changeoverS);
    now = from * HOUR_S + runs;
  });
  if (left <= 0) return usd;
  return now + changeoverS + left <= DEADLINE_S ? usd + (changeoverS + left) * ON_DEMAND : null;
}

describe('the cheapest strategy in hindsight', () => {
  it('costs no more than strategies made by hand, but for rounding', () => {
    let compared = 0;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 94 }), { minLength: 2, maxLength: 6 }),
        fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
        fc.constantFrom(0, 300, 900),
        (marks, use, changeoverS) => {
          const ends = [...new Set(marks)].sort((a, b) => a - b).map((m) => m / 10);
          const stretches = Array.from({ length: Math.floor(ends.length / 2) }, (_, i): Stretch => [
            ends[2 * i] ?? 0,
            ends[2 * i + 1] ?? 0,
          ]);
          const usd = byHand(stretches, use, changeoverS);
          // The window is a slot shorter than the task's: what only just fits need not be found.
          if (usd === null || byHand(stretches, use, changeoverS + 200) === null) return;
          compared += 1;
          const strategy = new OfflineStrategy({
            fromS: 0,
            deadlineS: DEADLINE_S,
            workS: WORK_S,
            changeoverS,
            nonInterruptibleUsdPerS: ON_DEMAND,
            spots: [
              (from, until) => (stretches.some(([a, b]) => from >= a * HOUR_S && until <= b * HOUR_S) ? SPOT : null),
            ],
          });
          // A slot lost at each end of a stretch, a unit of each changeover.
          expect(strategy.leastUsd(WORK_S)).toBeLessThanOrEqual(usd + 0.15);
        },
      ),
      { seed: 5, numRuns: 60 },
    );
    expect(compared).toBeGreaterThan(20);
  });
});
