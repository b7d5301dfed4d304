import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { PoolView } from '../../../../lib/domain/pool.ts';
import { stratusScaler } from '../../../../lib/stages/scale/stratus.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';
import { group, pool, resources, view } from '../../../support/decision-world.ts';
import { productScan } from '../../../support/product-scan.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

/** Types whose constraining resource differs for one need, and of which some dominate others. */
const TYPES = [
  { type: 'm5.large', vcpus: 2, gib: 8 },
  { type: 'm5.2xlarge', vcpus: 8, gib: 32 },
  { type: 'c5.2xlarge', vcpus: 8, gib: 16 },
  { type: 'r5.2xlarge', vcpus: 8, gib: 64 },
  { type: 'r5.large', vcpus: 2, gib: 16 },
  { type: 'g5.2xlarge', vcpus: 8, gib: 32, gpus: 2 },
] as const;
const ZONES = ['a', 'b'] as const;

/** Prices with two digits, so that scores are often equal. */
const markets: fc.Arbitrary<readonly PoolView[]> = fc
  .array(fc.option(fc.integer({ min: 1, max: 12 }), { freq: 8 }), {
    minLength: TYPES.length * ZONES.length * 2,
    maxLength: TYPES.length * ZONES.length * 2,
  })
  .map((prices) =>
    TYPES.flatMap((type, t) =>
      ZONES.flatMap((zone, z) =>
        (['spot', 'on-demand'] as const).map((option, o) => {
          const price = prices[(t * ZONES.length + z) * 2 + o] ?? null;
          return view(pool({ ...type, zone, option, onDemand: 0.1 }), price === null ? null : price / 100, price !== 7);
        }),
      ),
    ),
  );

const work: fc.Arbitrary<readonly Wanted[]> = fc
  .array(
    fc.record({
      count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 5, max: 40 })),
      cpus: fc.constantFrom(0.25, 0.5, 1, 2, 3),
      gib: fc.constantFrom(0.5, 1, 4, 7, 12),
      gpus: fc.constantFrom(0, 0, 0, 1),
      runtimeS: fc.constantFrom(0.5, 40, 50, 60, 3000, 3500),
      zones: fc.constantFrom(undefined, undefined, ['a']),
    }),
    { minLength: 1, maxLength: 7 },
  )
  .map((list) =>
    list.map(({ count, cpus, gib, gpus, runtimeS, zones }, i): Wanted => ({
      group: group({
        id: `g${i}`,
        count,
        need: resources(cpus, gib, gpus),
        stage: { constraints: zones === undefined ? {} : { zones } },
      }),
      runtimeS,
      pools: [view(pool(), 0.1)],
    })),
  );

describe('Stratus’ scaler', () => {
  it('buys what a scan of each group on each pool would buy', () => {
    let several = 0;
    let mixed = 0;
    fc.assert(
      fc.property(work, markets, (wanted, pools) => {
        const input = acquireInput(wanted, { pools });
        const bought = Object.fromEntries(stratusScaler({ mostTasks: Infinity })(input).map((p) => [p.pool, p.count]));
        const counts = Object.values(bought);
        several += Number(counts.some((n) => n > 3));
        mixed += Number(counts.length > 2);
        expect(bought).toEqual(productScan(input));
      }),
      { numRuns: runs(300), seed: 11 },
    );
    expect(several).toBeGreaterThan(seenMoreThan(30));
    expect(mixed).toBeGreaterThan(seenMoreThan(30));
  });

  it('answers the same whatever the order of its input', () => {
    fc.assert(
      fc.property(work, markets, (wanted, pools) => {
        const buy = stratusScaler({ mostTasks: Infinity });
        const turned = acquireInput([...wanted].reverse(), { pools: [...pools].reverse() });
        expect(buy(turned)).toEqual(buy(acquireInput(wanted, { pools })));
      }),
      { numRuns: runs(100), seed: 12 },
    );
  });
});
