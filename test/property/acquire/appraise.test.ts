import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { seconds } from '../../../lib/kernel/units.ts';
import { distribution } from '../../../lib/domain/distribution.ts';
import { appraise } from '../../../lib/acquire/appraise.ts';
import { config, exponential, group, market, pool, resources, view, world, worth } from '../../unit/acquire/world.ts';

const poolFacts = fc.record({
  type: fc.constantFrom('m5.large', 'c5.xlarge', 'r4.large', 'm6g.large'),
  zone: fc.constantFrom('a', 'b', 'c', 'd'),
  option: fc.constantFrom('spot' as const, 'spot' as const, 'on-demand' as const),
  price: fc.double({ min: 0.005, max: 0.15, noNaN: true }),
  open: fc.boolean(),
});
const groupFacts = fc.record({
  vcpus: fc.integer({ min: 1, max: 3 }),
  minutes: fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 4 }),
  saves: fc.boolean(),
  slackS: fc.option(fc.integer({ min: 60, max: 80_000 })),
  zones: fc.option(fc.constantFrom(['a'], ['b', 'c'])),
});

describe('appraisal', () => {
  it('respects constraints, keeps its invariants and does not depend on the order of its input', () => {
    let spotOffers = 0;
    fc.assert(
      fc.property(
        fc.uniqueArray(poolFacts, { minLength: 1, maxLength: 14, selector: (p) => `${p.type} ${p.zone} ${p.option}` }),
        fc.array(groupFacts, { minLength: 1, maxLength: 4 }),
        (facts, wants) => {
          const views = facts.map((f) =>
            view(pool({ ...f, vcpus: f.type === 'c5.xlarge' ? 4 : 2, onDemand: 0.1 }), f.price, f.open),
          );
          const groups = wants.map((g, i) =>
            group({
              id: `g${i}`,
              need: resources(g.vcpus, 1),
              class: g.slackS === null ? 'best-effort' : 'deadline',
              stage: {
                checkpoint: g.saves ? { signal: 'SIGUSR1', graceS: seconds(30), everyS: null } : null,
                constraints: g.zones === null ? {} : { zones: g.zones },
              },
            }),
          );
          const facts2 = {
            market: market(views, (p) => exponential(0.01 * p.id.length)),
            runtime: (g: { id: string }) =>
              distribution((wants[Number(g.id.slice(1))]?.minutes ?? [1]).map((m) => [m * 60, 1])),
            worth: (g: { id: string }) => worth(wants[Number(g.id.slice(1))]?.slackS ?? null),
          };
          const w = world({ pools: views, groups, ...facts2 });
          const answer = appraise(w.snapshot, w.forecasts, w.worths, config());
          const v = world({ pools: [...views].reverse(), groups: [...groups].reverse(), ...facts2 });
          const again = appraise(v.snapshot, v.forecasts, v.worths, config());
          groups.forEach((g, i) => {
            const { offers, excluded, considered } = answer.get(g.id) ?? { offers: [], excluded: [], considered: [] };
            expect(again.get(g.id)?.offers).toEqual(offers);
            expect(offers.length).toBeLessThanOrEqual(6);
            expect(considered.length).toBeLessThanOrEqual(12);
            const usable = views.filter(
              (p) =>
                p.open &&
                ((wants[i]?.zones as readonly string[] | null | undefined)?.includes(p.pool.zone) ?? true) &&
                (p.pool.type.capacity.cpu as unknown as number) >= (wants[i]?.vcpus ?? 0) * 1000,
            );
            const ids = new Set<string>(usable.map((p) => p.pool.id));
            expect(excluded.reduce((n, e) => n + e.pools, 0)).toBe(views.length - usable.length);
            for (const o of offers) {
              expect(ids.has(o.pool)).toBe(true);
              expect(o.pInterrupted).toBeGreaterThanOrEqual(0);
              expect(o.pInterrupted).toBeLessThanOrEqual(1);
              expect(o.pLate).toBeGreaterThanOrEqual(0);
              expect(o.pLate).toBeLessThanOrEqual(1);
              expect(o.expectedCostUsd).toBeGreaterThan(0);
              if (o.pool.endsWith('spot')) spotOffers++;
            }
            if (usable.some((p) => p.pool.option === 'on-demand')) {
              expect(offers.some((o) => o.pool.endsWith('on-demand'))).toBe(true);
            }
          });
        },
      ),
      { seed: 21, numRuns: 150 },
    );
    expect(spotOffers).toBeGreaterThan(100);
  });
});
