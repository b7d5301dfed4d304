import type { PoolId } from '../kernel/ids.ts';
import { raw, type EpochMs } from '../kernel/units.ts';
import type { Pool } from '../domain/pool.ts';

/**
 * Capacity of a pool over time: a step function like prices. `available[i]` (1/0) holds from `atMs[i]` until the next
 * entry.
 */
export interface AvailabilitySteps {
  readonly atMs: Float64Array;
  readonly available: Uint8Array;
}

/**
 * A market to replay: the whole truth, future included. Only capacity engines (local, simulated, the AWS double) and
 * tools see it; policies see `Market` (lib/ports/market.ts), which ends at now.
 */
export interface MarketTrace {
  readonly name: string;
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
  /**
   * Every price holds until the next one, as generated ones do; absent: a silence may be that of who collected them.
   */
  readonly isUnbroken?: true;
  /** Spot pools and, for each of their types and zones, an on-demand pool; reserved ones where there are any. */
  readonly pools: readonly Pool[];
  /** Price steps of a spot pool; a single step for an on-demand or reserved pool. */
  prices(pool: PoolId): { readonly atMs: Float64Array; readonly usdPerHour: Float64Array };
  /** Null: always available. */
  availability(pool: PoolId): AvailabilitySteps | null;
}

/** A market with further pools, each with its constant price in USD per hour. */
export function withPools(trace: MarketTrace, added: ReadonlyMap<Pool, number>): MarketTrace {
  const prices = new Map([...added].map(([pool, usd]) => [pool.id, usd]));
  return {
    name: trace.name,
    startMs: trace.startMs,
    endMs: trace.endMs,
    ...(trace.isUnbroken === undefined ? {} : { isUnbroken: trace.isUnbroken }),
    pools: [...trace.pools, ...added.keys()],
    prices: (id) => {
      const usd = prices.get(id);
      if (usd === undefined) return trace.prices(id);
      return { atMs: Float64Array.of(raw(trace.startMs)), usdPerHour: Float64Array.of(usd) };
    },
    availability: (id) => (prices.has(id) ? null : trace.availability(id)),
  };
}

/** First and last instant of a trace in plain numbers, as its arrays of prices have them. */
export const spanOf = (trace: Pick<MarketTrace, 'startMs' | 'endMs'>): { startMs: number; endMs: number } => ({
  startMs: raw(trace.startMs),
  endMs: raw(trace.endMs),
});
