/** Room for a part of a gang, kept until the rest of it is bought. */
import type { GroupId } from '../../kernel/ids.ts';
import type { Placement } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { Host, Leftover, OrderInput, Started, TaskToPlace } from '../../policy/contracts.ts';
import { afterPlacing } from '../../policy/hosts.ts';

/**
 * Gangs of the leftovers of which some tasks have room on the hosts: that room is reserved, and only the rest is left
 * to be bought. Else each would take room for all of it beside the instances that wait for it, and under a vCPU limit
 * it would never have that. O(1) without such gangs; a packing for each.
 */
export function partsOfGangs(
  { stages, ...context }: Omit<OrderInput, 'allotment' | 'hosts'>,
  of: {
    readonly leftovers: readonly Leftover[];
    /** Tasks of a group that are started, with the hosts that they may have; null: none. */
    readonly tasksOf: (group: PendingGroup) => readonly TaskToPlace[] | null;
    /** Hosts after all other placements, computed only if there is such a gang. */
    readonly hosts: () => readonly Host[];
  },
): Pick<Started, 'reserved' | 'leftovers'> {
  const { leftovers, tasksOf } = of;
  const waiting = leftovers.filter((l) => l.group.stage.gang && l.count === l.group.count);
  if (waiting.length === 0) return { reserved: [], leftovers };
  let hosts = of.hosts();
  const reserved: Placement[] = [];
  const kept = new Map<GroupId, number>();
  for (const { group, count } of waiting) {
    const tasks = (tasksOf(group) ?? []).map((t) => ({ ...t, gang: null }));
    const there = tasks.length < count ? [] : stages.place(tasks, hosts, context);
    if (there.length === 0 || there.length === count) continue;
    hosts = afterPlacing(hosts, tasks, there);
    reserved.push(...there);
    kept.set(group.id, there.length);
  }
  if (kept.size === 0) return { reserved, leftovers };
  return { reserved, leftovers: leftovers.map((l) => ({ ...l, count: l.count - (kept.get(l.group.id) ?? 0) })) };
}
