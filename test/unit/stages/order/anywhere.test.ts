import { describe, expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import type { InstanceView, PendingGroup } from '../../../../lib/domain/snapshot.ts';
import type { OrderInput, PlaceTasks } from '../../../../lib/policy/contracts.ts';
import { anywhere } from '../../../../lib/stages/order/anywhere.ts';
import { binpack } from '../../../../lib/stages/place/binpack.ts';
import { group, instance, pool } from '../../../support/decision-world.ts';
import { orderInput } from '../../../support/order-input.ts';
import { nameOf } from '../../../support/tasks-to-place.ts';

const here = pool({ vcpus: 2, gib: 8 });
const there = pool({ vcpus: 4, gib: 16, type: 'm5.xlarge', option: 'on-demand' });

const input = (groups: readonly PendingGroup[], instances: readonly InstanceView[], place: PlaceTasks): OrderInput =>
  orderInput({ groups, instances, place, planned: here });

describe('anywhere', () => {
  it('packs all starts at once, whatever pool the plan had in mind', () => {
    let calls = 0;
    const place: PlaceTasks = (tasks, hosts) => {
      calls++;
      return binpack('cpu')(tasks, hosts);
    };
    const groups = [group({ id: 'a', count: 3 }), group({ id: 'b', count: 2 })];
    const started = anywhere(input(groups, [instance('i-1', there)], place));
    expect(calls).toBe(1);
    expect(started.placements.map((p) => `${p.group}/${p.task.index} ${nameOf(p.on)}`)).toEqual([
      'a/0 i-1',
      'a/1 i-1',
      'a/2 i-1',
      'b/0 i-1',
    ]);
    expect(started.leftovers.map((l) => [l.group.id, l.count])).toEqual([['b', 1]]);
  });

  it('keeps to constraints, and leaves over what has no room', () => {
    const zoned = group({ id: 'a', stage: { constraints: { purchaseOptions: ['spot'] } } });
    const started = anywhere(input([zoned], [instance('i-1', there)], binpack('cpu')));
    expect(started.placements).toEqual([]);
    expect(started.leftovers.map((l) => l.count)).toEqual([1]);
    expect(anywhere(input([], [], binpack('cpu'))).leftovers).toEqual([]);
  });

  it('hands each task its running time to come', () => {
    const seen: number[] = [];
    const place: PlaceTasks = (tasks) => {
      seen.push(...tasks.map((t) => t.runtimeS as unknown as number));
      return [];
    };
    anywhere(input([group({ id: 'a', keptS: seconds(30) })], [instance('i-1', there)], place));
    expect(seen).toEqual([60]);
    expect(instanceId('i-1')).toBe('i-1');
  });
});
