import { invariant } from '../../kernel/errors.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import { minusResources, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import type { InstanceView, Snapshot } from '../../domain/snapshot.ts';
import type { Arrivals } from './moves.ts';

/**
 * Snapshot left to plan for: without the tasks that start on the target of their move, and without their room. The same
 * snapshot if there are none; else O(instances).
 */
export function withoutArrivals(snapshot: Snapshot, { placements, arrived }: Arrivals): Snapshot {
  if (arrived.size === 0) return snapshot;
  const needs = new Map(snapshot.groups.map((g) => [g.id, g.need]));
  const taken = new Map<InstanceId, Resources>();
  for (const { group, on } of placements) {
    const need = invariant(needs.get(group), `a task of group ${group} is placed, which does not wait`);
    taken.set(on, plusResources(taken.get(on) ?? NO_RESOURCES, need));
  }
  const instances = new Map<InstanceId, InstanceView>();
  for (const view of snapshot.instances.values()) {
    const need = taken.get(view.instance.id);
    instances.set(view.instance.id, need === undefined ? view : { ...view, free: minusResources(view.free, need) });
  }
  return { ...snapshot, instances, groups: snapshot.groups.filter((g) => !arrived.has(g.id)) };
}
