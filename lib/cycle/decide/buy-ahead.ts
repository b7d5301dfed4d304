/**
 * Purchases ahead of demand: for work that waits for later. They come after those for work that waits now, and within
 * what these leave of the limits on money and vCPUs; an instance that no named task fills is not bought.
 */
import { EbbError } from '../../kernel/errors.ts';
import { add, secondsBetween, seconds, type EpochMs } from '../../kernel/units.ts';
import type { Purchase } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { LaterDemand } from '../../policy/contracts.ts';
import { lotsOf, type Lot } from '../money/lots.ts';
import type { Bought, Purse } from '../money/purse.ts';
import { Supply } from './supply.ts';
import { expectUseful } from './expect-useful.ts';

/** O(purchases x later demand). Throws `internal` for a purchase that serves no later demand that may use it. */
export function buyAhead(
  ahead: readonly Purchase[],
  { purchases, lots }: Bought,
  {
    snapshot,
    later,
    purse,
  }: { readonly snapshot: Snapshot; readonly later: () => readonly LaterDemand[]; readonly purse: Purse },
): Bought {
  if (ahead.length === 0) return { purchases, lots };
  const pools = new Map(snapshot.pools.map((view) => [view.pool.id, view]));
  const demand = later();
  const left = new Map(demand.map((l) => [l, l.count]));
  const supply = new Supply(snapshot, purchases);
  const bought: { readonly purchase: Purchase; readonly lots: readonly Lot[] }[] = [];
  for (const purchase of ahead) {
    const named = namedBy(purchase, demand);
    expectUseful([purchase], snapshot, named);
    const view = pools.get(purchase.pool);
    if (view === undefined) continue;
    const { pool } = view;
    const open = named.flatMap((l) => {
      const count = left.get(l) ?? 0;
      return count === 0 ? [] : [{ ...l, of: l, count, runtimeS: heldS(l, snapshot.nowMs) }];
    });
    const bid = purse.bidFor(
      open.map((l) => l.group.job),
      { pool, bid: purchase.bid },
    );
    const kept: Lot[] = [];
    for (const { taken } of lotsOf([purchase], open, snapshot).flat()) {
      if (taken.length === 0 || supply.notSold(view, bid) !== null) continue;
      if (purse.boughtAhead(taken, { pool, bid }) !== null) continue;
      kept.push(purse.lotPaid(taken, { pool, bid }));
      supply.take(pool);
      for (const t of taken) {
        const { of } = t.leftover as (typeof open)[number];
        left.set(of, (left.get(of) ?? 0) - t.tasks);
      }
    }
    if (kept.length > 0) bought.push({ purchase: { ...purchase, bid, count: kept.length }, lots: kept });
  }
  return {
    purchases: [...purchases, ...bought.map((b) => b.purchase)],
    lots: [...lots, ...bought.map((b) => b.lots)],
  };
}

function namedBy({ serves = [], pool }: Purchase, later: readonly LaterDemand[]): readonly LaterDemand[] {
  const named = later.filter((l) => serves.includes(l.group.id));
  const unknown = serves.find((id) => !named.some((l) => l.group.id === id));
  if (unknown === undefined) return named;
  throw new EbbError('internal', { what: `the plan buys in ${pool} for what does not wait for later`, got: unknown });
}

/** The instance is held from now until its tasks have run, so that money is kept for the time before them too. */
const heldS = ({ fromMs, runtimeS }: LaterDemand, nowMs: EpochMs) =>
  add(runtimeS, seconds(Math.max(0, secondsBetween(nowMs, fromMs))));
