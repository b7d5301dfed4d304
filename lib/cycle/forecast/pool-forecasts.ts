import type { SchedulerConfig } from '../../domain/config.ts';
import type { PoolForecast } from '../../domain/forecast.ts';
import type { Instance } from '../../domain/instance.ts';
import type { Pool } from '../../domain/pool.ts';
import { raw, type EpochMs } from '../../kernel/units.ts';
import { bidsFor } from '../../stages/appraise/pools.ts';
import type { PoolForecasts } from '../../ports/backend.ts';
import type { Forecasting, Known } from './forecasting.ts';
import type { Market } from '../../ports/market.ts';

interface Asking extends Pick<Known, 'evidence' | 'drift'> {
  readonly forecasting: Pick<Forecasting, 'of'>;
  readonly market: Market;
  /** Every instance that has not ended. */
  readonly held: readonly Instance[];
  readonly config: Pick<SchedulerConfig, 'bidDeltas'>;
  readonly now: EpochMs;
}

/** Forecast of each spot pool with a price, now, for every bid that a decision would try. */
export async function poolForecasts(
  { forecasting, market, held, config, now, ...learned }: Asking,
  pools: readonly Pool[],
): Promise<PoolForecasts> {
  const quoted = pools.flatMap((pool) => {
    const quote = pool.option === 'spot' ? market.quote(pool.id, now) : null;
    return quote === null ? [] : [{ pool, quote, open: true, closedReason: null }];
  });
  const scene = { nowMs: now, pools: quoted, instances: new Map() };
  const forecast = await forecasting.of(scene, { ...learned, market, held });
  const { origin = null } = forecast;
  return {
    origin,
    pools: quoted.map(({ pool, quote }): PoolForecast => ({
      pool: pool.id,
      priceUsdPerHour: quote,
      bids: bidsFor(pool, raw(quote), config).map((bid) => ({
        bid,
        curve: forecast.interruption(pool, bid),
        drivers: forecast.drivers?.(pool, bid) ?? null,
      })),
    })),
  };
}
