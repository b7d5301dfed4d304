import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Placement } from '../../../../lib/domain/plan.ts';
import { vector } from '../../../../lib/domain/resources.ts';
import type { Host, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import { firstFit } from '../../../../lib/stages/place/first-fit.ts';
import { stratusPack } from '../../../../lib/stages/place/stratus.ts';
import { raw } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/decision-world.ts';
import { host, nameOf, runtimeOf, tasksOf } from '../../../support/tasks-to-place.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

const ZONES = ['a', 'b'] as const;
const runtimes = fc.constantFrom(0.5, 1, 3, 100, 100, 120, 700, 900, 1500, 40_000);

const hostLists = fc
  .array(
    fc.record({
      vcpus: fc.integer({ min: 1, max: 8 }),
      used: fc.integer({ min: 0, max: 8 }),
      gib: fc.integer({ min: 1, max: 16 }),
      remainingS: fc.oneof(fc.constant(0), runtimes),
      zone: fc.constantFrom(...ZONES),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((list) => list.map((h, i) => host({ ...h, id: `h${i}`, free: Math.max(0, h.vcpus - h.used) })));

const taskLists = (gangs: boolean) =>
  fc
    .array(
      fc.record({
        count: fc.integer({ min: 1, max: 9 }),
        vcpus: fc.integer({ min: 1, max: 3 }),
        gib: fc.integer({ min: 1, max: 5 }),
        runtimeS: runtimes,
        zone: fc.option(fc.constantFrom(...ZONES)),
        gang: gangs ? fc.option(fc.constantFrom('g1', 'g2')) : fc.constant(null),
      }),
      { minLength: 1, maxLength: 6 },
    )
    .map((list) =>
      list.flatMap((t, i) =>
        tasksOf({
          id: `t${i}`,
          count: t.count,
          need: resources(t.vcpus, t.gib),
          runtimeS: t.runtimeS,
          gang: t.gang,
          allowed: (h) => t.zone === null || h.pool.zone === t.zone,
        }),
      ),
    );

const keyOf = (t: { task: TaskToPlace['task'] }): string => `${t.task.job}/${t.task.index}`;
const bin = (s: number): number => (s < 1 ? 0 : Math.floor(Math.log2(s)) + 1);

/** The packer of Stratus 3.2.2, one task at a time over all hosts: no runs, no heaps, no index. */
function naive(tasks: readonly TaskToPlace[], hosts: readonly Host[]): Record<string, string> {
  const state = [...hosts]
    .sort((a, b) => (nameOf(a.on) < nameOf(b.on) ? -1 : 1))
    .map((h) => ({ host: h, free: [...vector(h.free)], remaining: raw(h.remainingS) }));
  const largest = [0, 1, 2, 3].map((k) => Math.max(...hosts.map((h) => vector(h.capacity)[k] ?? 0)));
  const room = (free: readonly number[]): number =>
    free.reduce((sum, f, k) => sum + ((largest[k] ?? 0) > 0 ? f / (largest[k] ?? 1) : 0), 0);
  const ordered = [...tasks].sort((a, b) => {
    const x = vector(a.need);
    const y = vector(b.need);
    const needs = [0, 1, 2, 3].map((k) => (y[k] ?? 0) - (x[k] ?? 0)).find((d) => d !== 0) ?? 0;
    return (
      runtimeOf(b) - runtimeOf(a) ||
      needs ||
      (a.group < b.group ? -1 : a.group > b.group ? 1 : a.task.index - b.task.index)
    );
  });
  const placed: Record<string, string> = {};
  for (const task of ordered) {
    const need = vector(task.need);
    const able = state.filter((s) => need.every((n, k) => n <= (s.free[k] ?? 0) + 1e-6) && task.allowed(s.host));
    const native = bin(runtimeOf(task));
    const score = (s: (typeof state)[number]): readonly number[] => {
      const b = bin(s.remaining);
      if (b === native) return [0, 0, Math.abs(s.remaining - runtimeOf(task))];
      return b > native ? [1, b, -room(s.free)] : [2, -b, -room(s.free)];
    };
    let best: (typeof state)[number] | undefined;
    for (const s of able) {
      const [x, y] = [score(s), best === undefined ? [9] : score(best)];
      const difference = x.map((v, i) => v - (y[i] ?? 0)).find((d) => Math.abs(d) > 1e-12) ?? 0;
      if (best === undefined || difference < 0) best = s;
    }
    const host = best;
    if (host === undefined) continue;
    need.forEach((n, k) => (host.free[k] = (host.free[k] ?? 0) - n));
    host.remaining = Math.max(host.remaining, runtimeOf(task));
    placed[keyOf(task)] = nameOf(host.host.on);
  }
  return placed;
}

const asRecord = (placements: readonly Placement[]): Record<string, string> =>
  Object.fromEntries(placements.map((p) => [keyOf(p), nameOf(p.on)]));

describe.each([
  ['stratus', stratusPack],
  ['first-fit', firstFit],
] as const)('%s', (_, pack) => {
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
        expect(asRecord(again)).toEqual(asRecord(placements));
        if (placements.length > 0) some++;
        if (placements.length < tasks.length) notAll++;
      }),
      { seed: 41, numRuns: runs(300) },
    );
    expect(some).toBeGreaterThan(seenMoreThan(100));
    expect(notAll).toBeGreaterThan(seenMoreThan(100));
    expect(gangs).toBeGreaterThan(seenMoreThan(30));
  });
});

describe('stratus', () => {
  it('packs groups exactly as one task at a time', () => {
    let several = 0;
    fc.assert(
      fc.property(taskLists(false), hostLists, (tasks, hosts) => {
        const got = asRecord(stratusPack(tasks, hosts));
        expect(got).toEqual(naive(tasks, hosts));
        if (new Set(Object.values(got)).size > 2) several++;
      }),
      { seed: 42, numRuns: runs(500) },
    );
    expect(several).toBeGreaterThan(seenMoreThan(100));
  });
});
