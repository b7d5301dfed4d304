/**
 * Baseline: ExoSphere's acquisition as Tributary describes and implements it (sections 2.1.2 and 2.4.6): a portfolio of
 * spot pools. The return of a pool is what it saves over the on-demand price, its risk the variance of its price; each
 * has its share of the vCPUs that the load needs, at the on-demand price as bid.
 */
import { sampleCovariance } from 'simple-statistics';
import { compareText } from '../../kernel/compare.ts';
import { raw } from '../../kernel/units.ts';
import { onDemandUsdOf, type Pool } from '../../domain/pool.ts';
import { portfolio } from '../../policy/footprint/portfolio.ts';
import type { FootprintChange, FootprintContext, FootprintPolicy } from '../../policy/services/contracts.ts';
import { leastUnits, unitsOf } from './units.ts';

export interface ExosphereSettings {
  /** Aversion to risk; Tributary compares with 1 and 1e9. */
  readonly alpha: number;
}

/** O(pools^2 x hours of prices). */
export const exosphere =
  ({ alpha }: ExosphereSettings): FootprintPolicy =>
  (context) => {
    const needed = leastUnits(context.demand.utility, 1) ?? 0;
    const pools = pricedPools(context);
    const shares = portfolio(
      pools.map(({ pool, hourly }) => returnOf(pool, hourly)),
      pools.map((a) => pools.map((b) => covarianceOf(a, b))),
      alpha,
    );
    const wanted = new Map(
      pools.map(({ pool }, i) => [pool.id, Math.ceil((needed * (shares[i] ?? 0)) / unitsOf(pool) - 1e-6)]),
    );
    return changeTo(wanted, context);
  };

interface Priced {
  readonly pool: Pool;
  /** US dollars per hour of a vCPU, by the hour. */
  readonly hourly: readonly number[];
}

function pricedPools({ pools, hourlyUsd }: FootprintContext): readonly Priced[] {
  return pools
    .flatMap(({ pool, quote, open }): Priced[] => {
      if (pool.option !== 'spot' || !open || quote === null || unitsOf(pool) < 1) return [];
      if (raw(quote) >= onDemandUsdOf(pool)) return [];
      const past = hourlyUsd(pool);
      const prices = past.length === 0 ? [raw(quote)] : [...past];
      return [{ pool, hourly: prices.map((usd) => usd / unitsOf(pool)) }];
    })
    .sort((a, b) => compareText(a.pool.id, b.pool.id));
}

const returnOf = (pool: Pool, hourly: readonly number[]): number =>
  onDemandUsdOf(pool) / unitsOf(pool) - hourly.reduce((sum, usd) => sum + usd, 0) / hourly.length;

/** Over the hours that both have, the last ones. */
function covarianceOf(a: Priced, b: Priced): number {
  const hours = Math.min(a.hourly.length, b.hourly.length);
  return hours < 2 ? 0 : sampleCovariance(a.hourly.slice(-hours), b.hourly.slice(-hours));
}

/** Buys the instances that a pool lacks. Instances beyond a share are given back once no pool lacks any. */
function changeTo(wanted: ReadonlyMap<string, number>, { held, pools }: FootprintContext): FootprintChange {
  const byPool = Map.groupBy(held, (h) => h.pool.id);
  const buy = pools.flatMap(({ pool }): FootprintChange['buy'][number][] => {
    const count = (wanted.get(pool.id) ?? 0) - (byPool.get(pool.id)?.length ?? 0);
    if (count < 1) return [];
    return [{ pool: pool.id, bid: pool.onDemandUsdPerHour, count, reason: 'its share of the portfolio' }];
  });
  if (buy.length > 0) return { buy, release: [] };
  const release = [...byPool].flatMap(([pool, of]) =>
    of
      .toSorted((a, b) => compareText(a.id, b.id))
      .slice(wanted.get(pool) ?? 0)
      .map(({ id }) => ({ instance: id, reason: 'beyond its share of the portfolio' })),
  );
  return { buy, release };
}
