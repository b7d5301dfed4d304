import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fittings, type Room } from '../../../../lib/stages/plan/supply.ts';
import { mib, milliCpu, raw } from '../../../../lib/kernel/units.ts';
import { plusResources, type Resources } from '../../../../lib/domain/resources.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

const resources = (most: number): fc.Arbitrary<Resources> =>
  fc
    .record({ cpu: fc.nat(most), memory: fc.nat(most), gpus: fc.nat(2) })
    .map(({ cpu, memory, gpus }) => ({ cpu: milliCpu(cpu), memory: mib(memory), gpus, disk: mib(0) }));

const scene = fc.record({
  there: fc.array(fc.record({ free: resources(8), runs: resources(6) }), { maxLength: 8 }),
  needs: fc.array(
    resources(5).filter((r) => raw(r.cpu) + raw(r.memory) + r.gpus > 0),
    { minLength: 1, maxLength: 2 },
  ),
  asked: fc.array(fc.record({ need: fc.nat(1), most: fc.nat(8) }), { minLength: 1, maxLength: 6 }),
});

/** Puts one more in until none fits, on each instance. */
function counted(need: Resources, there: readonly Resources[]): number {
  return there.reduce((sum, free) => {
    let n = 0;
    const fitsOnce = (): boolean =>
      raw(need.cpu) * (n + 1) <= raw(free.cpu) &&
      raw(need.memory) * (n + 1) <= raw(free.memory) &&
      need.gpus * (n + 1) <= free.gpus;
    while (fitsOnce()) n++;
    return sum + n;
  }, 0);
}

describe('how many tasks fit on the instances of a room', () => {
  it('is counted as far as it is asked for, whatever was asked before, and preemptible work only where it must', () => {
    const looked = { all: 0, some: 0, none: 0 };
    fc.assert(
      fc.property(scene, ({ there, needs, asked }) => {
        const seen = new Set<number>();
        const free = there.map((t) => t.free);
        const afterPreemption = there.map((t) => plusResources(t.free, t.runs));
        const room: Room = {
          count: there.length,
          free: (position) => free[position] as Resources,
          afterPreemption: (position) => {
            seen.add(position);
            return afterPreemption[position] as Resources;
          },
          partition: () => ({ id: 'room', renewable: true, kinds: [], capacity: [] }),
          views: () => [],
          stays: () => true,
        };
        const fitting = fittings();
        for (const { need, most } of asked) {
          const one = needs[need % needs.length] as Resources;
          const before = seen.size;
          expect(fitting(one, room, most)).toBe(Math.min(most, counted(one, afterPreemption)));
          if (counted(one, free) >= most) expect(seen.size).toBe(before);
        }
        if (seen.size === 0) looked.none++;
        else if (seen.size < there.length) looked.some++;
        else looked.all++;
      }),
      { seed: 20261122, numRuns: runs(500) },
    );
    expect(Math.min(looked.all, looked.some, looked.none)).toBeGreaterThan(seenMoreThan(30));
  });
});
