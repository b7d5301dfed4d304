import { compareText } from '../kernel/compare.ts';
import type { PoolId } from '../kernel/ids.ts';
import { raw, usdPerHour, type EpochMs } from '../kernel/units.ts';
import { poolKey, type InstanceType, type Pool, onDemandUsdOf } from '../domain/pool.ts';
import type { AvailabilitySteps, MarketTrace } from './trace.ts';

/** Price as a step function: `usdPerHour[i]` holds from `atMs[i]`, ascending strictly, until the next entry. */
export type PriceArrays = ReturnType<MarketTrace['prices']>;

/** Index of the last instant <= `t`; -1 when `t` lies before the first. `atMs` ascends. */
export function indexAt(atMs: Float64Array, t: number): number {
  let low = 0;
  let high = atMs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((atMs[middle] ?? Infinity) <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Spot price in force at `t`, USD per hour; null before the first step. */
export function priceAt(prices: PriceArrays, t: EpochMs): number | null {
  const i = indexAt(prices.atMs, raw(t));
  return i < 0 ? null : (prices.usdPerHour[i] ?? null);
}

/**
 * Views of the steps within [from, to), the one in force at `from` first: in an empty window [t, t) only one that began
 * at t itself.
 */
function stepsWithin({ atMs, usdPerHour: usd }: PriceArrays, from: number, to: number): PriceArrays {
  const first = Math.max(0, indexAt(atMs, from));
  let end = indexAt(atMs, to) + 1;
  while (end > first && (atMs[end - 1] ?? 0) >= to) end--;
  end = Math.max(first, end);
  return { atMs: atMs.subarray(first, end), usdPerHour: usd.subarray(first, end) };
}

/** `stepsWithin` [from, to) without the future of `now`, if given. A change at this very instant is known. */
export const stepsKnown = (prices: PriceArrays, from: EpochMs, to: EpochMs, now?: EpochMs): PriceArrays =>
  stepsWithin(prices, raw(from), now === undefined ? raw(to) : Math.min(raw(to), raw(now) + 1));

/**
 * True if there is capacity at `t`. A pool without steps always has it; before the first step the first one's value
 * holds.
 */
export function availableAt(steps: AvailabilitySteps | null, t: number): boolean {
  if (steps === null || steps.atMs.length === 0) return true;
  return steps.available[Math.max(0, indexAt(steps.atMs, t))] === 1;
}

/** A spot market (type x zone) with its truth: a part of a trace. */
export interface SpotMarket {
  readonly type: InstanceType;
  readonly zone: string;
  readonly onDemandUsdPerHour: number;
  readonly prices: PriceArrays;
  readonly availability: AvailabilitySteps | null;
  /** Reserved capacity there, at one price for an hour of use. Absent: none. */
  readonly reserved?: { readonly instances: number; readonly usdPerHour: number };
}

export interface TraceHeader {
  readonly name: string;
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
  readonly isUnbroken?: true;
}

const NO_PRICES: PriceArrays = { atMs: new Float64Array(0), usdPerHour: new Float64Array(0) };

/**
 * A trace over markets held in memory: a spot and an on-demand pool for each, a reserved one where there is any, sorted
 * by id.
 */
export function traceOf(header: TraceHeader, markets: readonly SpotMarket[]): MarketTrace {
  const pools: Pool[] = [];
  const prices = new Map<PoolId, PriceArrays>();
  const availability = new Map<PoolId, AvailabilitySteps>();
  for (const market of markets) {
    const spot = poolKey(market.type.name, market.zone, 'spot');
    const onDemand = poolKey(market.type.name, market.zone, 'on-demand');
    const shared = { type: market.type, zone: market.zone, onDemandUsdPerHour: usdPerHour(market.onDemandUsdPerHour) };
    pools.push({ id: spot, option: 'spot', ...shared }, { id: onDemand, option: 'on-demand', ...shared });
    prices.set(spot, market.prices);
    prices.set(onDemand, constant(header.startMs, market.onDemandUsdPerHour));
    if (market.reserved !== undefined) {
      const id = poolKey(market.type.name, market.zone, 'reserved');
      pools.push({ id, option: 'reserved', ...shared, reservedInstances: market.reserved.instances });
      prices.set(id, constant(header.startMs, market.reserved.usdPerHour));
    }
    if (market.availability !== null) availability.set(spot, market.availability);
  }
  pools.sort((a, b) => compareText(a.id, b.id));
  return {
    ...header,
    pools,
    prices: (pool) => prices.get(pool) ?? NO_PRICES,
    availability: (pool) => availability.get(pool) ?? null,
  };
}

const constant = (fromMs: EpochMs, price: number): PriceArrays => ({
  atMs: Float64Array.of(raw(fromMs)),
  usdPerHour: Float64Array.of(price),
});

/** The spot markets of a trace, sorted by pool id: the inverse of `traceOf`. */
export function marketsOf(trace: MarketTrace): readonly SpotMarket[] {
  return trace.pools
    .filter((pool) => pool.option === 'spot')
    .map((pool) => ({
      type: pool.type,
      zone: pool.zone,
      onDemandUsdPerHour: onDemandUsdOf(pool),
      prices: trace.prices(pool.id),
      availability: trace.availability(pool.id),
      ...reservedOf(trace, pool),
    }));
}

function reservedOf(trace: MarketTrace, { type, zone }: Pool): Pick<SpotMarket, 'reserved'> {
  const id = poolKey(type.name, zone, 'reserved');
  const [price] = trace.prices(id).usdPerHour;
  const instances = trace.pools.find((p) => p.id === id)?.reservedInstances;
  return price === undefined || instances === undefined ? {} : { reserved: { instances, usdPerHour: price } };
}
