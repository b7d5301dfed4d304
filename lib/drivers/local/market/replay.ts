import type { PoolId } from '../../../kernel/ids.ts';
import type { Pool } from '../../../domain/pool.ts';
import { gt, least, usdPerHour, type EpochMs, type UsdPerHour } from '../../../kernel/units.ts';
import { priceAt, stepsKnown } from '../../../market/price-steps.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Market } from '../../../ports/market.ts';

/**
 * The public side of a trace: pools and prices up to the asked instant. Availability is never shown: as on EC2,
 * capacity is known only by trying.
 * `now` guards against questions about the future by mistake: with it, an instant later than now is answered as now. A
 * spot pool quotes nothing before its first price and after the trace's end; an on-demand pool always quotes its list
 * price, a reserved one its price of the reservation.
 */
export function replayMarket(trace: MarketTrace, now?: () => EpochMs): Market {
  const constant = new Map<PoolId, UsdPerHour>(
    trace.pools.filter((p) => p.option !== 'spot').map((p) => [p.id, constantPrice(trace, p)]),
  );
  const known = (t: EpochMs): EpochMs => (now === undefined ? t : least(t, now()));
  return {
    pools: () => trace.pools,
    quote: (pool, at) => {
      const list = constant.get(pool);
      if (list !== undefined) return list;
      const t = known(at);
      const price = gt(t, trace.endMs) ? null : priceAt(trace.prices(pool), t);
      return price === null ? null : usdPerHour(price);
    },
    completeUntil: () => (trace.isUnbroken === true && now !== undefined ? now() : null),
    history: (pool, from, to) => stepsKnown(trace.prices(pool), from, to, now?.()),
  };
}

function constantPrice(trace: MarketTrace, { id, option, onDemandUsdPerHour }: Pool): UsdPerHour {
  const [price] = option === 'reserved' ? trace.prices(id).usdPerHour : [];
  return price === undefined ? onDemandUsdPerHour : usdPerHour(price);
}
