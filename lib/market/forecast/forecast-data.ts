/**
 * A market forecast as data, for a cycle whose parts run in separate processes: one forecasts, another decides. It
 * holds answers to all questions of the stages: curves for the declared bids, and per pool the inputs to expected
 * prices and correlations. Answers equal those of the original forecast, to the last bit.
 * Size: a curve has 8 horizons, a pool's grid an hour of history per entry: about 2 KiB per spot pool and week.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { lte, type EpochMs, type Seconds } from '../../kernel/units.ts';
import { invariant } from '../../kernel/errors.ts';
import {
  NEVER_INTERRUPTED,
  curveWithin,
  type CapacityCurve,
  type ForecastOrigin,
  type InterruptionCurve,
  type PriceDrivers,
} from '../../domain/forecast.ts';
import { bidNumber, type Bid, type Pool } from '../../domain/pool.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { correlationOf, expectedPriceOf, hourlyUsdOf, meanPriceOf, type PoolOutlook } from './outlook.ts';

/** A pool at a bid, and within which time its risk is asked for; absent: any. */
export interface Asked {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly horizon?: Seconds | 'any';
}

/** Plain data with Maps and typed arrays, fit for the structured clone algorithm. */
export interface ForecastTable {
  readonly nowMs: EpochMs;
  readonly curves: ReadonlyMap<string, InterruptionCurve>;
  readonly outlooks: ReadonlyMap<PoolId, PoolOutlook>;
  readonly drivers: ReadonlyMap<string, PriceDrivers>;
  /** Absent in one that an earlier version made, whose cycle a deployment has overtaken. */
  readonly capacities?: ReadonlyMap<PoolId, CapacityCurve>;
  readonly origin?: ForecastOrigin;
}

/** A forecast that also gives its inputs to expected prices. */
export interface OutlookForecast extends MarketForecast {
  outlook(pool: Pool): PoolOutlook | null;
}

/**
 * Answers for the asked bids, and prices of those pools and of `priced`. O(bids asked + pools). On-demand pools take no
 * room.
 */
export function forecastTable(
  forecast: OutlookForecast,
  nowMs: EpochMs,
  asked: Iterable<Asked>,
  priced: Iterable<Pool> = [],
): ForecastTable {
  const curves = new Map<string, InterruptionCurve>();
  const outlooks = new Map<PoolId, PoolOutlook>();
  const drivers = new Map<string, PriceDrivers>();
  const capacities = new Map<PoolId, CapacityCurve>();
  const addOutlook = (pool: Pool): void => {
    const outlook = outlooks.has(pool.id) ? null : forecast.outlook(pool);
    if (outlook !== null) outlooks.set(pool.id, outlook);
  };
  for (const { pool, bid, horizon = 'any' } of asked) {
    if (pool.option === 'on-demand') continue;
    if (pool.option === 'spot') {
      const key = keyOf(pool, bid);
      if (isWithin(curves.get(key), horizon)) continue;
      curves.set(key, upTo(horizon, forecast.interruption(pool, bid)));
      const of = forecast.drivers?.(pool, bid) ?? null;
      if (of !== null) drivers.set(key, of);
      const capacity = capacities.has(pool.id) ? null : (forecast.capacity?.(pool) ?? null);
      if (capacity !== null) capacities.set(pool.id, capacity);
    }
    addOutlook(pool);
  }
  for (const pool of priced) if (pool.option !== 'on-demand') addOutlook(pool);
  return { nowMs, curves, outlooks, drivers, capacities, ...withOrigin(forecast) };
}

/** The forecast that a table was made from. Throws an internal error for a bid that the table was not made for. */
export function tabledForecast(table: ForecastTable): MarketForecast {
  const { nowMs, curves, outlooks, drivers, capacities } = table;
  const of = (pool: Pool): PoolOutlook | null => outlooks.get(pool.id) ?? null;
  return {
    ...withOrigin(table),
    drivers: (pool, bid) => drivers.get(keyOf(pool, bid)) ?? null,
    capacity: (pool) => capacities?.get(pool.id) ?? null,
    interruption: (pool, bid) =>
      pool.option === 'spot'
        ? invariant(curves.get(keyOf(pool, bid)), `no forecast was made for ${keyOf(pool, bid)}`)
        : NEVER_INTERRUPTED,
    expectedPrice: (pool, at) => expectedPriceOf(pool, of(pool), nowMs, at),
    meanPrice: (pool, over) => meanPriceOf(pool, of(pool), over),
    correlation: (a, b) => correlationOf(a, b, of),
    hourlyUsd: (pool) => hourlyUsdOf(pool, of(pool)),
  };
}

const isWithin = (known: InterruptionCurve | undefined, horizon: Seconds | 'any'): boolean =>
  known !== undefined && (known.limit === undefined || (horizon !== 'any' && lte(horizon, known.limit.horizonS)));

const upTo = (horizon: Seconds | 'any', curve: InterruptionCurve): InterruptionCurve =>
  horizon === 'any' ? curve : curveWithin(curve, { by: 'the decision', horizonS: horizon });

const withOrigin = ({ origin }: { readonly origin?: ForecastOrigin }): { readonly origin?: ForecastOrigin } =>
  origin === undefined ? {} : { origin };

const keyOf = (pool: Pool, bid: Bid): string => `${pool.id} ${bidNumber(bid)}`;
