import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { FootprintValue } from '../../../../lib/policy/footprint/footprint-value.ts';
import { expectedUtility, remainingOf } from '../../../../lib/policy/footprint/remaining.ts';
import { runs } from '../../../support/properties.ts';

const part = fc.record({ units: fc.nat(5), pLost: fc.double({ min: 0, max: 1, noNaN: true }) });
const pool = fc.record({
  chain: fc.array(part, { maxLength: 4 }),
  lambda: fc.double({ min: 0, max: 0.1, noNaN: true }),
});

it('a change of one pool is worth what the whole footprint is with it', () => {
  fc.assert(
    fc.property(
      fc.array(pool, { minLength: 1, maxLength: 5 }),
      pool,
      fc.nat(),
      fc.nat(40),
      (pools, changed, at, needed) => {
        const i = at % pools.length;
        const utility = (units: number): number => Math.min(1, units / Math.max(1, needed)) ** 2;
        const mostMore = changed.chain.reduce((sum, { units }) => sum + units, 0);
        const value = new FootprintValue(pools, utility, mostMore);
        const wholly = (of: typeof pools): number =>
          expectedUtility(
            remainingOf(
              of.map(({ chain }) => chain),
              (k) => of[k]?.lambda ?? 0,
            ),
            utility,
          );
        expect(value.utility).toBeCloseTo(wholly(pools), 10);
        expect(value.withChain(i, changed)).toBeCloseTo(wholly(pools.with(i, changed)), 10);
        expect(value.beside(mostMore)).toBeCloseTo(
          wholly([...pools, { chain: [{ units: mostMore, pLost: 0 }], lambda: 0 }]),
          10,
        );
      },
    ),
    { numRuns: runs(300) },
  );
});
