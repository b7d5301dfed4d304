import { EbbError } from '../../kernel/errors.ts';
import { msBetween, plus, seconds, type EpochMs } from '../../kernel/units.ts';
import { defaultMarketStartMs } from '../../market/default-market.ts';
import type { MarketTrace } from '../../market/trace.ts';

/** Market time before the workload that policies learn prices from, where the market is long enough. */
const HISTORY_S = 7 * 86_400;

/**
 * Where a workload begins that nobody gave a time: in generated markets, which are alike but for their draws, where
 * local mode begins the default one; in others after a week of prices, or at the start of a market of which then less
 * than half would be left.
 */
export function usualStart({ startMs, endMs }: Pick<MarketTrace, 'startMs' | 'endMs'>, generated: boolean): EpochMs {
  if (generated) return defaultMarketStartMs;
  const afterHistory = plus(startMs, seconds(HISTORY_S));
  return msBetween(startMs, afterHistory) <= msBetween(afterHistory, endMs) ? afterHistory : startMs;
}

/**
 * The beginnings of `windows` windows, evenly from the first instant to the last (epoch ms). Throws EbbError `usage`
 * where there is no time between them.
 */
export function windowStarts(windows: number, span: { readonly fromMs: number; readonly toMs: number }): number[] {
  const { fromMs, toMs } = span;
  if (windows > 1 && !(fromMs < toMs)) {
    throw new EbbError('usage', {
      what: 'there is no time for windows to be spread over',
      got: `${iso(fromMs)} to ${iso(toMs)}`,
      allowed: '--from before --to, both within the market',
      next: 'see `ebb market show` for when the market begins and ends',
    });
  }
  return Array.from({ length: windows }, (_, i) => Math.round(fromMs + (i * (toMs - fromMs)) / windows));
}

const iso = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`);
