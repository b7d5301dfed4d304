import { raw, secondsBetween, usdPerHour, type EpochMs, type Seconds, type UsdPerHour } from '../../kernel/units.ts';
import type { Pool } from '../../domain/pool.ts';
import { gridCorrelation, meanPriceOver, revertedPrice, type PriceStatistics } from './price-statistics.ts';

/** Inputs to a pool's expected prices and correlations. */
export interface PoolOutlook {
  /** USD per hour now; null when nothing is quoted. */
  readonly priceUsd: number | null;
  readonly statistics: PriceStatistics;
}

/** Expected price at a later time; null without a price or history. On-demand prices stay constant. */
export function expectedPriceOf(pool: Pool, outlook: PoolOutlook | null, now: EpochMs, at: EpochMs): UsdPerHour | null {
  if (pool.option === 'on-demand') return pool.onDemandUsdPerHour;
  if (outlook === null || outlook.priceUsd === null) return null;
  return usdPerHour(revertedPrice(outlook.statistics, outlook.priceUsd, secondsBetween(now, at)));
}

/** Expected mean price from now on; without an end in the long run. Null without a history. */
export function meanPriceOf(pool: Pool, outlook: PoolOutlook | null, over?: Seconds): UsdPerHour | null {
  if (pool.option === 'on-demand') return pool.onDemandUsdPerHour;
  if (outlook === null) return null;
  const { priceUsd, statistics } = outlook;
  const isLong = over === undefined || priceUsd === null;
  return usdPerHour(isLong ? statistics.meanUsd : meanPriceOver(statistics, priceUsd, raw(over)));
}

/** Prices of each past hour that has one, USD per hour, the oldest first. None of on-demand pools: they stay. */
export const hourlyUsdOf = (pool: Pool, outlook: PoolOutlook | null): readonly number[] =>
  pool.option === 'on-demand' ? [] : [...(outlook?.statistics.grid ?? [])].filter((usd) => !Number.isNaN(usd));

/** Correlation of two pools' prices; 0 when unknown or not a market's, 1 with itself. */
export function correlationOf(a: Pool, b: Pool, outlook: (pool: Pool) => PoolOutlook | null): number {
  if (a.option !== 'spot' || b.option !== 'spot') return 0;
  if (a.id === b.id) return 1;
  const [x, y] = a.id < b.id ? [outlook(a), outlook(b)] : [outlook(b), outlook(a)];
  return x === null || y === null ? 0 : gridCorrelation(x.statistics, y.statistics);
}
