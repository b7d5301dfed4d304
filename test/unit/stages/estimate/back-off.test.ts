import { describe, expect, it } from '@jest/globals';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import { meanRemaining, quantileRemaining } from '../../../../lib/domain/distribution.ts';
import { withBackOff } from '../../../../lib/stages/estimate/back-off.ts';

const CYCLE_S = 10;
/** What the whole running time is thought to be, once a task has run for so long. */
const thought = (by: 'incby1' | 'expinc', ranS: number): number =>
  ranS + raw(quantileRemaining(withBackOff(seconds(100), CYCLE_S, by), seconds(ranS), 0.5));

describe('an estimate that a task outlives', () => {
  it('grows by 1, 2, 4, ... cycles (expinc)', () => {
    expect([0, 99, 100, 109, 110, 129, 130, 170].map((ranS) => thought('expinc', ranS))).toEqual([
      100, 100, 110, 110, 130, 130, 170, 250,
    ]);
  });

  it('grows by one cycle at a time (incby1)', () => {
    expect([0, 100, 110, 129, 130, 170].map((ranS) => thought('incby1', ranS))).toEqual([100, 110, 120, 130, 140, 180]);
  });

  it.each(['incby1', 'expinc'] as const)(
    'is within a tenth of a cycle of the same on average, and never ends: %s',
    (by) => {
      for (let ranS = 0; ranS < 480; ranS += 10) {
        const left = meanRemaining(withBackOff(seconds(100), CYCLE_S, by), seconds(ranS));
        expect(left).toBeGreaterThan(0);
        if (by === 'incby1') expect(Math.abs(ranS + left - thought(by, ranS))).toBeLessThan(CYCLE_S / 5);
      }
      expect(raw(quantileRemaining(withBackOff(seconds(100), CYCLE_S, by), seconds(1e7), 0.5))).toBeGreaterThan(0);
    },
  );

  it('is positive for an estimate of 0', () => {
    expect(withBackOff(seconds(0), CYCLE_S, 'expinc').atS[0]).toBeGreaterThan(0);
  });
});
