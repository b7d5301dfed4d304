import { describe, expect, it } from '@jest/globals';
import { OfflineStrategy } from '../../../../lib/drivers/sim/offline.ts';

const HOUR_S = 3600;
const ON_DEMAND = 1 / HOUR_S;
const SPOT = 0.3 / HOUR_S;

/** Spot between these hours. */
const strategy = (spotHours: readonly (readonly [number, number])[], changeoverS = 600): OfflineStrategy =>
  new OfflineStrategy({
    fromS: 0,
    deadlineS: 10 * HOUR_S,
    workS: 5 * HOUR_S,
    changeoverS,
    nonInterruptibleUsdPerS: ON_DEMAND,
    spotUsdPerS: (from, until) => (spotHours.some(([a, b]) => from >= a * HOUR_S && until <= b * HOUR_S) ? SPOT : null),
  });

describe('the cheapest strategy in hindsight', () => {
  it('is spot alone where it lasts, waiting for it included', () => {
    expect(strategy([[0, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(strategy([[4, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(strategy([[4, 10]]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
    expect(strategy([[4, 10]]).best(4.01 * HOUR_S, 5 * HOUR_S, 'nowhere')).toBe('spot');
  });

  it('is on-demand alone where there is no spot, and as late as may be', () => {
    // 5 h of work and 10 min to change over before 10 h less a slot of 75 s: at 4.8125 h, the beginning of a slot.
    expect(strategy([]).leastUsd(5 * HOUR_S)).toBeCloseTo(5 + 1 / 6, 2);
    expect(strategy([]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
    expect(strategy([]).best(4.83 * HOUR_S, 5 * HOUR_S, 'nowhere')).toBe('non-interruptible');
    expect(strategy([]).best(4.83 * HOUR_S, 5 * HOUR_S, 'non-interruptible')).toBe('non-interruptible');
  });

  it('leaves a stretch of spot that is too short for its changeover', () => {
    expect(strategy([[0, 0.1]]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
  });

  it('begins at once what is late whatever is done, and goes on with it where it runs', () => {
    const late = new OfflineStrategy({
      fromS: 0,
      deadlineS: 300,
      workS: HOUR_S,
      changeoverS: 160,
      nonInterruptibleUsdPerS: ON_DEMAND,
      spotUsdPerS: () => SPOT,
    });
    for (const atS of [0, 150, 240, 269, 300, 9000]) expect(late.best(atS, HOUR_S, 'nowhere')).not.toBe('nowhere');
    expect(late.best(9000, HOUR_S, 'nowhere')).toBe('non-interruptible');
    expect([late.best(9000, 600, 'spot'), late.best(9000, 600, 'non-interruptible')]).toEqual([
      'spot',
      'non-interruptible',
    ]);
  });
});
