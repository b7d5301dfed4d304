/**
 * Starts of replicas on room that is there. A plan names one pool for each start, often the cheapest to buy in, and
 * orders may keep to it. Requests cannot wait for another instance, and the footprint policy has counted every
 * instance that was bought: so a replica takes room wherever it is allowed, on instances that are up first. An instance
 * with nothing on it may cost as much more as a relocation would not undo.
 */
import { raw } from '../../kernel/units.ts';
import type { GroupId, PoolId } from '../../kernel/ids.ts';
import { usdPerHourOf, type PoolView } from '../../domain/pool.ts';
import { countFits, fits } from '../../domain/resources.ts';
import type { StartOption } from '../../domain/plan.ts';
import type { Host, OrderPolicy, Started, TaskToPlace } from '../../policy/contracts.ts';
import { afterPlacing } from '../../policy/hosts.ts';
import { wantedAnywhere } from '../../stages/order/anywhere.ts';
import { LEAST_SAVED } from './relocation.ts';

/** O(replicas that start x hosts) beside two packings. */
export const replicasAnywhere =
  (order: OrderPolicy): OrderPolicy =>
  (input) => {
    const { allotment, groups, hosts, stages, snapshot } = input;
    const isReplica = (group: GroupId): boolean => groups.get(group)?.class === 'service';
    const starts = allotment.starts.filter((s) => isReplica(s.option.group));
    if (starts.length === 0 || hosts.length === 0) return order(input);
    const quotes = new Map(snapshot.pools.map((v) => [v.pool.id, v]));
    const wanted = wantedAnywhere({ ...input, allotment: { ...allotment, starts } });
    let waiting = wanted.flatMap(({ tasks, option }) => tasks.map((task) => worthIts(task, option, quotes)));
    let left = hosts;
    const placements: Started['placements'][number][] = [];
    for (const isNow of [true, false]) {
      const there = left.filter((h) => (snapshot.instances.get(h.on)?.instance.state === 'ready') === isNow);
      const placed = stages.place(waiting, there, input);
      left = afterPlacing(left, waiting, placed);
      const done = new Set(placed.map((p) => p.group));
      waiting = waiting.filter((t) => !done.has(t.group));
      placements.push(...placed);
    }
    if (placements.length === 0) return order(input);
    const done = new Set(placements.map((p) => p.group));
    const rest = { ...allotment, starts: allotment.starts.filter((s) => !done.has(s.option.group)) };
    const others = order({ ...input, allotment: rest, hosts: left });
    return { ...others, placements: [...placements, ...others.placements] };
  };

/** The same task, kept from empty instances that cost clearly more than what the plan would buy. */
function worthIts(task: TaskToPlace, { offer }: StartOption, quotes: ReadonlyMap<PoolId, PoolView>): TaskToPlace {
  const mostUsd = (offer.newShare * raw(offer.priceUsdPerHour)) / (1 - LEAST_SAVED);
  const allowed = (host: Host): boolean => {
    if (!task.allowed(host)) return false;
    if (!fits(host.capacity, host.free)) return true;
    const usd = usdPerHourOf(host.pool, quotes.get(host.pool.id)?.quote);
    return usd / Math.max(1, countFits(task.need, host.capacity)) <= mostUsd;
  };
  return { ...task, allowed };
}
