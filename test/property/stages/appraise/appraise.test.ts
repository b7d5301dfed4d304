import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { seconds } from '../../../../lib/kernel/units.ts';
import { distribution } from '../../../../lib/domain/distribution.ts';
import { appraise } from '../../../../lib/stages/appraise/appraise.ts';
import { isBoughtAs, isSpotPool } from '../../../../lib/domain/pool.ts';
import {
  config,
  exponential,
  group,
  market,
  pool,
  resources,
  view,
  world,
  worth,
} from '../../../support/decision-world.ts';

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
          const answer = appraise({ ...w, config: config() });
          const v = world({ pools: [...views].reverse(), groups: [...groups].reverse(), ...facts2 });
          const again = appraise({ ...v, config: config() });
          groups.forEach((g, i) => {
            const { offers, excluded, considered } = answer.get(g.id) ?? { offers: [], excluded: [], considered: [] };
            expect(again.get(g.id)?.offers).toEqual(offers);
            expect(offers.length).toBeLessThanOrEqual(6);
            expect(considered.length).toBeLessThanOrEqual(12);
            const usable = views.filter(
              (p) =>
                p.open &&
                (p.pool.option !== 'spot' || Number(p.quote) <= 0.1) &&
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
              if (isSpotPool(o.pool)) spotOffers++;
            }
            if (usable.some((p) => p.pool.option === 'on-demand')) {
              expect(offers.some((o) => isBoughtAs(o.pool, 'on-demand'))).toBe(true);
            }
          });
        },
      ),
      { seed: 21, numRuns: 150 },
    );
    expect(spotOffers).toBeGreaterThan(100);
  });

  it('of groups that differ in their deadline alone is that of each by itself', () => {
    const views = ['a', 'b', 'c'].flatMap((zone) => [
      view(pool({ type: 'm5.large', zone, option: 'spot', vcpus: 2, onDemand: 0.1 }), 0.03, true),
      view(pool({ type: 'm5.large', zone, option: 'on-demand', vcpus: 2, onDemand: 0.1 }), 0.1, true),
    ]);
    let differing = 0;
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.integer({ min: 60, max: 20_000 })), { minLength: 2, maxLength: 6 }),
        fc.boolean(),
        (slacksS, saves) => {
          const stage = {
            checkpoint: saves ? { signal: 'SIGUSR1' as const, graceS: seconds(30), everyS: null } : null,
          };
          // Each fills an instance: what the others are does not change the share that it pays.
          const groups = slacksS.map((_, i) => group({ id: `g${i}`, need: resources(2, 1), class: 'deadline', stage }));
          const facts = {
            pools: views,
            market: market(views, () => exponential(0.4)),
            runtime: () =>
              distribution([
                [600, 0.6],
                [5000, 0.4],
              ]),
            worth: (g: { id: string }) => worth(slacksS[Number(g.id.slice(1))] ?? null),
          };
          const asked = (of: typeof groups) => {
            const w = world({ ...facts, groups: of });
            return appraise({ ...w, config: config() });
          };
          const together = asked(groups);
          for (const g of groups) {
            const alone = asked([g]).get(g.id);
            expect(together.get(g.id)?.offers).toEqual(alone?.offers);
            expect(together.get(g.id)?.considered).toEqual(alone?.considered);
            if (alone?.offers.some((o) => o.pLate > 0) === true) differing++;
          }
        },
      ),
      { seed: 11, numRuns: 60 },
    );
    expect(differing).toBeGreaterThan(20);
  });
});
