import { describe, expect, it } from '@jest/globals';
import { OfflineStrategy, OneRunStrategy, type SpotUsdPerS } from '../../../../lib/drivers/sim/offline.ts';

const HOUR_S = 3600;
const ON_DEMAND = 1 / HOUR_S;
const SPOT = 0.3 / HOUR_S;

const during =
  (hours: readonly (readonly [number, number])[], usdPerS = SPOT): SpotUsdPerS =>
  (from, until) =>
    hours.some(([a, b]) => from >= a * HOUR_S && until <= b * HOUR_S) ? usdPerS : null;

/** Spot between these hours. */
const strategy = (spotHours: readonly (readonly [number, number])[], changeoverS = 600): OfflineStrategy =>
  new OfflineStrategy({
    fromS: 0,
    deadlineS: 10 * HOUR_S,
    workS: 5 * HOUR_S,
    changeoverS,
    nonInterruptibleUsdPerS: ON_DEMAND,
    spots: [during(spotHours)],
  });

describe('the cheapest strategy in hindsight', () => {
  it('is spot alone where it lasts, waiting for it included', () => {
    expect(strategy([[0, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(strategy([[4, 10]]).leastUsd(5 * HOUR_S)).toBeCloseTo((5 + 1 / 6) * 0.3, 2);
    expect(strategy([[4, 10]]).best(0, 5 * HOUR_S, 'nowhere')).toBe('nowhere');
    expect(strategy([[4, 10]]).best(4.01 * HOUR_S, 5 * HOUR_S, 'nowhere')).toBe(0);
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
      spots: [() => SPOT],
    });
    for (const atS of [0, 150, 240, 269, 300, 9000]) expect(late.best(atS, HOUR_S, 'nowhere')).not.toBe('nowhere');
    expect(late.best(9000, HOUR_S, 'nowhere')).toBe('non-interruptible');
    expect([late.best(9000, 600, 0), late.best(9000, 600, 'non-interruptible')]).toEqual([0, 'non-interruptible']);
  });

  it('counts a changeover between two pools, and takes the one that lasts', () => {
    const pools = (first: readonly (readonly [number, number])[], second: readonly (readonly [number, number])[]) =>
      new OfflineStrategy({
        fromS: 0,
        deadlineS: 6 * HOUR_S,
        workS: 5 * HOUR_S,
        changeoverS: 1800,
        nonInterruptibleUsdPerS: ON_DEMAND,
        spots: [during(first), during(second)],
      });
    // Every hour the other one: each change takes half of the hour, which the window does not have.
    const odd = [0, 2, 4].map((h) => [h, h + 1] as const);
    const even = [1, 3, 5].map((h) => [h, h + 1] as const);
    expect(pools(odd, even).leastUsd(5 * HOUR_S)).toBeGreaterThan(5);
    expect(pools([[0, 1]], [[0, 6]]).best(0, 5 * HOUR_S, 'nowhere')).toBe(1);
    expect(pools([[0, 1]], [[0, 6]]).leastUsd(5 * HOUR_S)).toBeCloseTo(5.5 * 0.3, 1);
    // What runs on the first goes on there while it may, and to the second after that.
    expect(pools([[0, 3]], [[0, 6]]).best(0, 2 * HOUR_S, 0)).toBe(0);
  });
});

describe('the cheapest single run in hindsight', () => {
  const run = (spotHours: readonly (readonly [number, number])[], deadlineH = 10): OneRunStrategy =>
    new OneRunStrategy({
      fromS: 0,
      deadlineS: deadlineH * HOUR_S,
      lengthS: 2 * HOUR_S,
      spareS: 300,
      nonInterruptibleUsdPerS: ON_DEMAND,
      runUsd: [
        (from, until) => {
          const usdPerS = during(spotHours)(from, until);
          return usdPerS === null ? null : usdPerS * (until - from);
        },
      ],
    });

  it('waits for spot that lasts, and takes no other', () => {
    expect(run([[0, 1]]).best(0)).toBe('non-interruptible');
    expect(
      run([
        [0, 1],
        [3, 6],
      ]).best(0),
    ).toBe('nowhere');
    expect(run([[3, 6]]).best(3.01 * HOUR_S)).toBe(0);
    expect(run([[3, 6]]).best(4.5 * HOUR_S)).toBe('non-interruptible');
    // Just in time: enough for what has begun, and not for what may have to wait for its start.
    expect(run([[3, 6]]).best(3.95 * HOUR_S)).toBe('non-interruptible');
    expect(run([[3, 6]]).best(3.95 * HOUR_S, true)).toBe(0);
    expect(run([[8.5, 20]]).best(0)).toBe('non-interruptible');
  });
});
