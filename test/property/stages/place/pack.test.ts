import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { vector } from '../../../../lib/domain/resources.ts';
import { firstFit } from '../../../../lib/stages/place/first-fit.ts';
import { onePerInstance } from '../../../../lib/stages/place/one-per-instance.ts';
import { stratusPack } from '../../../../lib/stages/place/stratus.ts';
import { resources } from '../../../support/decision-world.ts';
import { hostLists, keyOf, taskLists } from '../../../support/packing-cases.ts';
import { nameOf } from '../../../support/tasks-to-place.ts';
import { naiveFirstFit, naiveOnePerInstance, naiveStratus, whereOf } from '../../../support/naive-packers.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

describe.each([
  ['stratus', stratusPack, naiveStratus],
  ['first-fit', firstFit, naiveFirstFit],
  ['one-per-instance', onePerInstance, naiveOnePerInstance],
] as const)('%s', (_, pack, naive) => {
  it('overfills nothing, respects `allowed`, places whole gangs and no task twice, in any order of input', () => {
    let some = 0;
    let notAll = 0;
    let gangs = 0;
    fc.assert(
      fc.property(taskLists(true), hostLists, fc.integer(), (tasks, hosts, seed) => {
        const placements = pack(tasks, hosts);
        const byKey = new Map(tasks.map((t) => [keyOf(t), t]));
        expect(new Set(placements.map(keyOf)).size).toBe(placements.length);
        for (const h of hosts) {
          const mine = placements.filter((p) => nameOf(p.on) === nameOf(h.on));
          vector(h.free).forEach((free, k) => {
            const used = mine.reduce(
              (sum, p) => sum + (vector(byKey.get(keyOf(p))?.need ?? resources(NaN, NaN))[k] ?? 0),
              0,
            );
            expect(used).toBeLessThanOrEqual(free + 1e-5);
          });
          for (const p of mine) expect(byKey.get(keyOf(p))?.allowed(h)).toBe(true);
        }
        for (const gang of ['g1', 'g2']) {
          const all = tasks.filter((t) => t.gang === gang).length;
          const placed = placements.filter((p) => byKey.get(keyOf(p))?.gang === gang).length;
          expect([0, all]).toContain(placed);
          if (placed > 0) gangs++;
        }
        const turned = (list: readonly unknown[]): number => (list.length === 0 ? 0 : Math.abs(seed) % list.length);
        const i = turned(tasks);
        const j = turned(hosts);
        const again = pack(
          [...tasks.slice(i), ...tasks.slice(0, i)].reverse(),
          [...hosts.slice(j), ...hosts.slice(0, j)].reverse(),
        );
        expect(whereOf(again)).toEqual(whereOf(placements));
        if (placements.length > 0) some++;
        if (placements.length < tasks.length) notAll++;
      }),
      { seed: 41, numRuns: runs(400) },
    );
    expect(some).toBeGreaterThan(seenMoreThan(100));
    expect(notAll).toBeGreaterThan(seenMoreThan(100));
    expect(gangs).toBeGreaterThan(seenMoreThan(30));
  });

  it('packs exactly as one task at a time over all hosts does', () => {
    let several = 0;
    fc.assert(
      fc.property(taskLists(true), hostLists, (tasks, hosts) => {
        const got = whereOf(pack(tasks, hosts));
        expect(got).toEqual(naive(tasks, hosts));
        if (new Set(Object.values(got)).size > 1) several++;
      }),
      { seed: 42, numRuns: runs(2000) },
    );
    expect(several).toBeGreaterThan(seenMoreThan(300));
  });
});
