/** Room for a part of a gang, kept until the rest of it is bought. */
import { instanceId, type GroupId } from '../../kernel/ids.ts';
import { ZERO_S } from '../../kernel/units.ts';
import type { Placement } from '../../domain/plan.ts';
import { vcpusOf } from '../../domain/pool.ts';
import { fits } from '../../domain/resources.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { Host, Leftover, OrderInput, Started, TaskToPlace } from '../../policy/contracts.ts';
import { afterPlacing } from '../../policy/hosts.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';

type Context = Omit<OrderInput, 'allotment' | 'hosts'>;

/** Gangs looked at in one decision: of many that wait few find a part of their room. */
const MOST_GANGS = 50;

/**
 * Gangs of the leftovers of which some tasks have room on the hosts, and the others would have it on as many new
 * instances as may be bought: that room is reserved, and only the rest is left to be bought. Else each would take room
 * for all of it beside the instances that wait for it, and under a vCPU limit it would never have that. O(1) without
 * such gangs; for each of the first MOST_GANGS of them O(hosts) and, where one task has room, two packings.
 */
export function partsOfGangs(
  context: Context,
  of: {
    readonly leftovers: readonly Leftover[];
    /** Tasks of a group that are started, with the hosts that they may have; null: none. */
    readonly tasksOf: (group: PendingGroup) => readonly TaskToPlace[] | null;
    /** Hosts after all other placements, computed only if there is such a gang. */
    readonly hosts: () => readonly Host[];
  },
): Pick<Started, 'reserved' | 'leftovers'> {
  const { leftovers, tasksOf } = of;
  const waiting = leftovers.filter((l) => l.group.stage.gang && l.count === l.group.count).slice(0, MOST_GANGS);
  if (waiting.length === 0) return { reserved: [], leftovers };
  let hosts = of.hosts();
  let vcpus = vcpusLeft(context.snapshot);
  const reserved: Placement[] = [];
  const kept = new Map<GroupId, number>();
  for (const { group, option, count } of waiting) {
    if (!hosts.some((h) => fits(group.need, h.free))) continue;
    const tasks = tasksOf(group) ?? [];
    if (tasks.length < count) continue;
    const { there, takes } = partOn(hosts, { pool: option.offer.pool, vcpus, tasks, context });
    if (there.length === 0) continue;
    hosts = afterPlacing(hosts, tasks, there);
    vcpus -= takes;
    reserved.push(...there);
    kept.set(group.id, there.length);
  }
  if (kept.size === 0) return { reserved, leftovers };
  return { reserved, leftovers: leftovers.map((l) => ({ ...l, count: l.count - (kept.get(l.group.id) ?? 0) })) };
}

const NO_PART = { there: [], takes: 0 } as const;

/**
 * Places on the hosts for a part of a gang, and the vCPUs that new instances for the rest would take, those of hosts
 * among them that nothing is on: these are given back. No places: there is no part, or no room for the rest.
 */
function partOn(
  hosts: readonly Host[],
  of: {
    readonly pool: string;
    readonly vcpus: number;
    readonly tasks: readonly TaskToPlace[];
    readonly context: Context;
  },
): { readonly there: readonly Placement[]; readonly takes: number } {
  const { stages, ...context } = of.context;
  const single = of.tasks.map((t) => ({ ...t, gang: null }));
  const there = stages.place(single, hosts, context);
  if (there.length === 0 || there.length === single.length) return NO_PART;
  const placed = new Set(there.map((p) => p.task));
  const rest = single.filter((t) => !placed.has(t.task));
  const used = new Set(there.map((p) => p.on));
  const idle = hosts.filter((h) => fits(h.capacity, h.free) && !used.has(h.on));
  const vcpus = idle.reduce((sum, { pool }) => sum + vcpusOf(pool), of.vcpus);
  const fresh = newHosts(of.context, { pool: of.pool, vcpus, atMost: rest.length });
  const onFresh = fresh.length === 0 ? [] : stages.place(rest, fresh, context);
  if (onFresh.length < rest.length) return NO_PART;
  const bought = new Set(onFresh.map((p) => p.on));
  return { there, takes: fresh.reduce((sum, h) => sum + (bought.has(h.on) ? vcpusOf(h.pool) : 0), 0) };
}

/** Instances that may be bought in a pool, as hosts. */
function newHosts(
  { snapshot }: Context,
  of: { readonly pool: string; readonly vcpus: number; readonly atMost: number },
): readonly Host[] {
  const view = snapshot.pools.find((v) => v.pool.id === of.pool);
  if (view === undefined || !view.open || view.quote === null) return [];
  const { pool, reservedLeft = Infinity } = view;
  const count = Math.min(of.atMost, Math.floor((of.vcpus + 1e-9) / vcpusOf(pool)), reservedLeft);
  const { capacity } = pool.type;
  return Array.from({ length: Math.max(0, count) }, (_, i) => ({
    on: instanceId(`new-${i}`),
    pool,
    capacity,
    free: capacity,
    remainingS: ZERO_S,
  }));
}
