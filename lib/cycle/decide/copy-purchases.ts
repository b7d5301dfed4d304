/** Purchases for copies that name a pool without room, within what all other purchases leave of the limits. */
import { gte } from '../../kernel/units.ts';
import type { Bid, Pool } from '../../domain/pool.ts';
import type { Purchase } from '../../domain/plan.ts';
import { fits, minusResources, type Resources } from '../../domain/resources.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Lot } from '../money/lots.ts';
import type { Bought, Purse } from '../money/purse.ts';
import type { Neighbours } from '../neighbours/neighbours.ts';
import type { Copies, CopiesSoFar, WantedCopy } from './copies.ts';
import { Supply } from './supply.ts';

/** One instance, being filled. */
interface Buying {
  readonly pool: Pool;
  readonly bid: Bid;
  /** True: `placement` rules say who may be beside it. */
  readonly isAlone: boolean;
  readonly copies: WantedCopy[];
  free: Resources;
}

/**
 * Copies share an instance where they fit and no rule concerns them, one of a task at most. `purchases`: those that are
 * made for starts; the others follow them. O(copies x instances bought).
 */
export function buyForCopies(
  { placed, open, dropped: before }: CopiesSoFar,
  { purchases, lots }: Bought,
  {
    snapshot,
    purse,
    neighbours,
  }: { readonly snapshot: Snapshot; readonly purse: Purse; readonly neighbours: Neighbours | null },
): Bought & { readonly copies: Copies } {
  if (open.length === 0) return { purchases, lots, copies: { placed, bought: [], dropped: before } };
  const pools = new Map(snapshot.pools.map((view) => [view.pool.id, view]));
  const buying: Buying[] = [];
  const dropped = [...before];
  const supply = new Supply(snapshot, purchases);
  for (const wanted of open) {
    const { to } = wanted.copy;
    const view = to?.pool === undefined ? undefined : pools.get(to.pool);
    if (view === undefined || to?.pool === undefined) continue;
    const { pool } = view;
    const bid = purse.bidFor([wanted.running.attempt.job], { pool, bid: to.bid });
    const isAlone = neighbours !== null && neighbours.of(wanted.running.attempt) !== null;
    const shared = isAlone
      ? undefined
      : buying.find((b) => b.pool === pool && b.bid === bid && !b.isAlone && mayJoin(b, wanted));
    const why =
      (shared === undefined ? supply.notSold(view, bid) : null) ??
      purse.boughtForCopy(wanted, { pool, bid, isFirst: shared === undefined });
    if (why !== null) {
      dropped.push({ ...wanted, why });
      continue;
    }
    const on = shared ?? { pool, bid, isAlone, copies: [], free: pool.type.capacity };
    on.copies.push(wanted);
    on.free = minusResources(on.free, wanted.group.need);
    if (shared !== undefined) continue;
    buying.push(on);
    supply.take(pool);
  }
  return {
    purchases: [...purchases, ...buying.map(purchaseOf)],
    lots: [...lots, ...buying.map((b): readonly Lot[] => [lotOf(b, purse)])],
    copies: { placed, bought: buying.flatMap((b) => b.copies), dropped },
  };
}

/** The first is the longest: the limits on money reckon with it. */
const mayJoin = ({ free, copies }: Buying, { group, runtimeS }: WantedCopy): boolean =>
  fits(group.need, free) && copies.every((c) => gte(c.runtimeS, runtimeS));

const purchaseOf = ({ pool, bid, copies }: Buying): Purchase => ({
  pool: pool.id,
  bid,
  count: 1,
  reason: copies.length === 1 ? `for a copy: ${copies[0]?.copy.reason}` : `for ${copies.length} copies`,
});

function lotOf({ pool, bid, copies }: Buying, purse: Purse): Lot {
  const taken = copies.map((c) => ({ leftover: c, tasks: 1 }));
  return purse.lotPaid(taken, { pool, bid });
}
