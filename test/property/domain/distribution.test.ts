import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { distribution, exceedsRemaining } from '../../../lib/domain/distribution.ts';
import { seconds } from '../../../lib/kernel/units.ts';

const points = fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 9 })), { minLength: 1, maxLength: 12 });

describe('the chance that more than so much is left', () => {
  it('is the mass beyond both over the mass beyond what is done; outlived, as long again is left', () => {
    let outlived = 0;
    fc.assert(
      fc.property(points, fc.nat(60), fc.integer({ min: -10, max: 60 }), (of, doneS, overS) => {
        const mass = (aboveS: number): number => of.reduce((sum, [at, n]) => (at > aboveS ? sum + n : sum), 0);
        outlived += Number(mass(doneS) === 0);
        const expected = mass(doneS) === 0 ? Number(doneS > overS) : mass(Math.max(doneS, doneS + overS)) / mass(doneS);
        expect(exceedsRemaining(distribution(of), seconds(doneS), seconds(overS))).toBeCloseTo(expected, 12);
      }),
      { seed: 20261122, numRuns: 500 },
    );
    expect(outlived).toBeGreaterThan(50);
  });
});
