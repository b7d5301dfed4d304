/**
 * Least prices of pools over time: step functions that no bill undercuts, whatever the bid and the launch.
 * - Per second: an instance pays the price in force, at most its bid. It lives for the notice after the price passed
 *   its bid, or after capacity ended; its bid was no lower than the price before. So at t it pays no less than the
 *   least price within [t - notice, t].
 * - Per hour: it pays the price at the beginning of the hour, up to an hour before t; so the window is an hour longer.
 * - Capacity: it runs at t only if the pool had capacity within [t - notice, t].
 */
import type { BillingRules } from '../../../market/billing.ts';
import { availableAt, indexAt, type PriceArrays } from '../../../market/price-steps.ts';
import { WARNING_MS } from '../../../market/replay.ts';
import type { AvailabilitySteps, MarketTrace } from '../../../market/trace.ts';
import type { Pool } from '../../../domain/pool.ts';

export const HOUR_MS = 3_600_000;

/** `rate[i]` holds from `atMs[i]` to the next entry, the last one for ever: USD per ms. Infinity: not to be had. */
export interface Rates {
  readonly atMs: Float64Array;
  readonly rate: Float64Array;
}

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** O(steps log steps). */
export function leastRates(
  trace: Pick<MarketTrace, 'prices' | 'availability'>,
  pool: Pool,
  { rules, span }: { readonly rules: BillingRules; readonly span: Span },
): Rates {
  const prices = trace.prices(pool.id);
  const steps = pool.option === 'spot' ? trace.availability(pool.id) : null;
  const reachMs = WARNING_MS + (rules.billing === 'per-hour' ? HOUR_MS : 0);
  const within = (t: number): boolean => t > span.fromMs && t < span.toMs;
  const cuts = [span.fromMs];
  for (const at of prices.atMs) for (const t of [at, at + reachMs]) if (within(t)) cuts.push(t);
  for (const at of steps?.atMs ?? []) for (const t of [at, at + WARNING_MS]) if (within(t)) cuts.push(t);
  const atMs = Float64Array.from(new Set(cuts)).sort();
  const least = leastWithin(prices, atMs, reachMs);
  const alive = (t: number): boolean => steps === null || availableAt(steps, t) || endedWithin(steps, t);
  return { atMs, rate: least.map((usd, i) => (alive(atMs[i] ?? 0) ? usd / HOUR_MS : Infinity)) };
}

/** True if capacity ended within the notice before `t`. */
function endedWithin({ atMs, available }: AvailabilitySteps, t: number): boolean {
  for (let i = indexAt(atMs, t); i > 0 && (atMs[i] ?? 0) > t - WARNING_MS; i--)
    if (available[i] === 0 && available[i - 1] === 1) return true;
  return false;
}

/** Least price within [t - reach, t] at each `t` of `atMs`, ascending; Infinity before the first price. */
function leastWithin({ atMs: changeMs, usdPerHour }: PriceArrays, atMs: Float64Array, reachMs: number): Float64Array {
  // Steps of the window with ascending prices: the first is the least one.
  const window: number[] = [];
  let next = 0;
  return atMs.map((t) => {
    for (; next < changeMs.length && (changeMs[next] ?? Infinity) <= t; next++) {
      while (window.length > 0 && (usdPerHour[window.at(-1) ?? 0] ?? 0) >= (usdPerHour[next] ?? 0)) window.pop();
      window.push(next);
    }
    while (window.length > 0 && (changeMs[(window[0] ?? 0) + 1] ?? Infinity) + reachMs <= t) window.shift();
    const first = window[0];
    return first === undefined ? Infinity : (usdPerHour[first] ?? Infinity);
  });
}

/** The least of several, each times its share. O(steps log steps), times the pools where the least one gets dearer. */
export function envelope(all: readonly { readonly rates: Rates; readonly share: number }[]): Rates {
  const changes = all.flatMap(({ rates, share }, of) =>
    Array.from(rates.atMs, (at, i) => ({ at, of, rate: share * (rates.rate[i] ?? Infinity) })),
  );
  changes.sort((a, b) => a.at - b.at);
  const now = new Float64Array(all.length).fill(Infinity);
  const atMs: number[] = [];
  const rate: number[] = [];
  let least = Infinity;
  for (let c = 0; c < changes.length;) {
    const at = changes[c]?.at ?? 0;
    let isDearer = false;
    for (let change = changes[c]; change?.at === at; change = changes[++c]) {
      isDearer ||= now[change.of] === least && change.rate > least;
      now[change.of] = change.rate;
      least = Math.min(least, change.rate);
    }
    if (isDearer) least = now.reduce((a, b) => Math.min(a, b), Infinity);
    if (rate.at(-1) === least) continue;
    atMs.push(at);
    rate.push(least);
  }
  return { atMs: Float64Array.from(atMs), rate: Float64Array.from(rate) };
}

export interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly rate: number;
}

/** Pieces of [fromMs, toMs) with a finite rate, in order. O(log steps + pieces). */
export function piecesWithin({ atMs, rate }: Rates, { fromMs, toMs }: Span): Piece[] {
  const pieces: Piece[] = [];
  for (let i = Math.max(0, indexAt(atMs, fromMs)); i < atMs.length && (atMs[i] ?? 0) < toMs; i++) {
    const from = Math.max(fromMs, atMs[i] ?? 0);
    const to = Math.min(toMs, atMs[i + 1] ?? Infinity);
    if (to > from && rate[i] !== Infinity) pieces.push({ fromMs: from, toMs: to, rate: rate[i] ?? 0 });
  }
  return pieces;
}
