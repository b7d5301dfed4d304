import { describe, expect, it } from '@jest/globals';
import type { Instance } from '../../../../lib/domain/instance.ts';
import { capacityOf, type Capacity } from '../../../../lib/stages/plan/supply.ts';
import { config, instance, pool, view, world } from '../../../support/decision-world.ts';

const small = pool();
const large = pool({ type: 'm5.xlarge', vcpus: 4 });

/** Ten vCPUs, two slots. */
function capacity(others: readonly Partial<Instance>[], reserved = 0): Capacity {
  const leaving = others.map((over, i) => instance(`i-${i + 3}`, large, over));
  const instances = [instance('i-2', small), instance('i-1', small), ...leaving];
  const facts = world({ pools: [view(small, 0.1), view(large, 0.2)], instances, vcpus: 10 });
  return capacityOf({ ...facts, config: config({ lookAheadSlots: 2 }), offers: new Map() }, reserved);
}

describe('the quota of new instances', () => {
  // 10 vCPUs less two instances of 2 that take tasks; the third has 4.
  it.each([
    ['ended, which counts nowhere', { state: 'ended' }, [[6000], [6000]]],
    ['warned, which is gone by the next slot', { state: 'warned' }, [[2000], [6000]]],
    ['being released, which is gone by the next slot', { state: 'releasing' }, [[2000], [6000]]],
    ['up, but not to take tasks', { rebalance: true }, [[2000], [2000]]],
  ] as const)('is less by an instance that is %s', (_, over, left) => {
    const { quota, headroomMilliCpu } = capacity([over]);
    expect(quota.capacity).toEqual(left);
    expect(headroomMilliCpu).toBe(left[0][0]);
  });

  it('is less by what moves need, and never negative', () => {
    expect(capacity([], 1500).quota.capacity).toEqual([[4500], [4500]]);
    expect(capacity([], 6500).quota.capacity).toEqual([[0], [0]]);
  });

  it('has rooms whose instances are in the order of their ids', () => {
    const views = capacity([]).rooms.get(small.id)?.views() ?? [];
    expect(views.map((v) => v.instance.id)).toEqual(['i-1', 'i-2']);
  });
});
