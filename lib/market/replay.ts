import type { PoolId } from '../kernel/ids.ts';
import { epochMs, gt, least, lte, raw, type EpochMs } from '../kernel/units.ts';
import { capUsd, isSpotPool, type Bid } from '../domain/pool.ts';
import { availableAt, indexAt, priceAt } from './price-steps.ts';
import type { MarketTrace } from './trace.ts';

/**
 * The truth for capacity engines, hidden from policies: outcomes of launches, and interruptions. All functions are pure
 * and read the whole trace, future included.
 * Rules, in the order of design and of EC2's documentation:
 * - A spot launch needs a price, a bid >= that price and capacity. On-demand launches always succeed: the traces know
 *   nothing of on-demand capacity.
 * - A spot instance is interrupted when the price rises ABOVE its bid (equal is kept) or its pool's capacity ends. With
 *   bid `uncapped` only the latter interrupts.
 * - Its notice comes at that instant and the instance is gone two minutes later: EC2 User Guide, "Spot Instance
 *   interruption notices": "issued two minutes before". A price that falls back meanwhile saves nothing.
 * - Beyond the trace's end nothing is known: no launch succeeds there, and running instances are not interrupted.
 */
export type LaunchOutcome = 'ok' | 'bid-below-price' | 'insufficient-capacity' | 'no-price';

/** EC2 User Guide, "Spot Instance interruption notices": two minutes between notice and interruption. */
export const WARNING_MS = 120_000;

/**
 * A rebalance hint is due when the price has risen to this fraction of the bid. Ours: no trace carries AWS's
 * recommendations.
 */
export const REBALANCE_BID_FRACTION = 0.9;

/** Outcome of a launch at `at`. */
export function launchOutcome(trace: MarketTrace, pool: PoolId, at: EpochMs, bid: Bid): LaunchOutcome {
  if (!isSpotPool(pool)) return trace.prices(pool).atMs.length === 0 ? 'no-price' : 'ok';
  const price = gt(at, trace.endMs) ? null : priceAt(trace.prices(pool), at);
  if (price === null) return 'no-price';
  if (price > capUsd(bid)) return 'bid-below-price';
  return availableAt(trace.availability(pool), raw(at)) ? 'ok' : 'insufficient-capacity';
}

export interface Interruption {
  /** The interruption notice. */
  readonly warnMs: EpochMs;
  /** The instance is gone: WARNING_MS after the notice. */
  readonly goneMs: EpochMs;
  readonly cause: 'price' | 'capacity';
}

/**
 * The interruption of an instance launched at `launched` with `bid`; null when the trace has none. Price wins a tie.
 */
export function interruptionAfter(trace: MarketTrace, pool: PoolId, launched: EpochMs, bid: Bid): Interruption | null {
  if (!isSpotPool(pool)) return null;
  const byPrice = firstAbove(trace, pool, launched, capUsd(bid));
  const byCapacity = firstUnavailable(trace, pool, launched);
  const warn = least(byPrice, byCapacity);
  if (!lte(warn, trace.endMs)) return null;
  return {
    warnMs: warn,
    goneMs: epochMs(raw(warn) + WARNING_MS),
    cause: lte(byPrice, byCapacity) ? 'price' : 'capacity',
  };
}

/**
 * Time of a rebalance hint, before any interruption notice: the price climbs from below REBALANCE_BID_FRACTION of the
 * bid to above it. Null for uncapped bids, for bids near the price from the start (a hint at launch says nothing new),
 * and for capacity: the traces give no earlier sign of that.
 */
export function rebalanceAfter(trace: MarketTrace, pool: PoolId, launched: EpochMs, bid: Bid): EpochMs | null {
  if (!isSpotPool(pool) || bid === 'uncapped') return null;
  const threshold = REBALANCE_BID_FRACTION * raw(bid);
  const hint = firstAbove(trace, pool, launched, threshold);
  const interruption = interruptionAfter(trace, pool, launched, bid);
  if (lte(hint, launched) || !lte(hint, trace.endMs)) return null;
  return interruption !== null && lte(interruption.warnMs, hint) ? null : hint;
}

const NEVER = epochMs(Infinity);

/** First instant >= `launched` with the price above `limit`; NEVER: none. */
function firstAbove(trace: MarketTrace, pool: PoolId, launched: EpochMs, limit: number): EpochMs {
  if (limit === Infinity) return NEVER;
  const from = raw(launched);
  const { atMs, usdPerHour } = trace.prices(pool);
  for (let i = Math.max(0, indexAt(atMs, from)); i < atMs.length; i++) {
    if ((usdPerHour[i] ?? 0) > limit) return epochMs(Math.max(from, atMs[i] ?? from));
  }
  return NEVER;
}

function firstUnavailable(trace: MarketTrace, pool: PoolId, launched: EpochMs): EpochMs {
  const steps = trace.availability(pool);
  if (steps === null || steps.atMs.length === 0) return NEVER;
  const from = raw(launched);
  // Before its first step a pool has the first one's state.
  if (!availableAt(steps, from)) return launched;
  for (let i = Math.max(0, indexAt(steps.atMs, from)); i < steps.atMs.length; i++) {
    if (steps.available[i] === 0) return epochMs(Math.max(from, steps.atMs[i] ?? from));
  }
  return NEVER;
}
