import { EbbError } from '../../kernel/errors.ts';
import { msBetween, plus, seconds, type EpochMs } from '../../kernel/units.ts';
import { defaultMarketStartMs } from '../../market/default-market.ts';
import type { MarketTrace } from '../../market/trace.ts';

/** Market time before the workload, from which policies learn prices, if the market is long enough. */
const HISTORY_S = 7 * 86_400;

/**
 * Default start of a workload. Generated markets: where local mode begins the default one, because they differ by their
 * draws only. Others: after a week of prices, or at the beginning if that would leave less than half.
 */
export function usualStart({ startMs, endMs }: Pick<MarketTrace, 'startMs' | 'endMs'>, generated: boolean): EpochMs {
  if (generated) return defaultMarketStartMs;
  const afterHistory = plus(startMs, seconds(HISTORY_S));
  return msBetween(startMs, afterHistory) <= msBetween(afterHistory, endMs) ? afterHistory : startMs;
}

/**
 * Starts of `windows` windows, spread evenly from the first instant to the last (epoch ms). Throws EbbError `usage` for
 * an empty span.
 */
export function windowStarts(windows: number, span: { readonly fromMs: number; readonly toMs: number }): number[] {
  const { fromMs, toMs } = span;
  if (windows > 1 && !(fromMs < toMs)) {
    throw new EbbError('usage', {
      what: 'no time to spread windows over',
      got: `${iso(fromMs)} to ${iso(toMs)}`,
      allowed: '--from before --to, both within the market',
      next: 'see `ebb market show` for when the market begins and ends',
    });
  }
  return Array.from({ length: windows }, (_, i) => Math.round(fromMs + (i * (toMs - fromMs)) / windows));
}

const iso = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`);
