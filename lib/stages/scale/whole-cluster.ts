/**
 * Machines of the user's own that cost nothing, all at once and for as long as there is work, so that placement has the
 * whole cluster to choose from: an idle machine takes a task before one that is shared (Mary, Hugo and Hugo*, section
 * 4.1.3). What these do not hold is bought by another policy.
 */
import { fits } from '../../domain/resources.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Purchase } from '../../domain/plan.ts';
import { usdPerHourOf, vcpusOf, type Pool, type PoolView } from '../../domain/pool.ts';
import { instanceParts, type PendingGroup } from '../../domain/snapshot.ts';
import { onDemandBid } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import type { Acquire } from './acquire.ts';
import type { Return } from './release.ts';

/** Idle machines that are taken ahead of need: a larger cluster is taken by and by. */
const MOST_IDLE = 1000;

const isFree = ({ pool, quote }: PoolView): boolean =>
  pool.isOwn === true && quote !== null && usdPerHourOf(pool, quote) === 0;

const mayUse =
  (pool: Pool) =>
  ({ need, stage }: PendingGroup): boolean =>
    fits(need, pool.type.capacity) && brokenConstraint(stage.constraints, pool) === null;

/** O(pools x groups), and what the other policy costs. */
export const onWholeCluster =
  (others: Acquire): Acquire =>
  (input) => {
    const { pools } = input.snapshot;
    const groups = input.leftovers.map(({ group }) => group);
    const usable = pools.filter((view) => view.open && isFree(view) && groups.some(mayUse(view.pool)));
    const ids = new Set(usable.map(({ pool }) => pool.id));
    const bought = others(input).filter(({ pool }) => !ids.has(pool));
    const vcpusIn = new Map(pools.map(({ pool }) => [pool.id, vcpusOf(pool)]));
    let vcpus = vcpusLeft(input.snapshot) - bought.reduce((sum, p) => sum + p.count * (vcpusIn.get(p.pool) ?? 0), 0);
    const tasks = groups.reduce((sum, { count }) => sum + count, 0);
    let wanted = tasks + Math.max(0, MOST_IDLE - instanceParts(input.snapshot).idle.length);
    const machines = usable.flatMap(({ pool, reservedLeft = 0 }): Purchase[] => {
      const count = Math.min(reservedLeft, wanted, Math.floor((vcpus + 1e-9) / vcpusOf(pool)));
      if (count <= 0) return [];
      vcpus -= count * vcpusOf(pool);
      wanted -= count;
      return [{ pool: pool.id, bid: onDemandBid(pool), count, reason: 'machines of the cluster, which cost nothing' }];
    });
    return [...bought, ...machines];
  };

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
