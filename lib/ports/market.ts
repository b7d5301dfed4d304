import type { PoolId } from '../kernel/ids.ts';
import type { EpochMs, UsdPerHour } from '../kernel/units.ts';
import type { Pool } from '../domain/pool.ts';

/** A price as a step function: `usdPerHour[i]` holds from `atMs[i]` (epoch ms) until the next entry. */
export interface PriceSteps {
  readonly atMs: Float64Array;
  readonly usdPerHour: Float64Array;
}

/** Public facts of the market: pools and prices up to now. Never the future. */
export interface Market {
  pools(): readonly Pool[];
  /** Price at `at`; null: none. On-demand pools quote their list price. */
  quote(pool: PoolId, at: EpochMs): UsdPerHour | null;
  /** Time until which prices are complete even without repetition; absent, or null: only repetition tells. */
  completeUntil?(): EpochMs | null;
  /** Price changes within [from, to), the price in force at `from` first. Views, not copies: do not write to them. */
  history(pool: PoolId, from: EpochMs, to: EpochMs): PriceSteps;
}
