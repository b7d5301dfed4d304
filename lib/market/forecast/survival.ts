import { indexAt, type PriceArrays } from '../price-steps.ts';

/**
 * Survival of hypothetical bids in a pool's price history: the historical-median predictor that Tributary (section
 * 2.2.1, 2.4.7) attributes to Proteus, made a curve over horizons.
 * A hypothetical bid begins at a point of the history `delta` above the price of that moment and is lost when the price
 * first rises above it. Proteus draws random points; here every instant of the history is one, exactly: while the price
 * stands still all bids placed in that stretch [a, b) are lost together at one time T, so those lost within h are
 * [max(a, T - h), b). Stretches wait in a list sorted by price; a new price pops all that it passes off its end.
 * Lost time is summed in cells of one hour x horizon. A day's share of lost bids is one observation, and the curve at h
 * is the MEDIAN of those days (Proteus' "historical median"): one wild day does not count for a week of calm. Only
 * hours whose bids have all been watched for h enter the point at h, so bids still running at the end (censored) do not
 * look safe.
 * Complexity: each price change is pushed and popped once, O(log n + moved) each with `moved` the stretches within
 * `delta` above the lowest open price, and adds to at most HORIZONS x (1 + hours of the stretch) sums; stretches are
 * disjoint, so a window of n changes costs O(n (log n + HORIZONS) + hours x HORIZONS), and a refresh costs only the new
 * part.
 */

/** Horizons of every curve, seconds: minutes to three days. */
export const HORIZONS_S = Float64Array.of(
  60,
  300,
  900,
  1800,
  3600,
  7200,
  4 * 3600,
  8 * 3600,
  16 * 3600,
  86_400,
  2 * 86_400,
  3 * 86_400,
);

const HORIZONS = HORIZONS_S.length;
const HORIZONS_MS = HORIZONS_S.map((s) => s * 1000);
const LONGEST_MS = 3 * 86_400_000;
const CELL_MS = 3_600_000;
const CELLS_PER_DAY = 24;
/** Fewer watched hours than this say nothing: the caller's prior is used. A quarter of a day. */
const LEAST_CELLS = 6;
/** The open list is cleared of stretches too old to matter whenever it has doubled beyond this. */
const COMPACT_ABOVE = 128;

/** Statistic over the days' shares: Proteus takes the median; the mean counts rare wild days. */
export type DayStatistic = 'median' | 'mean';

/**
 * Points of the curve that the history can answer for: `p[i]` belongs to HORIZONS_S[i]; shorter when history is short.
 */
export interface PriceLossCurve {
  readonly p: Float64Array;
  /** Days whose median the shortest horizon is. */
  readonly days: number;
}

/** A curve, and the time until which it rests on the same hours. */
interface Made {
  readonly statistic: DayStatistic;
  readonly beforeMs: number;
  readonly curve: PriceLossCurve | null;
  /** The oldest hour in it; for each horizon the newest hour, and the share of bids lost within it. */
  readonly oldest: number;
  readonly until: Float64Array;
  readonly shares: readonly number[];
}

/**
 * Survival of bids at one delta in one pool. Lives across cycles; `advance` reads new prices. Time must not go back.
 */
export class PriceSurvival {
  readonly #delta: number;
  readonly #windowMs: number;
  readonly #cellCount: number;
  /** Lost bid-time (ms) per cell and horizon; a ring over hours. */
  readonly #lostMs: Float32Array;
  #newestHour = -Infinity;
  #firstMs: number | null = null;
  #price = NaN;
  #sinceMs = NaN;
  #takenMs = -Infinity;
  /** Open stretches, price descending: the lowest is last. */
  #openPrice: number[] = [];
  #openFrom: number[] = [];
  #openTo: number[] = [];
  #compactAt = COMPACT_ABOVE;
  #last: Made | null = null;

  /** @param deltaUsd bid above the price, USD per hour, >= 0. @param windowMs how far back history counts. */
  constructor(deltaUsd: number, windowMs: number) {
    this.#delta = deltaUsd;
    this.#windowMs = windowMs;
    this.#cellCount = Math.ceil(windowMs / CELL_MS) + 2;
    this.#lostMs = new Float32Array(this.#cellCount * HORIZONS);
  }

  /** End of the history read so far, epoch ms; -Infinity: none. */
  get takenMs(): number {
    return this.#takenMs;
  }

  /** Reads the changes after the last call up to `nowMs`. `steps` may begin earlier than needed. */
  advance(steps: PriceArrays, nowMs: number): void {
    const { atMs, usdPerHour } = steps;
    let i = Math.max(0, indexAt(atMs, this.#takenMs) + 1);
    if (this.#firstMs === null && atMs.length > 0) {
      this.#firstMs = Math.max(atMs[0] ?? nowMs, nowMs - this.#windowMs);
      this.#sinceMs = this.#firstMs;
      i = Math.max(0, indexAt(atMs, this.#firstMs));
      this.#price = usdPerHour[i] ?? NaN;
      this.#roll(this.#firstMs);
      i++;
    }
    for (; i < atMs.length; i++) {
      const at = atMs[i] ?? Infinity;
      if (at > nowMs) break;
      this.#change(at, usdPerHour[i] ?? NaN);
    }
    this.#takenMs = nowMs;
    this.#roll(nowMs);
  }

  #change(at: number, price: number): void {
    if (price === this.#price) return;
    this.#roll(at);
    this.#open(this.#price, this.#sinceMs, at);
    const passed = price - this.#delta;
    while ((this.#openPrice.at(-1) ?? Infinity) < passed) {
      this.#openPrice.pop();
      this.#lose(this.#openFrom.pop() ?? at, this.#openTo.pop() ?? at, at);
    }
    this.#price = price;
    this.#sinceMs = at;
  }

  #open(price: number, from: number, to: number): void {
    if (to <= from) return;
    if (this.#openPrice.length >= this.#compactAt) this.#compact(to);
    let low = 0;
    let high = this.#openPrice.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#openPrice[middle] ?? 0) >= price) low = middle + 1;
      else high = middle;
    }
    if (low === this.#openPrice.length) {
      this.#openPrice.push(price);
      this.#openFrom.push(from);
      this.#openTo.push(to);
    } else {
      this.#openPrice.splice(low, 0, price);
      this.#openFrom.splice(low, 0, from);
      this.#openTo.splice(low, 0, to);
    }
  }

  /** Bids that outlived the longest horizon count as survivors everywhere: they need not be watched on. */
  #compact(now: number): void {
    const keep = this.#openTo.map((to) => to > now - LONGEST_MS);
    const kept = (list: number[]): number[] => list.filter((_, i) => keep[i] === true);
    this.#openPrice = kept(this.#openPrice);
    this.#openFrom = kept(this.#openFrom);
    this.#openTo = kept(this.#openTo);
    this.#compactAt = Math.max(COMPACT_ABOVE, 2 * this.#openPrice.length);
  }

  /** Bids placed in [from, to) are lost at `at`. */
  #lose(from: number, to: number, at: number): void {
    const oldest = (this.#newestHour - this.#cellCount + 1) * CELL_MS;
    const start = Math.max(from, at - LONGEST_MS, oldest);
    for (let hour = Math.floor(start / CELL_MS); hour * CELL_MS < to; hour++) {
      const low = Math.max(start, hour * CELL_MS);
      const high = Math.min(to, (hour + 1) * CELL_MS);
      const slot = (hour % this.#cellCount) * HORIZONS;
      for (let h = HORIZONS - 1; h >= 0; h--) {
        const within = high - Math.max(low, at - (HORIZONS_MS[h] ?? 0));
        if (within <= 0) break;
        this.#lostMs[slot + h] = (this.#lostMs[slot + h] ?? 0) + within;
      }
    }
  }

  /** Makes room for the hour of `t`, clearing the cells that it takes over. */
  #roll(t: number): void {
    const hour = Math.floor(t / CELL_MS);
    for (let h = Math.max(this.#newestHour + 1, hour - this.#cellCount + 1); h <= hour; h++) {
      const slot = (h % this.#cellCount) * HORIZONS;
      this.#lostMs.fill(0, slot, slot + HORIZONS);
    }
    if (hour > this.#newestHour) this.#newestHour = hour;
  }

  /**
   * The curve as of the last `advance`; null if not even the shortest horizon has LEAST_CELLS watched hours. It changes
   * when an hour becomes watched for some horizon, 12 times an hour at most, and is the same object until then, because
   * losses of watched hours are final. O(1), else O(hours x HORIZONS).
   */
  curve(statistic: DayStatistic = 'median'): PriceLossCurve | null {
    if (this.#firstMs === null) return null;
    const now = this.#takenMs;
    if (this.#last?.statistic === statistic && now < this.#last.beforeMs) return this.#last.curve;
    const oldest = Math.ceil(Math.max(this.#firstMs, now - this.#windowMs) / CELL_MS);
    const until = HORIZONS_MS.map((horizonMs) => Math.floor((now - horizonMs) / CELL_MS) - 1);
    const beforeMs = until.reduce(
      (before, hour, h) => Math.min(before, (hour + 2) * CELL_MS + (HORIZONS_MS[h] ?? 0)),
      oldest * CELL_MS + this.#windowMs,
    );
    const shares = this.#shares(statistic, oldest, until);
    const days = fullDays((until[0] ?? 0) - oldest + 1);
    const curve = shares.length === 0 ? null : { p: neverDescending(shares), days };
    this.#last = { statistic, beforeMs, curve, oldest, until, shares };
    return curve;
  }

  /** Points of the last curve on the same hours are still valid: mostly only one horizon has a new hour. */
  #shares(statistic: DayStatistic, oldest: number, until: Float64Array): readonly number[] {
    const last = this.#last?.statistic === statistic && this.#last.oldest === oldest ? this.#last : null;
    const shares: number[] = [];
    for (let h = 0; h < HORIZONS; h++) {
      const newest = until[h] ?? 0;
      const cells = newest - oldest + 1;
      if (cells < LEAST_CELLS) break;
      const known = last?.until[h] === newest ? last.shares[h] : undefined;
      shares.push(known ?? CENTRE[statistic](this.#dailyShares(newest, cells, h)));
    }
    return shares;
  }

  /**
   * Share of lost bids per full day counted back from the newest watched hour; the incomplete oldest day is dropped.
   */
  #dailyShares(newest: number, cells: number, h: number): number[] {
    const days = fullDays(cells);
    const perDay = Math.min(cells, CELLS_PER_DAY);
    const shares: number[] = [];
    for (let d = 0; d < days; d++) {
      let lost = 0;
      for (let c = 0; c < perDay; c++) {
        lost += this.#lostMs[((newest - d * perDay - c) % this.#cellCount) * HORIZONS + h] ?? 0;
      }
      shares.push(lost / (perDay * CELL_MS));
    }
    return shares;
  }
}

const fullDays = (cells: number): number => Math.max(1, Math.floor(cells / CELLS_PER_DAY));

/** A curve never descends, although longer horizons have fewer days, which may have been calmer. */
function neverDescending(shares: readonly number[]): Float64Array {
  let soFar = 0;
  return Float64Array.from(shares, (share) => Math.min(1, (soFar = Math.max(soFar, share))));
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function median(values: number[]): number {
  values.sort((a, b) => a - b);
  const middle = values.length >> 1;
  const upper = values[middle] ?? 0;
  return values.length % 2 === 1 ? upper : ((values[middle - 1] ?? 0) + upper) / 2;
}

const CENTRE: Readonly<Record<DayStatistic, (values: number[]) => number>> = { median, mean };

/**
 * Rungs per factor of ten of the ladder that deltas are rounded down to: 33 % apart, so 1e-4, 1e-3, 0.01, 0.1 are
 * rungs.
 */
const RUNGS_PER_DECADE = 8;
/** Tributary 2.2.3 bids from 0.0001 USD above the price; lower deltas count as none. */
const LOWEST_DELTA = 1e-4;

/** Rung at or below a delta (so that its curve errs on the side of more interruptions); -1 stands for a delta of 0. */
export function deltaRung(deltaUsd: number): number {
  if (!(deltaUsd >= LOWEST_DELTA * (1 - 1e-6))) return -1;
  return Math.floor(Math.log10(deltaUsd / LOWEST_DELTA) * RUNGS_PER_DECADE + 1e-6);
}

/** Bid above the price that a rung stands for, USD per hour. */
export const rungDelta = (rung: number): number => (rung < 0 ? 0 : LOWEST_DELTA * 10 ** (rung / RUNGS_PER_DECADE));
