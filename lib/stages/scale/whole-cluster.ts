/**
 * Machines of the user's own that cost nothing, all at once and for as long as there is work, so that placement has the
 * whole cluster to choose from: an idle machine takes a task before one that is shared (Mary, Hugo and Hugo*, section
 * 4.1.3). What these do not hold is bought by another policy.
 */
import type { Purchase } from '../../domain/plan.ts';
import { usdPerHourOf, vcpusOf, type Pool, type PoolView } from '../../domain/pool.ts';
import { instanceParts } from '../../domain/snapshot.ts';
import type { PoolId } from '../../kernel/ids.ts';
import type { AcquireInput } from '../../policy/contracts.ts';
import { onDemandBid } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import type { Acquire } from './acquire.ts';
import { mayUse } from './eligible.ts';
import type { Return } from './release.ts';

/** Idle machines that are taken ahead of need: a larger cluster is taken by and by. */
const MOST_IDLE = 1000;

const REASON = 'machines of the cluster, which cost nothing';

const isFree = ({ pool, quote }: PoolView): boolean =>
  pool.isOwn === true && quote !== null && usdPerHourOf(pool, quote) === 0;

/**
 * The other policy's purchases, and the machines of the cluster that these leave. A pool of which it wants more than
 * there is stays so, and the policy is asked again for the rest. O(pools x groups), and the policy's own time.
 */
export const onWholeCluster =
  (policy: Acquire): Acquire =>
  (input) => {
    const bought = policy(input);
    if (bought.length === 0) return bought;
    const more = machinesBeside(bought, input);
    const known = new Set(bought.map((p) => p.pool));
    const others = [...more].filter(([{ id }]) => !known.has(id));
    const moreOf = new Map([...more].map(([{ id }, count]) => [id, count]));
    return [
      ...bought.map((p) => ({ ...p, count: p.count + (moreOf.get(p.pool) ?? 0) })),
      ...others.map(([pool, count]) => ({ pool: pool.id, bid: onDemandBid(pool), count, reason: REASON })),
    ];
  };

/** Machines that the purchases leave, of pools that some task may use, within the limit on vCPUs. */
function machinesBeside(bought: readonly Purchase[], { snapshot, leftovers }: AcquireInput): ReadonlyMap<Pool, number> {
  const { pools } = snapshot;
  const counts = new Map<PoolId, number>();
  for (const { pool, count } of bought) counts.set(pool, (counts.get(pool) ?? 0) + count);
  const countOf = (pool: Pool): number => counts.get(pool.id) ?? 0;
  let vcpus = vcpusLeft(snapshot) - pools.reduce((sum, { pool }) => sum + countOf(pool) * vcpusOf(pool), 0);
  let most = MOST_IDLE - instanceParts(snapshot).idle.length;
  const found = new Map<Pool, number>();
  for (const view of pools) {
    const { pool, reservedLeft = 0 } = view;
    if (!view.open || !isFree(view) || !leftovers.some(({ group }) => mayUse(pool)(group))) continue;
    const count = Math.min(reservedLeft - countOf(pool), most, Math.floor((vcpus + 1e-9) / vcpusOf(pool)));
    if (count <= 0) continue;
    vcpus -= count * vcpusOf(pool);
    most -= count;
    found.set(pool, count);
  }
  return found;
}

/** Keeps such machines while work waits or runs. */
export const keptWithWork =
  (returned: Return): Return =>
  (input) => {
    const { running, groups, pools, instances } = input.snapshot;
    if (running.length === 0 && groups.length === 0) return returned(input);
    const free = new Set(pools.filter(isFree).map(({ pool }) => pool.id));
    return returned(input).filter(({ instance }) => {
      const view = instances.get(instance);
      return view === undefined || !free.has(view.pool.id);
    });
  };
