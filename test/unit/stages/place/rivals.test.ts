import { describe, expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../../../lib/kernel/units.ts';
import { binpack } from '../../../../lib/stages/place/binpack.ts';
import { dotProduct } from '../../../../lib/stages/place/dot-product.ts';
import { freshInstances } from '../../../../lib/stages/place/fresh-instances.ts';
import type { Placement } from '../../../../lib/domain/plan.ts';
import type { InstanceView } from '../../../../lib/domain/snapshot.ts';
import type { DecisionContext, Host } from '../../../../lib/policy/contracts.ts';
import { attempt } from '../../../support/builders.ts';
import { config, group, instance, NOW, pool, resources, stage, world } from '../../../support/decision-world.ts';
import { host, nameOf, tasksOf } from '../../../support/tasks-to-place.ts';

const where = (placements: readonly Placement[]): string[] =>
  placements.map(({ task, on }) => `${task.job}/${task.index} on ${nameOf(on)}`);

describe('binpack', () => {
  const [full, half, empty] = [
    host({ id: 'a', free: 1, gib: 9 }),
    host({ id: 'b', free: 2, gib: 5 }),
    host({ id: 'c', free: 4, gib: 3 }),
  ];

  it('takes the instance with the least free CPU, or memory, on which the task fits', () => {
    const task = tasksOf({ id: 't', runtimeS: 60 });
    expect(where(binpack('cpu')(task, [empty, half, full]))).toEqual(['t/0 on a']);
    expect(where(binpack('memory')(task, [empty, half, full]))).toEqual(['t/0 on c']);
    const wide = tasksOf({ id: 't', runtimeS: 60, need: resources(3, 1) });
    expect(where(binpack('cpu')(wide, [empty, half, full]))).toEqual(['t/0 on c']);
  });

  it('places in the order of arrival, fills nothing beyond its capacity, and places none without room', () => {
    const tasks = [...tasksOf({ id: 'j-2', count: 3, runtimeS: 1 }), ...tasksOf({ id: 'j-1', runtimeS: 1 })];
    expect(where(binpack('cpu')(tasks, [half]))).toEqual(['j-1/0 on b', 'j-2/0 on b']);
    expect(binpack('cpu')(tasks, [])).toEqual([]);
    expect(binpack('cpu')([], [half])).toEqual([]);
  });

  it('places gangs whole or not at all, and gives back what a gang could not use', () => {
    const gang = tasksOf({ id: 'g', count: 3, runtimeS: 1, gang: 'g' });
    const other = tasksOf({ id: 'h', runtimeS: 1 });
    expect(where(binpack('cpu')([...gang, ...other], [half]))).toEqual(['h/0 on b']);
    expect(where(binpack('cpu')([...gang, ...other], [empty])).length).toBe(3);
  });

  it('asks constraints', () => {
    const task = tasksOf({ id: 't', runtimeS: 60, allowed: (h) => h.on === half.on });
    expect(where(binpack('cpu')(task, [empty, half, full]))).toEqual(['t/0 on b']);
  });
});

const anyContext: DecisionContext = { ...world({ pools: [] }), config: config(), offers: new Map() };

describe('dot product', () => {
  it('takes the instance whose free resources are the most like the need', () => {
    // Capacity 4 vCPUs and 16 GiB each. Free: 4 and 4, or 2 and 16; the disk of both is free.
    const of = (id: string, cpus: number, gib: number): Host => {
      const whole = host({ id, vcpus: 4, gib: 16 });
      return { ...whole, free: { ...whole.free, ...resources(cpus, gib), disk: whole.free.disk } };
    };
    const hosts = [of('cpu', 4, 4), of('memory', 2, 16)];
    // 2 vCPUs and 1 GiB: 0.5 x 1 + 0.06 x 0.25 = 0.52 against 0.5 x 0.5 + 0.06 x 1 = 0.31.
    const busy = tasksOf({ id: 'busy', runtimeS: 1, need: resources(2, 1) });
    expect(where(dotProduct(busy, hosts, anyContext))).toEqual(['busy/0 on cpu']);
    // 1 vCPU and 4 GiB: 0.25 x 1 + 0.25 x 0.25 = 0.31 against 0.25 x 0.5 + 0.25 x 1 = 0.375.
    const large = tasksOf({ id: 'large', runtimeS: 1, need: resources(1, 4) });
    expect(where(dotProduct(large, hosts, anyContext))).toEqual(['large/0 on memory']);
  });
});

describe('fresh instances', () => {
  const machine = pool({ vcpus: 4, gib: 64, zone: 'a' });
  const asHost = (v: InstanceView): Host => ({
    on: v.instance.id,
    pool: v.pool,
    capacity: v.pool.type.capacity,
    free: v.free,
    remainingS: seconds(0),
  });
  const context = (submittedMs: number, instances: readonly InstanceView[]): DecisionContext => {
    const waiting = group({ id: 't', count: 2, submittedMs: epochMs(submittedMs) });
    return { ...world({ pools: [], groups: [waiting], instances }), config: config(), offers: new Map() };
  };
  const now = raw(NOW);
  const tasks = tasksOf({ id: 't', count: 2, runtimeS: 60 });

  it('takes an instance that was requested when the task waited', () => {
    const views = [instance('i-1', machine, { state: 'starting', requestedMs: epochMs(now) })];
    expect(where(freshInstances(tasks, views.map(asHost), context(now - 1000, views)))).toEqual([
      't/0 on i-1',
      't/1 on i-1',
    ]);
    expect(freshInstances(tasks, views.map(asHost), context(now + 1, views))).toEqual([]);
  });

  it('takes none that runs something', () => {
    const view = instance('i-1', machine);
    const running = { attempt: attempt({ instance: instanceId('i-1') }), stage: stage() };
    const busy = { ...view, attempts: [running as InstanceView['attempts'][number]] };
    expect(freshInstances(tasks, [asHost(busy)], context(now - 1000, [busy]))).toEqual([]);
  });

  it('packs the largest tasks of the most constrained resource first, on the largest instance', () => {
    const large = pool({ type: 'm5.4xlarge', vcpus: 8, gib: 64, zone: 'a' });
    const views = [instance('i-1', machine), instance('i-2', large)];
    const wide = tasksOf({ id: 'w', runtimeS: 60, need: resources(7, 1) });
    expect(where(freshInstances([...tasks, ...wide], views.map(asHost), context(now, views)))).toEqual([
      'w/0 on i-2',
      't/0 on i-2',
      't/1 on i-1',
    ]);
  });
});
