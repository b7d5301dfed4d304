import type { AvailabilitySteps } from './trace.ts';
import { indexAt, type PriceArrays, type SpotMarket } from './price-steps.ts';
import { quantilesOf } from './quantiles.ts';

const DAY_MS = 86_400_000;

/** Time window, epoch ms, [fromMs, toMs). */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** One stretch of time with the price above on-demand. */
export interface Excursion {
  readonly startMs: number;
  readonly endMs: number;
  /** Highest price / on-demand within it; > 1. */
  readonly peak: number;
}

/** One market's price over a window, in units of its on-demand price. */
export interface PriceProfile {
  readonly spanMs: number;
  /** Ratio and how long it held, one per step of the window. */
  readonly ratio: readonly number[];
  readonly heldMs: readonly number[];
  /** Times between price changes that changed something, seconds. */
  readonly interS: readonly number[];
  readonly excursions: readonly Excursion[];
  /** Upward crossings of the on-demand price, those still above at the window's end included. */
  readonly crossings: number;
  readonly aboveMs: number;
}

/**
 * Walks a price within a window. Null when the window holds no price. Open excursions at its borders are not listed
 * (their length is unknown) but count in `aboveMs`.
 */
export function profilePrices(prices: PriceArrays, onDemand: number, window: Window): PriceProfile | null {
  const from = Math.max(window.fromMs, prices.atMs[0] ?? Infinity);
  if (!(from < window.toMs)) return null;
  const ratio: number[] = [];
  const heldMs: number[] = [];
  const interS: number[] = [];
  const excursions: Excursion[] = [];
  let crossings = 0;
  let aboveMs = 0;
  let above: { startMs: number; peak: number } | null = null;
  let changedMs: number | null = null;
  for (let i = Math.max(0, indexAt(prices.atMs, from)); i < prices.atMs.length; i++) {
    const at = Math.max(from, prices.atMs[i] ?? 0);
    if (at >= window.toMs) break;
    const held = Math.min(window.toMs, prices.atMs[i + 1] ?? window.toMs) - at;
    const r = (prices.usdPerHour[i] ?? 0) / onDemand;
    const before = ratio.at(-1);
    if (before !== r) {
      if (changedMs !== null && before !== undefined) interS.push((at - changedMs) / 1000);
      changedMs = at;
    }
    if (r > 1) {
      if (before !== undefined && before <= 1) {
        crossings++;
        above = { startMs: at, peak: r };
      } else if (above !== null && r > above.peak) above.peak = r;
      aboveMs += held;
    } else if (above !== null) {
      excursions.push({ ...above, endMs: at });
      above = null;
    }
    ratio.push(r);
    heldMs.push(held);
  }
  return { spanMs: window.toMs - from, ratio, heldMs, interS, excursions, crossings, aboveMs };
}

/** Whole periods with and without capacity within a window, seconds; periods cut by its borders are left out. */
export function periods(
  steps: AvailabilitySteps,
  window: Window,
): { readonly upS: readonly number[]; readonly downS: readonly number[]; readonly upShare: number } {
  const upS: number[] = [];
  const downS: number[] = [];
  const first = Math.max(0, indexAt(steps.atMs, window.fromMs));
  let state: number | null = null;
  let sinceMs = window.fromMs;
  let whole = false;
  let upMs = 0;
  for (let i = first; i <= steps.atMs.length; i++) {
    const at = Math.min(window.toMs, Math.max(window.fromMs, steps.atMs[i] ?? window.toMs));
    const next = at >= window.toMs ? null : (steps.available[i] ?? null);
    if (next === state) continue;
    if (state === 1) upMs += at - sinceMs;
    if (state !== null && whole && next !== null) (state === 1 ? upS : downS).push((at - sinceMs) / 1000);
    whole = state !== null;
    state = next;
    sinceMs = at;
    if (next === null) break;
  }
  return { upS, downS, upShare: upMs / (window.toMs - window.fromMs) };
}

export interface PriceSummary {
  readonly markets: number;
  /** Upward crossings of the on-demand price per market and day. */
  readonly crossingsPerDay: number;
  /** Share of market-time above on-demand, mean over markets. */
  readonly aboveShare: number;
  /** Share of markets that never were. */
  readonly quietShare: number;
  /**
   * Quantiles 10, 50, 90 % of: time between changes; length, peak and spacing of excursions. Each market counts alike
   * in interS.
   */
  readonly interS: readonly number[];
  readonly excursionS: readonly number[];
  readonly peak: readonly number[];
  readonly gapS: readonly number[];
  /** Time-weighted quantiles 5, 25, 50, 75, 95, 99 % of price / on-demand, each market alike. */
  readonly ratio: readonly number[];
}

const TRIPLE = [0.1, 0.5, 0.9] as const;
export const RATIO_PROBABILITIES = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99] as const;

/** Measures for comparing generated with real markets. */
export function summarisePrices(profiles: readonly PriceProfile[]): PriceSummary {
  const days = profiles.reduce((sum, p) => sum + p.spanMs / DAY_MS, 0);
  const excursions = profiles.flatMap((p) => p.excursions);
  const shares = profiles.map((p) => p.aboveMs / p.spanMs);
  const gapS = profiles.flatMap((p) =>
    p.excursions.slice(1).map((e, i) => (e.startMs - (p.excursions[i]?.endMs ?? 0)) / 1000),
  );
  return {
    markets: profiles.length,
    crossingsPerDay: profiles.reduce((sum, p) => sum + p.crossings, 0) / days,
    aboveShare: shares.reduce((sum, s) => sum + s, 0) / profiles.length,
    quietShare: shares.filter((s) => s === 0).length / profiles.length,
    ...pooled(profiles),
    excursionS: quantilesOf(
      excursions.map((e) => (e.endMs - e.startMs) / 1000),
      TRIPLE,
    ),
    peak: quantilesOf(
      excursions.map((e) => e.peak),
      TRIPLE,
    ),
    gapS: quantilesOf(gapS, TRIPLE),
  };
}

/** Quantiles with equal weight per market, whatever its number of changes. */
function pooled(profiles: readonly PriceProfile[]): Pick<PriceSummary, 'interS' | 'ratio'> {
  const inter = profiles.flatMap((p) => p.interS);
  const interWeight = profiles.flatMap((p) => p.interS.map(() => 1 / p.interS.length));
  const ratio = profiles.flatMap((p) => p.ratio);
  const ratioWeight = profiles.flatMap((p) => p.heldMs.map((ms) => ms / p.spanMs));
  return {
    interS: quantilesOf(inter, TRIPLE, interWeight),
    ratio: quantilesOf(ratio, RATIO_PROBABILITIES, ratioWeight),
  };
}

export interface AvailabilitySummary {
  readonly series: number;
  readonly upShare: number;
  /** Changes from available to not, per series and day. */
  readonly interruptionsPerDay: number;
  /** Quantiles 10, 50, 90 % of whole periods, seconds, each series alike. */
  readonly upS: readonly number[];
  readonly downS: readonly number[];
}

export function summariseAvailability(
  series: readonly { readonly steps: AvailabilitySteps; readonly window: Window }[],
): AvailabilitySummary {
  const each = series.map(({ steps, window }) => ({ ...periods(steps, window), window }));
  const days = each.reduce((sum, s) => sum + (s.window.toMs - s.window.fromMs) / DAY_MS, 0);
  const alike = (lists: readonly (readonly number[])[]): readonly number[] =>
    quantilesOf(
      lists.flat(),
      TRIPLE,
      lists.flatMap((list) => list.map(() => 1 / list.length)),
    );
  return {
    series: series.length,
    upShare: each.reduce((sum, s) => sum + s.upShare, 0) / each.length,
    interruptionsPerDay: each.reduce((sum, s) => sum + s.upS.length, 0) / days,
    upS: alike(each.map((s) => s.upS)),
    downS: alike(each.map((s) => s.downS)),
  };
}

/** Profiles of the markets that have a price in the window. */
export const profilesOf = (markets: readonly SpotMarket[], window: Window): readonly PriceProfile[] =>
  markets.flatMap((m) => profilePrices(m.prices, m.onDemandUsdPerHour, window) ?? []);
