import { describe, expect, it } from '@jest/globals';
import type { Host, PlaceTasks, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import type { Pool } from '../../../../lib/domain/pool.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { firstFit } from '../../../../lib/stages/place/first-fit.ts';
import { balancedPack, stratusPack } from '../../../../lib/stages/place/stratus.ts';
import { pool, resources } from '../../../support/decision-world.ts';
import { host, nameOf, tasksOf } from '../../../support/tasks-to-place.ts';

const KINDS = ['cpu', 'memory', 'gpus', 'disk'] as const;
const NONE = resources(0, 0);

/** An instance with so much of one kind, and plenty of the others. */
const hostWith = (kind: (typeof KINDS)[number], amount: number): Host => {
  const h = host({ id: 'i', vcpus: 64, gib: 512 });
  return { ...h, free: { ...h.free, gpus: 8, [kind]: amount } };
};
const needing = (kind: (typeof KINDS)[number], amount: number, count: number): TaskToPlace[] =>
  tasksOf({ id: 't', count, runtimeS: 60, need: { ...NONE, [kind]: amount } });

/** The hosts about which a packer asks, in the order of its questions. */
function askedOf(pack: PlaceTasks, hosts: readonly Host[], groups: readonly Partial<Parameters<typeof tasksOf>[0]>[]) {
  const asked: string[] = [];
  const allowed = (h: Host): boolean => asked.push(nameOf(h.on)) > 0;
  pack(
    groups.flatMap((g, i) => tasksOf({ id: `t${i}`, runtimeS: 100, allowed, ...g })),
    hosts,
  );
  return asked;
}

describe.each([
  ['stratus', stratusPack],
  ['stratus, balanced', balancedPack],
  ['first-fit', firstFit],
] as const)('%s', (_, pack) => {
  it.each(KINDS)('fills an instance to the last of its %s, rounding of fractions aside', (kind) => {
    expect(pack(needing(kind, 0.1, 3), [hostWith(kind, 0.1 + 0.1 + 0.1)])).toHaveLength(3);
    expect(pack(needing(kind, 0.1, 4), [hostWith(kind, 0.3)])).toHaveLength(3);
    expect(pack(needing(kind, 0.1, 1), [hostWith(kind, 0.1)])).toHaveLength(1);
    expect(pack(needing(kind, 0.1, 1), [hostWith(kind, 0.0999)])).toEqual([]);
  });

  it.each(KINDS)('does not look at what runs on an instance that has too little %s for any task', (kind) => {
    const full = Object.defineProperty(hostWith(kind, 0.5), 'remainingS', {
      get: () => {
        throw new Error('what runs there was looked at');
      },
    });
    const tasks = [...needing(kind, 1, 1), ...needing(kind, 2, 1).map((t) => ({ ...t, allowed: () => true }))];
    expect(pack(tasks, [full])).toEqual([]);
  });

  it('asks about a pool, not about each of its instances', () => {
    const pools = [pool({ zone: 'a' }), pool({ zone: 'b' })];
    const hosts = Array.from({ length: 50 }, (_, i) => ({ ...host({ id: `i${i}` }), pool: pools[i % 2] ?? pool() }));
    let asked = 0;
    const inPool = (): boolean => ++asked > 0;
    expect(pack(tasksOf({ id: 't', runtimeS: 60, inPool }), hosts)).toHaveLength(1);
    expect(asked).toBeLessThanOrEqual(3 * pools.length);
  });

  it('asks about instances of the pools that a task may use, that have room for it, while it waits for one', () => {
    const hosts = [
      host({ id: '0-elsewhere', zone: 'b', remainingS: 100 }),
      host({ id: '1-full', vcpus: 8, free: 1, remainingS: 100 }),
      host({ id: '2-first', vcpus: 8, remainingS: 100 }),
      host({ id: '3-longer', remainingS: 1000 }),
      host({ id: '4-shorter', remainingS: 10 }),
    ];
    const inPool = (p: Pool): boolean => p.zone === 'a';
    const asked = askedOf(pack, hosts, [{ count: 3, need: resources(2, 1), inPool }]);
    expect(asked).toEqual(['2-first']);
  });

  it('serves equal groups by name, and tasks of a group by number though their constraints differ', () => {
    const group = (id: string): TaskToPlace[] =>
      tasksOf({ id, count: 4, runtimeS: 60 }).map((t) => (t.task.index < 2 ? t : { ...t, allowed: () => true }));
    const tasks = [...group('b'), ...group('a')];
    const hosts = [host({ id: 'i', vcpus: 7 })];
    for (const list of [tasks, tasks.toReversed()]) {
      const order = pack(list, hosts).map((p) => `${p.group}${p.task.index}`);
      expect(order).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'b2']);
    }
  });

  it('takes tasks of one group apart that run for another time, or belong to no gang', () => {
    const gang = tasksOf({ id: 't', count: 3, runtimeS: 60, gang: 'g' });
    const changed = (over: Partial<TaskToPlace>): TaskToPlace[] =>
      gang.map((t) => (t.task.index === 2 ? { ...t, ...over } : t));
    const onVcpus = (vcpus: number, tasks: readonly TaskToPlace[]): number[] =>
      pack(tasks, [host({ id: 'i', vcpus })]).map((p) => p.task.index);
    expect(onVcpus(2, gang)).toEqual([]);
    expect(onVcpus(2, changed({ gang: null }))).toEqual([0, 1]);
    expect(onVcpus(2, changed({ gang: null, runtimeS: seconds(90) }))).toEqual([2]);
    expect(onVcpus(3, changed({ runtimeS: seconds(90) }))).toEqual([2, 0, 1]);
  });
});

describe.each([
  ['stratus', stratusPack],
  ['first-fit', firstFit],
] as const)('%s, one run after the other', (_, pack) => {
  it('serves the larger of two needs first, kind by kind', () => {
    const sizes = [resources(1, 1), resources(1, 2), resources(1, 1, 1), resources(2, 1)];
    const tasks = sizes.flatMap((need, i) => tasksOf({ id: `t${i}`, runtimeS: 60, need }));
    expect(pack(tasks, [hostWith('gpus', 8)]).map((p) => p.group)).toEqual(['t3', 't1', 't2', 't0']);
  });
});

/** CPU-heavy and memory-heavy tasks, of which the same number fills machines of 8 vCPUs and 16 GiB together. */
const halves = (count: number): readonly TaskToPlace[] => [
  ...tasksOf({ id: 'cpu', count, runtimeS: 60, need: resources(2, 1024) }),
  ...tasksOf({ id: 'memory', count, runtimeS: 60, need: resources(1, 4608) }),
];
const machine = (id: string, zone = 'a'): Host => {
  const capacity = resources(9, 16_896);
  return { ...host({ id }), pool: pool({ zone }), capacity, free: capacity };
};

describe('tasks of different proportions', () => {
  const machines = ['i-1', 'i-2', 'i-3', 'i-4'].map((id) => machine(id));

  it('use up empty machines together, which one run after the other would not', () => {
    expect(balancedPack(halves(12), machines)).toHaveLength(24);
    expect(stratusPack(halves(12), machines).length).toBeLessThan(24);
  });

  it('leave room in a pool to tasks that may use no other', () => {
    const two = [machine('a-1'), machine('a-2'), machine('b-1', 'b'), machine('b-2', 'b')];
    const anywhere = tasksOf({ id: 'anywhere', count: 6, runtimeS: 60, need: resources(3, 512) });
    const inA = (p: Pool): boolean => p.zone === 'a';
    const bound = tasksOf({ id: 'bound', count: 6, runtimeS: 60, need: resources(3, 512), inPool: inA }).map((t) => ({
      ...t,
      allowed: (h: Host) => inA(h.pool),
    }));
    expect(balancedPack([...anywhere, ...bound], two)).toHaveLength(12);
  });
});

describe('constraints of groups', () => {
  it('are asked about each instance once by stratus, though groups share them', () => {
    const asked: string[] = [];
    const allowed = (h: Host): boolean => asked.push(nameOf(h.on)) > 0 && nameOf(h.on) !== 'i-1';
    const groups = [300, 200, 100].flatMap((runtimeS) => tasksOf({ id: `t${runtimeS}`, runtimeS, allowed }));
    const placed = stratusPack(groups, [host({ id: 'i-1', vcpus: 8 }), host({ id: 'i-2', vcpus: 2 })]);
    expect(placed.map((p) => nameOf(p.on))).toEqual(['i-2', 'i-2']);
    expect(asked.sort()).toEqual(['i-1', 'i-2']);
  });

  it('are not asked by stratus about pools that only other groups may use', () => {
    const hosts = [host({ id: 'a', zone: 'a' }), host({ id: 'b', zone: 'b' })];
    const inPool = (p: Pool): boolean => p.zone === 'a';
    const anywhere = { runtimeS: 50, allowed: () => true };
    expect(askedOf(stratusPack, hosts, [{ inPool }, anywhere])).toEqual(['a']);
  });
});
