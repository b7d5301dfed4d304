/**
 * Regime of a pool's price. Spot prices before November 2017 spiked above on-demand, later ones stay below it and
 * drift. A trained model knows more of the former than a pool's history does, and nothing more of the latter
 * (docs/results.md, "Forecast of price losses").
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, minus, raw, seconds, type EpochMs } from '../../kernel/units.ts';
import { onDemandUsdOf, type Pool } from '../../domain/pool.ts';
import type { PriceArrays } from '../price-steps.ts';

/** Public price history in [from, to), the price in force at `from` first. */
type History = (pool: PoolId, from: EpochMs, to: EpochMs) => PriceArrays;

const HOUR_MS = 3_600_000;

/** True if the price was above on-demand in the `windowS` before `now`. O(prices in it). */
export function isSpiky(pool: Pool, history: History, now: EpochMs, windowS: number): boolean {
  if (pool.option !== 'spot') return false;
  const from = minus(now, seconds(windowS));
  const above = onDemandUsdOf(pool);
  return history(pool.id, from, epochMs(raw(now) + 1)).usdPerHour.some((usd) => usd > above);
}

/** Regimes of pools, renewed once an hour: reading a week of each pool in each cycle would cost more than deciding. */
export class SpikyPools {
  readonly #windowS: number;
  readonly #known = new Map<PoolId, boolean>();
  #hour = NaN;

  /** `windowS`: time that the regime is judged by. */
  constructor(windowS: number) {
    this.#windowS = windowS;
  }

  has(pool: Pool, history: History, now: EpochMs): boolean {
    const hour = Math.floor(raw(now) / HOUR_MS);
    if (hour !== this.#hour) this.#known.clear();
    this.#hour = hour;
    let spiky = this.#known.get(pool.id);
    if (spiky === undefined) this.#known.set(pool.id, (spiky = isSpiky(pool, history, now, this.#windowS)));
    return spiky;
  }
}
