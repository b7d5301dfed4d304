import type { InstanceId } from '../../kernel/ids.ts';
import { secondsBetween } from '../../kernel/units.ts';
import { chargedS } from '../../market/billing.ts';
import { instanceParts, type InstanceView } from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { LEAVING } from '../../policy/leaving.ts';
import { leftOfEach } from '../../policy/left-of.ts';
import { pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { ageS, allTo, byAttempt, cheaperPool, holdsAll, movables, type Movable } from './whole-instance.ts';

/**
 * HotSpot's migration (Stratus, sections 3.1.2 and 3.3.3): the work of an instance goes to the cheapest one that holds
 * it, once that is cheaper and the saving over the remaining running time exceeds what the move costs. With R the price
 * here, r the price there, t the remaining time, s the start-up and m the time without progress:
 *   stay:  R t            move:  R (s + m) + r (t + m)
 * Times are those that are charged. An empty instance that holds the work has its start-up behind it, in part or
 * whole, so that a move that was begun is mostly finished. Each serves one move.
 * O(instances x (cheaper pools + empty instances)).
 */
export function movesToCheaper(context: DecisionContext): readonly Move[] {
  const { memory } = context;
  const byPrice = pricedPools(context).toSorted((a, b) => a.usdPerHour - b.usdPerHour);
  const empty = emptyInstances(context, byPrice);
  const going = new Set<InstanceId>();
  const moves = movables(context, leftOfEach(context))
    .toSorted((a, b) => (a.view.instance.id < b.view.instance.id ? -1 : 1))
    .flatMap((of): readonly Move[] => {
      const target = bestTarget(of, { byPrice, empty, context });
      if (target === null) return [];
      if (target.on !== null) empty.delete(target.on);
      going.add(of.view.instance.id);
      return allTo(of.view, { pool: target.of.pool.id, bid: target.of.bid }, REASON);
    });
  memory.of(LEAVING).leavesNow(going);
  return moves.sort(byAttempt);
}

const REASON = 'a cheaper instance holds its work, and saves more than the move costs';

/** An instance to move to: one that is there and empty, or one to be bought (`on` null). */
interface Target {
  readonly on: InstanceId | null;
  readonly of: PricedPool;
  /** Time until it is up. */
  readonly startS: number;
  /** Time since its bill began. */
  readonly ageS: number;
}

/** Instances that run nothing and take tasks, of pools that sell now, with the name of each. */
function emptyInstances(
  { snapshot, config }: DecisionContext,
  priced: readonly PricedPool[],
): Map<InstanceId, Target & { readonly view: InstanceView }> {
  const pools = new Map(priced.map((p) => [p.pool.id, p]));
  const views = [...instanceParts(snapshot).idle].sort((a, b) => (a.instance.id < b.instance.id ? -1 : 1));
  return new Map(
    views.flatMap((view) => {
      const { id, state, rebalance, readyMs } = view.instance;
      const of = pools.get(view.pool.id);
      if (of === undefined || rebalance || !['requested', 'starting', 'ready'].includes(state)) return [];
      const untilS = readyMs === null ? config.startDelayMeanS : secondsBetween(snapshot.nowMs, readyMs);
      const startS = state === 'ready' ? 0 : Math.max(0, untilS);
      return [[id, { on: id, of, startS, ageS: ageS(view, snapshot), view }] as const];
    }),
  );
}

/** The target that saves most, if it saves anything; null: none. */
function bestTarget(
  of: Movable,
  by: {
    readonly byPrice: readonly PricedPool[];
    readonly empty: ReadonlyMap<InstanceId, Target>;
    readonly context: DecisionContext;
  },
): Target | null {
  const { context } = by;
  const cheaper = cheaperPool(of, by.byPrice);
  const bought = cheaper === null ? [] : [{ on: null, of: cheaper, startS: context.config.startDelayMeanS, ageS: 0 }];
  const there = [...by.empty.values()].filter((t) => t.of.usdPerHour < of.usdPerHour && holdsAll(of, t.of.pool));
  let best: Target | null = null;
  let mostUsd = 0;
  for (const target of [...there, ...bought]) {
    const usd = savesUsd(of, target, context);
    if (usd > mostUsd) [best, mostUsd] = [target, usd];
  }
  return best;
}

function savesUsd({ view, usdPerHour, leftS, migrationS }: Movable, to: Target, context: DecisionContext): number {
  const { snapshot, config } = context;
  const more = (age: number, s: number): number => chargedS(age + s, config) - (age > 0 ? chargedS(age, config) : 0);
  const age = ageS(view, snapshot);
  const stayUsd = usdPerHour * more(age, leftS);
  const leaveUsd = usdPerHour * more(age, to.startS + migrationS);
  return (stayUsd - leaveUsd - to.of.usdPerHour * more(to.ageS, leftS + migrationS)) / 3600;
}
