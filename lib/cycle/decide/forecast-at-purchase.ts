import { pInterruptedWithin } from '../../domain/forecast.ts';
import type { ForecastAtPurchase } from '../../domain/instance.ts';
import type { Purchase } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { RECORDED_S } from '../../policy/asks.ts';
import { seconds } from '../../kernel/units.ts';

/** Forecast for an instance at its purchase, kept with it to be compared with its end. Null for on-demand. */
export function forecastAtPurchase(
  { pools }: Pick<Snapshot, 'pools'>,
  market: MarketForecast,
  { pool: id, bid }: Pick<Purchase, 'pool' | 'bid'>,
): ForecastAtPurchase | null {
  const pool = pools.find((p) => p.pool.id === id)?.pool;
  if (pool?.option !== 'spot') return null;
  const capacity = market.capacity?.(pool) ?? null;
  const curve = market.interruption(pool, bid);
  return {
    by: curve.priceBy ?? 'history',
    horizonS: RECORDED_S,
    pInterrupted: kept(curve),
    ...(capacity === null ? {} : { capacity: { by: capacity.by, pInterrupted: kept(capacity) } }),
  };
}

const kept = (curve: Parameters<typeof pInterruptedWithin>[0]): readonly number[] =>
  RECORDED_S.map((s) => Number(pInterruptedWithin(curve, seconds(s)).toPrecision(4)));
