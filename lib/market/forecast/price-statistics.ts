import type { PriceArrays } from '../price-steps.ts';

const HOUR_MS = 3_600_000;

/**
 * Usual price of a pool, by its history. The grid is the price at full hours, oldest first, NaN before the first price;
 * `gridHour` is the hour (since the epoch) of its last entry.
 */
export interface PriceStatistics {
  /** Time-weighted median and mean, USD per hour. */
  readonly medianUsd: number;
  readonly meanUsd: number;
  /** Half-life of a deviation from the median, seconds. */
  readonly halfLifeS: number;
  /** True if the half-life was estimated from this pool's history. */
  readonly estimated: boolean;
  readonly grid: Float64Array;
  readonly gridHour: number;
}

/** Fewer hourly prices than this give no autocorrelation worth the name: a day. */
const LEAST_GRID = 24;
/**
 * Default without an estimate: spikes in the 2016 us-east-1 trace last tens of minutes to hours, drifts in 2021 days;
 * in between.
 */
const DEFAULT_HALF_LIFE_S = 6 * 3600;
/** Bounds: the grid cannot show a faster decay than a fraction of its step, nor a slower one than its window. */
const LEAST_HALF_LIFE_S = 900;
const MOST_HALF_LIFE_S = 7 * 86_400;

/** O(n log n) in the price changes of the window (for the median). Null when there is no price in [fromMs, nowMs]. */
export function priceStatistics(steps: PriceArrays, fromMs: number, nowMs: number): PriceStatistics | null {
  const n = steps.atMs.length;
  if (n === 0 || (steps.atMs[0] ?? Infinity) > nowMs) return null;
  const held: { readonly usd: number; readonly ms: number }[] = [];
  let total = 0;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    const from = Math.max(fromMs, steps.atMs[i] ?? nowMs);
    const to = Math.min(nowMs, steps.atMs[i + 1] ?? nowMs);
    if (to <= from) continue;
    const usd = steps.usdPerHour[i] ?? 0;
    held.push({ usd, ms: to - from });
    total += to - from;
    sum += usd * (to - from);
  }
  const last = steps.usdPerHour[n - 1] ?? 0;
  const medianUsd = weightedMedian(held, total) ?? last;
  const grid = hourlyGrid(steps, fromMs, nowMs);
  const estimate = halfLife(grid, medianUsd);
  return {
    medianUsd,
    meanUsd: total > 0 ? sum / total : last,
    halfLifeS: estimate ?? DEFAULT_HALF_LIFE_S,
    estimated: estimate !== null,
    grid,
    gridHour: Math.floor(nowMs / HOUR_MS),
  };
}

function weightedMedian(held: { readonly usd: number; readonly ms: number }[], totalMs: number): number | null {
  held.sort((a, b) => a.usd - b.usd);
  let mass = 0;
  for (const { usd, ms } of held) {
    mass += ms;
    if (mass >= totalMs / 2) return usd;
  }
  return null;
}

function hourlyGrid({ atMs, usdPerHour }: PriceArrays, fromMs: number, nowMs: number): Float64Array {
  const firstHour = Math.ceil(fromMs / HOUR_MS);
  const grid = new Float64Array(Math.max(0, Math.floor(nowMs / HOUR_MS) - firstHour + 1));
  let i = -1;
  for (let g = 0; g < grid.length; g++) {
    while ((atMs[i + 1] ?? Infinity) <= (firstHour + g) * HOUR_MS) i++;
    grid[g] = i < 0 ? NaN : (usdPerHour[i] ?? NaN);
  }
  return grid;
}

/**
 * Half-life of deviations from the median, as if hourly prices were an AR(1) around it: their autocorrelation at one
 * hour is 2^(-1 h / half-life). Null when the price never moved or the history is short.
 */
function halfLife(grid: Float64Array, median: number): number | null {
  let square = 0;
  let product = 0;
  let count = 0;
  let before = NaN;
  for (const price of grid) {
    const deviation = price - median;
    if (!Number.isNaN(before) && !Number.isNaN(deviation)) {
      square += before * before;
      product += before * deviation;
      count++;
    }
    before = deviation;
  }
  if (count < LEAST_GRID || square <= 0) return null;
  const kept = product / square;
  if (kept <= 0) return LEAST_HALF_LIFE_S;
  if (kept >= 1) return MOST_HALF_LIFE_S;
  return Math.min(MOST_HALF_LIFE_S, Math.max(LEAST_HALF_LIFE_S, (3600 * Math.log(0.5)) / Math.log(kept)));
}

/** Expected price after `aheadS`, USD per hour: the deviation from the median halves every half-life. */
export const revertedPrice = (s: PriceStatistics, nowUsd: number, aheadS: number): number =>
  s.medianUsd + (nowUsd - s.medianUsd) * 0.5 ** (Math.max(0, aheadS) / s.halfLifeS);

/**
 * Expected mean price over the next `overS`, USD per hour, spikes included: the deviation from the mean halves every
 * half-life. A short run on a pool at its usual price hardly pays for the spikes that the mean holds.
 */
export function meanPriceOver(s: PriceStatistics, nowUsd: number, overS: number): number {
  const halfLives = overS / s.halfLifeS;
  const kept = halfLives < 1e-9 ? 1 : (1 - 0.5 ** halfLives) / (halfLives * Math.LN2);
  return s.meanUsd + (nowUsd - s.meanUsd) * kept;
}

/**
 * Pearson correlation over the hours that both grids have, aligned at their ends; 0 when either stands still or under a
 * day is shared.
 */
export function gridCorrelation(a: PriceStatistics, b: PriceStatistics): number {
  const shift = a.gridHour - b.gridHour;
  let n = 0;
  let sumA = 0;
  let sumB = 0;
  const pairs: number[] = [];
  for (let i = 0; i < a.grid.length; i++) {
    const x = a.grid[i] ?? NaN;
    const y = b.grid[b.grid.length - a.grid.length + i + shift] ?? NaN;
    if (Number.isNaN(x) || Number.isNaN(y)) continue;
    pairs.push(x, y);
    sumA += x;
    sumB += y;
    n++;
  }
  if (n < LEAST_GRID) return 0;
  let xy = 0;
  let xx = 0;
  let yy = 0;
  for (let i = 0; i < pairs.length; i += 2) {
    const dx = (pairs[i] ?? 0) - sumA / n;
    const dy = (pairs[i + 1] ?? 0) - sumB / n;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  // A price that never moved leaves rounding dust for variance.
  const dust = 1e-18 * (sumA * sumA + sumB * sumB + 1);
  if (xx <= dust || yy <= dust) return 0;
  return Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}
