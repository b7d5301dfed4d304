/** What a service may buy on spot: pools and bids (Tributary, section 2.2.3). */
import { raw, usdPerHour, type UsdPerHour } from '../../kernel/units.ts';
import { onDemandUsdOf, type Bid, type Pool } from '../../domain/pool.ts';
import { expectedCostUsd } from '../../policy/footprint/expected-cost.ts';
import type { FootprintContext } from '../../policy/services/contracts.ts';
import { unitsOf } from './units.ts';

/** Bids above the price, US dollars per hour (section 2.2.3: 0.0001 to 0.2). */
const BIDS_ABOVE = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2];

export interface Candidate {
  readonly pool: Pool;
  readonly bid: Bid;
  /** US dollars per hour of an instance. */
  readonly priceUsd: number;
  /** Of an instance, until the end of its window. */
  readonly costUsd: number;
  readonly pLost: number;
}

/** Bids over the price, up to the on-demand price. */
export function bidsOver(pool: Pool, priceUsd: number): readonly UsdPerHour[] {
  const most = onDemandUsdOf(pool);
  const bids = new Set(BIDS_ABOVE.map((above) => Math.min(most, priceUsd + above)));
  return [...bids].filter((usd) => usd > priceUsd).map(usdPerHour);
}

/**
 * Spot pools that sell below the on-demand price, at each bid; no bid is above that price. `pLost`: probability that
 * the market takes an instance within its window.
 */
export function candidatesOf(
  { pools, config }: Pick<FootprintContext, 'pools' | 'config'>,
  pLost: (pool: Pool, bid: Bid) => number,
): readonly Candidate[] {
  return pools.flatMap(({ pool, quote, open }) => {
    if (pool.option !== 'spot' || !open || quote === null || unitsOf(pool) < 1) return [];
    const priceUsd = raw(quote);
    return bidsOver(pool, priceUsd).map((bid): Candidate => {
      const p = pLost(pool, bid);
      const costUsd = expectedCostUsd({ usdPerHour: priceUsd, leftH: 1, pLost: p }, config);
      return { pool, bid, priceUsd, costUsd, pLost: p };
    });
  });
}
