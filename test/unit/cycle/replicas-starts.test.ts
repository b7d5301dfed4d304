import { describe, expect, it } from '@jest/globals';
import { replicasAnywhere } from '../../../lib/cycle/replicas/starts.ts';
import { milliCpu } from '../../../lib/kernel/units.ts';
import type { InstanceView } from '../../../lib/domain/snapshot.ts';
import type { OrderInput } from '../../../lib/policy/contracts.ts';
import { orderBy } from '../../../lib/stages/order/starts.ts';
import { binpack } from '../../../lib/stages/place/binpack.ts';
import { group, instance, pool } from '../../support/decision-world.ts';
import { orderInput } from '../../support/order-input.ts';
import { nameOf } from '../../support/tasks-to-place.ts';

/** The plan names it for all starts, at 0.05 US dollars per hour for two replicas. */
const planned = pool({ vcpus: 2, gib: 8, zone: 'a', option: 'spot' });
const alike = pool({ vcpus: 2, gib: 8, zone: 'b', option: 'on-demand', onDemand: 0.06 });
const dear = pool({ vcpus: 2, gib: 8, zone: 'c', option: 'on-demand', onDemand: 0.1 });

const replica = group({ id: 'web', class: 'service' });
const job = group({ id: 'job' });
const order = replicasAnywhere(
  orderBy({ urgentFirst: true, keepsOption: true, keepsStages: true, sharesPools: false }),
);
const starts = (instances: readonly InstanceView[], groups = [replica]): readonly string[] => {
  const input: OrderInput = orderInput({ groups, instances, place: binpack('cpu'), planned });
  return order(input).placements.map((p) => `${p.group} ${nameOf(p.on)}`);
};
const starting = (view: InstanceView): InstanceView => ({
  ...view,
  instance: { ...view.instance, state: 'starting' },
});

describe('starts of replicas', () => {
  it('are on an instance of another pool than the plan has in mind, also on one that is coming', () => {
    expect(starts([instance('i-1', alike)])).toEqual(['web i-1']);
    expect(starts([starting(instance('i-1', alike))])).toEqual(['web i-1']);
  });

  it('are on instances that are up before those that are coming', () => {
    expect(starts([starting(instance('i-1', alike)), instance('i-2', alike)])).toEqual(['web i-2']);
  });

  it('are not on an empty instance that costs clearly more', () => {
    expect(starts([instance('i-1', dear)])).toEqual([]);
  });

  it('are beside other work, whatever its instance costs', () => {
    const view = instance('i-1', dear);
    expect(starts([{ ...view, free: { ...view.free, cpu: milliCpu(1000) } }])).toEqual(['web i-1']);
  });

  it('leave jobs to the order of the preset', () => {
    expect(starts([instance('i-1', planned)], [replica, job])).toEqual(['web i-1', 'job i-1']);
    expect(starts([instance('i-1', alike)], [replica, job])).toEqual(['web i-1']);
    expect(starts([], [replica, job])).toEqual([]);
  });
});
