import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { OfflineCourse } from '../../../lib/sim/offline.ts';

const HOUR_S = 3600;
const STEADY = 1 / HOUR_S;
const SPOT = 0.3 / HOUR_S;

/** Spot between these hours. */
const course = (spotHours: readonly (readonly [number, number])[], changeoverS = 600): OfflineCourse =>
  new OfflineCourse({
    fromS: 0,
    deadlineS: 10 * HOUR_S,
    workS: 5 * HOUR_S,
    changeoverS,
    steadyUsdPerS: STEADY,
    spotUsdPerS: (from, until) => (spotHours.some(([a, b]) => from >= a * HOUR_S && until <= b * HOUR_S) ? SPOT : null),
  });

/** Of a course in hours: spot from, spot until, then steady to the end. Null: not done by the deadline. */
function byHand(
  spotHours: readonly (readonly [number, number])[],
  use: readonly boolean[],
  changeoverS: number,
): number | null {
  let left = 5 * HOUR_S;
  let usd = 0;
  let now = 0;
  spotHours.forEach(([a, b], i) => {
    if (use[i] !== true || left <= 0) return;
    const runs = Math.min(b * HOUR_S - a * HOUR_S, left + changeoverS);
    usd += runs * SPOT;
    left -= Math.max(0, runs - changeoverS);
    now = a * HOUR_S + runs;
  });
  if (left <= 0) return usd;
  const end = Math.max(now, 0) + changeoverS + left;
  return end <= 10 * HOUR_S ? usd + (changeoverS + left) * STEADY : null;
}

describe('the cheapest course in hindsight', () => {
  it('is spot alone where it lasts, waiting for it included', () => {
    expect(course([[0, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(course([[4, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(course([[4, 10]]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
    expect(course([[4, 10]]).best(4.01 * HOUR_S, 5 * HOUR_S, 'nowhere')).toBe('spot');
  });

  it('is on-demand alone where there is no spot, and as late as may be', () => {
    expect(course([]).leastUsd(5 * HOUR_S)).toBeCloseTo(5 + 1 / 6, 2);
    expect(course([]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
    expect(course([]).best(4.8 * HOUR_S, 5 * HOUR_S, 'nowhere')).toBe('steady');
    expect(course([]).best(4.8 * HOUR_S, 5 * HOUR_S, 'steady')).toBe('steady');
  });

  it('leaves a stretch of spot that is too short for its changeover', () => {
    expect(course([[0, 0.1]]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
  });

  it('costs no more than courses made by hand, but for rounding', () => {
    let compared = 0;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 94 }), { minLength: 2, maxLength: 6 }),
        fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
        fc.constantFrom(0, 300, 900),
        (marks, use, changeoverS) => {
          const ends = [...new Set(marks)].sort((a, b) => a - b).map((m) => m / 10);
          const stretches = Array.from(
            { length: Math.floor(ends.length / 2) },
            (_, i) => [ends[2 * i] ?? 0, ends[2 * i + 1] ?? 0] as const,
          );
          const usd = byHand(stretches, use, changeoverS);
          // The window is a slot shorter than the task's: what only just fits need not be found.
          if (usd === null || byHand(stretches, use, changeoverS + 200) === null) return;
          compared += 1;
          expect(course(stretches, changeoverS).leastUsd(5 * HOUR_S)).toBeLessThanOrEqual(usd + 0.15);
        },
      ),
      { seed: 5, numRuns: 16 },
    );
    expect(compared).toBeGreaterThan(2);
  });
});
