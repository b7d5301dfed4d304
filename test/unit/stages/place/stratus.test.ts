import { describe, expect, it } from '@jest/globals';
import { firstFit } from '../../../../lib/stages/place/first-fit.ts';
import { stratusPack } from '../../../../lib/stages/place/stratus.ts';
import type { Placement } from '../../../../lib/domain/plan.ts';
import { resources } from '../../../support/decision-world.ts';
import { host, nameOf, tasksOf } from '../../../support/tasks-to-place.ts';

const where = (placements: readonly Placement[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const p of placements) counts[nameOf(p.on)] = (counts[nameOf(p.on)] ?? 0) + 1;
  return counts;
};

describe("Stratus' packer", () => {
  it('takes the host of the same bin whose remaining time is the closest', () => {
    const hosts = [
      host({ id: 'far', remainingS: 1030 }),
      host({ id: 'near', remainingS: 1500 }),
      host({ id: 'other', remainingS: 1023 }),
    ];
    const [p] = stratusPack(tasksOf({ id: 't', runtimeS: 1400 }), hosts);
    expect(p?.on).toBe('near');
    expect(p?.reason).toContain('closest');
  });

  it('packs up into the next greater bin with room before the ones above it, on the roomiest host', () => {
    const hosts = [
      host({ id: 'greatest', remainingS: 9000, vcpus: 16 }),
      host({ id: 'greater-full', remainingS: 3000, free: 0.5 }),
      host({ id: 'greater-tight', remainingS: 3000, free: 1 }),
      host({ id: 'greater-roomy', remainingS: 3000, free: 3 }),
      host({ id: 'lesser', remainingS: 100, vcpus: 32 }),
    ];
    const placements = stratusPack(tasksOf({ id: 't', count: 5, runtimeS: 1400 }), hosts);
    expect(where(placements)).toEqual({ 'greater-roomy': 3, 'greater-tight': 1, greatest: 1 });
    expect(placements[0]?.reason).toContain('beside longer tasks');
  });

  it('packs down into the nearest lesser bin, the roomiest host first, and fills what it promoted', () => {
    const hosts = [
      host({ id: 'empty', vcpus: 64 }),
      host({ id: 'short', remainingS: 600, free: 2 }),
      host({ id: 'short-roomy', remainingS: 600, free: 3 }),
    ];
    expect(where(stratusPack(tasksOf({ id: 't', count: 4, runtimeS: 1400 }), hosts))).toEqual({
      'short-roomy': 3,
      short: 1,
    });
  });

  it('treats a promoted host as one of the bin it was promoted to', () => {
    const hosts = [host({ id: 'empty', vcpus: 4 }), host({ id: 'busy', remainingS: 600, vcpus: 4 })];
    const long = tasksOf({ id: 'a', runtimeS: 5000 });
    const similar = tasksOf({ id: 'b', count: 3, runtimeS: 4500 });
    expect(where(stratusPack([...similar, ...long], hosts))).toEqual({ busy: 4 });
  });

  it('does not take an instance for shorter because a shorter task was put beside', () => {
    const hosts = [host({ id: 'long', remainingS: 2000, vcpus: 2 }), host({ id: 'short', remainingS: 1250, vcpus: 1 })];
    const first = tasksOf({ id: 'a', runtimeS: 1900 });
    const second = tasksOf({ id: 'b', runtimeS: 1600 });
    expect(where(stratusPack([...first, ...second], hosts))).toEqual({ long: 1, short: 1 });
  });

  it('places the longest first', () => {
    const one = [host({ id: 'h', vcpus: 1 })];
    const placements = stratusPack(
      [...tasksOf({ id: 'short', runtimeS: 10 }), ...tasksOf({ id: 'long', runtimeS: 1000 })],
      one,
    );
    expect(placements.map((p) => p.group)).toEqual(['long']);
  });

  it('asks about a host once per group', () => {
    let asked = 0;
    const allowed = (): boolean => ++asked > 0;
    stratusPack(tasksOf({ id: 't', count: 50, runtimeS: 10, allowed }), [
      host({ id: 'a', vcpus: 64 }),
      host({ id: 'b', vcpus: 64 }),
    ]);
    expect(asked).toBeLessThanOrEqual(2);
  });

  it('has nothing to say without tasks or hosts', () => {
    expect(stratusPack([], [host({ id: 'h' })])).toEqual([]);
    expect(stratusPack(tasksOf({ id: 't', runtimeS: 10 }), [])).toEqual([]);
  });
});

describe.each([
  ['stratus', stratusPack],
  ['first-fit', firstFit],
] as const)('gangs on %s', (_, pack) => {
  const hosts = [host({ id: 'a', vcpus: 4 }), host({ id: 'b', vcpus: 4, zone: 'b' })];

  it('are placed whole', () => {
    expect(pack(tasksOf({ id: 'g', count: 8, runtimeS: 100, gang: 'g' }), hosts)).toHaveLength(8);
  });

  it('or not at all, and leave the room to others', () => {
    const gang = tasksOf({ id: 'g', count: 9, runtimeS: 100, gang: 'g' });
    const others = tasksOf({ id: 'o', count: 8, runtimeS: 10 });
    expect(new Set(pack([...gang, ...others], hosts).map((p) => p.group))).toEqual(new Set(['o']));
    expect(pack([...gang, ...others], hosts)).toHaveLength(8);
  });

  it('leave no trace in running times when they do not fit', () => {
    const two = [
      host({ id: 'was-close', vcpus: 1, remainingS: 1500 }),
      host({ id: 'other', vcpus: 1, remainingS: 1700 }),
    ];
    const gang = tasksOf({ id: 'g', count: 3, runtimeS: 2000, gang: 'g' });
    const [p] = pack([...gang, ...tasksOf({ id: 't', runtimeS: 1500 })], two);
    if (pack === stratusPack) expect(p?.on).toBe('was-close');
    expect(p?.group).toBe('t');
  });

  it('hold together over groups', () => {
    const fresh = tasksOf({ id: 'fresh', count: 5, runtimeS: 100, gang: 'g' });
    const tried = tasksOf({ id: 'tried', count: 2, runtimeS: 50, gang: 'g', need: resources(2, 1) });
    expect(pack([...fresh, ...tried], hosts)).toEqual([]);
    const smaller = tasksOf({ id: 'tried', count: 1, runtimeS: 50, gang: 'g', need: resources(2, 1) });
    expect(pack([...fresh, ...smaller], hosts)).toHaveLength(6);
  });
});
