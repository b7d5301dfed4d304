/** Pools as schedulers see them that bid the on-demand price for spot (Stratus, sections 3.2.3 and 3.3.1). */
import { compareText } from '../kernel/compare.ts';
import { raw, seconds } from '../kernel/units.ts';
import { brokenConstraint } from '../domain/constraints.ts';
import type { StageSpec } from '../domain/job.ts';
import { onDemandUsdOf, usdPerHourOf, vcpusOf, type Bid, type Pool } from '../domain/pool.ts';
import { vector } from '../domain/resources.ts';
import type { Asks } from './asks.ts';
import type { SceneContext } from './contracts.ts';

/** A pool open for purchases, with its bid, and its price and capacity as plain numbers. */
export interface PricedPool {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly usdPerHour: number;
  /** In the order of RESOURCE_KINDS. */
  readonly capacity: readonly number[];
  readonly vcpus: number;
}

/** Price of capacity that is paid already, so that scores by price stay finite. */
export const LEAST_USD_PER_HOUR = 1e-6;

export const onDemandBid = (pool: Pool): Bid => (pool.option === 'spot' ? pool.onDemandUsdPerHour : 'uncapped');

/** Risk that is recorded with purchases at these bids; no policy of this kind reads it. */
export const AT_ON_DEMAND: Asks = {
  bids: (pool, priceUsdPerHour) =>
    pool.option === 'spot' && priceUsdPerHour <= onDemandUsdOf(pool) ? [pool.onDemandUsdPerHour] : [],
  horizon: seconds(3600),
};

/**
 * Pools that sell now at their on-demand price or less, by id: a higher spot price would take the instance at once.
 * O(pools log pools).
 */
export function pricedPools({ snapshot }: Pick<SceneContext, 'snapshot'>): readonly PricedPool[] {
  return snapshot.pools
    .flatMap(({ pool, quote, open }): PricedPool[] => {
      if (!open || quote === null) return [];
      if (pool.option === 'spot' && raw(quote) > onDemandUsdOf(pool)) return [];
      return [
        {
          pool,
          bid: onDemandBid(pool),
          usdPerHour: Math.max(usdPerHourOf(pool, quote), LEAST_USD_PER_HOUR),
          capacity: vector(pool.type.capacity),
          vcpus: vcpusOf(pool),
        },
      ];
    })
    .sort((a, b) => compareText(a.pool.id, b.pool.id));
}

/** Constraints of a stage as one function of the pool; asked once per pool. */
export function allowedPools({ constraints }: Pick<StageSpec, 'constraints'>): (of: PricedPool) => boolean {
  const known = new Map<PricedPool, boolean>();
  return (of) => {
    let allowed = known.get(of);
    if (allowed === undefined) known.set(of, (allowed = brokenConstraint(constraints, of.pool) === null));
    return allowed;
  };
}
