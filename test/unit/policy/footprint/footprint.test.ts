import { describe, expect, it } from '@jest/globals';
import { correlationPenalty } from '../../../../lib/policy/footprint/correlation-penalty.ts';
import { expectedCostUsd } from '../../../../lib/policy/footprint/expected-cost.ts';
import { expectedUtility, remainingOf } from '../../../../lib/policy/footprint/remaining.ts';

describe('a footprint', () => {
  it('of one pool keeps the higher bid where the price passes the lower one alone', () => {
    const p = remainingOf([
      [
        { units: 2, pLost: 0.5 },
        { units: 3, pLost: 0.2 },
      ],
    ]);
    expect([...p]).toEqual([0.2, 0, 0, expect.closeTo(0.3, 12), 0, 0.5]);
  });

  it('of two pools loses them independently', () => {
    const p = remainingOf([[{ units: 1, pLost: 0.5 }], [{ units: 1, pLost: 0.2 }]]);
    expect([...p]).toEqual([expect.closeTo(0.1, 12), expect.closeTo(0.5, 12), expect.closeTo(0.4, 12)]);
    expect(expectedUtility(p, (units) => Math.min(1, units))).toBeCloseTo(0.9, 12);
  });

  it('of nothing has nothing, and what is never lost is always there', () => {
    expect([...remainingOf([])]).toEqual([1]);
    expect([...remainingOf([[{ units: 2, pLost: 0 }], []], () => 0.01)]).toEqual([0, 0, 1]);
  });

  it('costs nothing where a refund is sure, and the time until the loss without one', () => {
    const of = { usdPerHour: 2, leftH: 0.5 };
    expect(expectedCostUsd({ ...of, pLost: 0 }, { refundRule: 'first-hour' })).toBe(1);
    expect(expectedCostUsd({ ...of, pLost: 0.25 }, { refundRule: 'first-hour' })).toBe(0.75);
    expect(expectedCostUsd({ ...of, pLost: 1 }, { refundRule: 'first-hour' })).toBe(0);
    expect(expectedCostUsd({ ...of, pLost: 0 }, { refundRule: 'none' })).toBe(1);
    // A hazard of ln 2 per half hour.
    expect(expectedCostUsd({ ...of, pLost: 0.5 }, { refundRule: 'none' })).toBeCloseTo(0.5 / Math.LN2, 12);
  });

  it('bears a penalty for pools that move together (eq. 2.6)', () => {
    expect(correlationPenalty(4, [], 0.01)).toBeCloseTo(0.01, 12);
    const half = [{ units: 4, correlation: 0.5 }];
    // rho = 1: (4 + 4) / 16, rho = 0.5: 0.5 x (4 + 4) / 16.
    expect(correlationPenalty(4, half, 0.01)).toBeCloseTo(0.0075, 12);
    expect(correlationPenalty(0, [], 0.01)).toBe(0);
  });
});
