import type { PriceDrivers } from '../../domain/forecast.ts';
import type { PriceArrays } from '../price-steps.ts';

const DAY_MS = 86_400_000;
/** Search range of the last crossing: the range that the forecasts themselves use. */
export const OBSERVED_MS = 7 * DAY_MS;

/** Evidence behind a bid's risk, from the prices of [now - OBSERVED_MS, now]. Null without a price. O(prices). */
export function priceDrivers({ atMs, usdPerHour }: PriceArrays, bidUsd: number, nowMs: number): PriceDrivers | null {
  const last = atMs.length - 1;
  const price = usdPerHour[last];
  if (price === undefined) return null;
  const fromMs = Math.max(nowMs - OBSERVED_MS, atMs[0] ?? nowMs);
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

/** As exact as prices are: these figures are stored with each job's explanation, where every byte is paid for. */
const toMicros = (usd: number): number => Math.round(usd * 1e6) / 1e6;
