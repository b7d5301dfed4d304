import { lte } from '../../kernel/units.ts';
import { vector } from '../../domain/resources.ts';
import type { DecisionContext, Host, PlacePolicy, TaskToPlace } from '../../policy/contracts.ts';
import { mostConstrained } from '../../policy/most-constrained.ts';
import { placeOneByOne } from './one-by-one.ts';

/**
 * SuperCloud-Spot's greedy packing without any on-line packing (Stratus, section 3.3.3): the largest tasks in the most
 * constrained resource first, each on the largest instance with room. A task only goes on an instance that runs nothing
 * yet and was requested when the task waited, so that it was bought for it. (`boughtFor` of an instance cannot tell:
 * it names eight jobs at most.) Moving work goes on any instance that runs nothing.
 */
export const freshInstances: PlacePolicy = (tasks, hosts, context) => {
  const fresh = hosts.filter(({ on }) => context.snapshot.instances.get(on)?.attempts.length === 0);
  const kind = mostConstrained(
    tasks.map(({ need }) => ({ need, count: 1 })),
    fresh.map((h) => h.capacity),
  );
  const needOf = ({ need }: TaskToPlace): number => vector(need)[kind] ?? 0;
  return placeOneByOne(boughtForThem(tasks, context), fresh, {
    compare: (a, b) => needOf(b) - needOf(a),
    score: (_, { capacity }) => capacity[kind] ?? 0,
    reason: 'it was bought for it and runs nothing yet',
  });
};

/** Tasks that are allowed only instances that were requested since their submission. */
function boughtForThem(tasks: readonly TaskToPlace[], { snapshot }: DecisionContext): readonly TaskToPlace[] {
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  return tasks.map((task) => {
    const group = groups.get(task.group);
    if (group === undefined) return task;
    const allowed = (host: Host): boolean => {
      const instance = snapshot.instances.get(host.on)?.instance;
      return instance !== undefined && lte(group.submittedMs, instance.requestedMs) && task.allowed(host);
    };
    return { ...task, allowed };
  });
}
