import type { PriceDrivers } from '../../domain/forecast.ts';
import type { PriceArrays } from '../price-steps.ts';

const DAY_MS = 86_400_000;
/** How far back a last crossing is looked for: what the forecasts themselves look back on. */
export const LOOKED_BACK_MS = 7 * DAY_MS;

/** What a bid's risk rests on, out of the prices of [now - LOOKED_BACK_MS, now]. Null without a price. O(prices). */
export function priceDrivers({ atMs, usdPerHour }: PriceArrays, bidUsd: number, nowMs: number): PriceDrivers | null {
  const last = atMs.length - 1;
  const price = usdPerHour[last];
  if (price === undefined) return null;
  const fromMs = Math.max(nowMs - LOOKED_BACK_MS, atMs[0] ?? nowMs);
  let untilMs = nowMs;
  let lastAboveMs: number | null = null;
  let [high, low] = [price, price];
  for (let i = last; i >= 0 && untilMs > fromMs; i--) {
    const usd = usdPerHour[i] ?? price;
    if (untilMs > nowMs - DAY_MS) [high, low] = [Math.max(high, usd), Math.min(low, usd)];
    if (usd > bidUsd && lastAboveMs === null) lastAboveMs = untilMs;
    untilMs = atMs[i] ?? fromMs;
    if (lastAboveMs !== null && untilMs <= nowMs - DAY_MS) break;
  }
  return {
    aboveUsd: toMicros(bidUsd - price),
    lastAboveS: lastAboveMs === null ? null : Math.round((nowMs - lastAboveMs) / 1000),
    knownS: Math.round((nowMs - fromMs) / 1000),
    range24hUsd: toMicros(high - low),
  };
}

/** As exact as prices are: these figures are kept with each job's explanation, where every byte is paid for. */
const toMicros = (usd: number): number => Math.round(usd * 1e6) / 1e6;
