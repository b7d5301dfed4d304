import type { PlaceTasks, OrderInput } from '../../lib/policy/contracts.ts';
import { certain } from '../../lib/domain/distribution.ts';
import { unsolved } from '../../lib/domain/plan.ts';
import type { Pool } from '../../lib/domain/pool.ts';
import type { InstanceView, PendingGroup } from '../../lib/domain/snapshot.ts';
import { seconds } from '../../lib/kernel/units.ts';
import { eachItsPlace } from '../../lib/stages/queue/queue.ts';
import { config, NOW, view, world } from './decision-world.ts';
import { offer } from './leftovers.ts';

/** A plan that starts all groups now, in one pool, and the instances that there are. Each task takes 90 s. */
export function orderInput(of: {
  readonly groups: readonly PendingGroup[];
  readonly instances: readonly InstanceView[];
  readonly planned: Pool;
  readonly place: PlaceTasks;
}): OrderInput {
  const { groups, instances, place } = of;
  const planned = view(of.planned, 0.05);
  const starts = groups.map((g) => {
    const chosen = offer({ group: g, runtimeS: 90, pools: [] }, planned);
    const option = { group: g.id, offer: chosen, slot: 0, startMs: NOW, worthUsd: 1, costUsd: 0.01 };
    return { option, count: g.count, reason: 'planned' };
  });
  return {
    ...world({ pools: [planned], groups, instances, runtime: () => certain(seconds(90)) }),
    config: config(),
    offers: new Map(),
    groups: new Map(groups.map((g) => [g.id, g])),
    leftOf: () => seconds(0),
    allotment: { starts, deferred: [], preemptions: [], moves: [], waits: [], solve: unsolved(0) },
    hosts: instances.map((v) => ({
      on: v.instance.id,
      pool: v.pool,
      capacity: v.pool.type.capacity,
      free: v.free,
      remainingS: seconds(0),
    })),
    stages: { place, queue: eachItsPlace },
  };
}
