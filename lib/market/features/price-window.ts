/**
 * Statistics of the last week of one pool's prices, updated with each price.
 * Lifecycle: `take` each price as it is published, `advance` to an instant, then ask. Time goes forward only; a caller
 * that goes back (another market, a simulator's next run) makes a new window and feeds the history again. Nothing older
 * than KEPT_MS affects an answer, so a window fed with the last WARM_UP_MS answers as one fed with all.
 * Complexity: `take` and `advance` are O(1) amortised over the prices (each is pushed and dropped once, from the list
 * and from both stacks) plus at most HOURS_KEPT steps after a silence; answers are O(1), except extremes and last
 * crossings, which are O(log n) in the stack, and the share of calm hours, O(HOURS_KEPT).
 */

const HOUR_MS = 3_600_000;
/** A week: it holds the rhythm of working days, and the empirical forecast uses as much. */
export const HOURS_KEPT = 168;
export const KEPT_MS = HOURS_KEPT * HOUR_MS;
/** History for a new window: the kept week, and the full hour in which it begins. */
export const WARM_UP_MS = KEPT_MS + HOUR_MS;
/** Dropped entries that are put up with before the lists are moved together. */
const COMPACT_ABOVE = 256;

/** Result of a price; only `taken` and `unchanged` change anything. */
export type Taken =
  /** A new price. */
  | 'taken'
  /** The price in force, seen again. */
  | 'unchanged'
  /** NaN, an infinity or below zero. */
  | 'not-a-price'
  /** EC2 has no free capacity: a zero is a fault of who reports it. */
  | 'zero'
  /** Earlier than the last price or question. */
  | 'clock-back';

/** Time of the past week over which an answer is given; the ones that the features use. */
export const WINDOWS_MS = [2, 10, 30, 60, 24 * 60, 7 * 24 * 60].map((minutes) => minutes * 60_000);
/** Positions in WINDOWS_MS. */
export const WINDOW = { m2: 0, m10: 1, m30: 2, h1: 3, h24: 4, d7: 5 } as const;
export type Window = (typeof WINDOW)[keyof typeof WINDOW];

export class PriceWindow {
  /** Prices in the order of time; position = index - #dropped. Indices count from the first price ever. */
  #atMs: number[] = [];
  #usd: number[] = [];
  /** Integral of the price up to the change, USD x ms, from a zero that moves with compaction. */
  #integral: number[] = [];
  #dropped = 0;
  /** Index of the oldest price in force within KEPT_MS. */
  #head = 0;
  #nowMs = -Infinity;
  #seenMs = -Infinity;
  /** Per window: index of the first price that began after the window did. */
  readonly #firstAfter = WINDOWS_MS.map(() => 0);
  /** Prices that none after them reaches, as indices: prices descend strictly. And those that none after falls to. */
  readonly #maxima = new MonotoneStack((a, b) => a <= b);
  readonly #minima = new MonotoneStack((a, b) => a >= b);
  readonly #hours = new HourlyRises();

  /** The instant of the last `advance` or price, ms since the epoch; -Infinity before any. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Time of the last report, changed or not; -Infinity: none. */
  get seenMs(): number {
    return this.#seenMs;
  }

  /** Prices kept, the one in force included. */
  get count(): number {
    return this.#end - this.#head;
  }

  /** The price in force, USD per hour; NaN before any. */
  get usd(): number {
    return this.#usd.at(-1) ?? NaN;
  }

  take(atMs: number, usd: number): Taken {
    if (!Number.isFinite(usd) || usd < 0 || !Number.isFinite(atMs)) return 'not-a-price';
    if (usd === 0) return 'zero';
    if (atMs < this.#nowMs || (atMs <= this.#seenMs && usd !== this.usd)) return 'clock-back';
    this.#seenMs = atMs;
    if (usd === this.usd) {
      this.advance(atMs);
      return 'unchanged';
    }
    this.#hours.reach(atMs, this.usd);
    this.#hours.take(atMs, usd);
    this.#integral.push(this.count === 0 ? 0 : this.#integralAt(this.#end - 1, atMs));
    this.#atMs.push(atMs);
    this.#usd.push(usd);
    this.#maxima.push(this.#end - 1, usd);
    this.#minima.push(this.#end - 1, usd);
    this.#reach(atMs);
    return 'taken';
  }

  /** Notes that the price in force holds at an instant, without a report. */
  holds(atMs: number): void {
    if (this.count > 0 && atMs > this.#seenMs) this.#seenMs = atMs;
  }

  /** Moves to `nowMs`. False, and nothing happens, when that lies before the last instant. */
  advance(nowMs: number): boolean {
    if (!(nowMs >= this.#nowMs)) return false;
    if (this.count > 0) this.#hours.reach(nowMs, this.usd);
    this.#reach(nowMs);
    return true;
  }

  /** Age of the price in force, ms. Like all answers below it needs a price. */
  sinceChangeMs(): number {
    return this.#nowMs - this.#at(this.#end - 1);
  }

  /** Length of the known history, ms; at most KEPT_MS. */
  knownMs(): number {
    return Math.min(KEPT_MS, this.#nowMs - this.#at(this.#head));
  }

  /** Changes of the price in (now - window, now]; the first price of all is none. */
  changes(window: Window): number {
    return this.#end - Math.max(this.#firstAfter[window] ?? 0, 1);
  }

  /** Time-weighted mean of the window, or of its known part, USD per hour. */
  mean(window: Window): number {
    const from = Math.max(this.#nowMs - (WINDOWS_MS[window] ?? 0), this.#at(this.#head));
    if (from >= this.#nowMs) return this.usd;
    const until = this.#integralAt(this.#end - 1, this.#nowMs);
    return (until - this.#integralAt(this.#inForceFrom(window), from)) / (this.#nowMs - from);
  }

  /** Highest price in force within the window, USD per hour. */
  max(window: Window): number {
    return this.#price(this.#maxima.firstFrom(this.#inForceFrom(window)));
  }

  min(window: Window): number {
    return this.#price(this.#minima.firstFrom(this.#inForceFrom(window)));
  }

  /** Time since the price was last above `usd`, ms: 0 if it is now, `knownMs` if it never was. */
  sinceAboveMs(usd: number): number {
    const last = this.#maxima.lastAbove(usd, (index) => this.#price(index));
    if (last === null) return this.knownMs();
    return last === this.#end - 1 ? 0 : Math.min(KEPT_MS, this.#nowMs - this.#at(last + 1));
  }

  /**
   * Full hours of the last `hours` in which the price rose by at most `deltaUsd` above its level at their beginning.
   */
  calmHours(deltaUsd: number, hours: number): { readonly calm: number; readonly known: number } {
    return this.#hours.calm(deltaUsd, hours);
  }

  /** The `back`-th price before the one in force (0: that one) with its age; the oldest kept if there are fewer. */
  recent(back: number): { readonly usd: number; readonly ageMs: number } {
    const index = Math.max(this.#head, this.#end - 1 - back);
    return { usd: this.#price(index), ageMs: Math.min(KEPT_MS, this.#nowMs - this.#at(index)) };
  }

  get #end(): number {
    return this.#dropped + this.#atMs.length;
  }

  #at(index: number): number {
    return this.#atMs[index - this.#dropped] ?? NaN;
  }

  #price(index: number): number {
    return this.#usd[index - this.#dropped] ?? NaN;
  }

  #integralAt(index: number, atMs: number): number {
    return (this.#integral[index - this.#dropped] ?? NaN) + this.#price(index) * (atMs - this.#at(index));
  }

  /** Index of the price in force when the window began; the oldest where history begins within it. */
  #inForceFrom(window: Window): number {
    return Math.max(this.#head, (this.#firstAfter[window] ?? 0) - 1);
  }

  #reach(nowMs: number): void {
    this.#nowMs = nowMs;
    WINDOWS_MS.forEach((ms, w) => {
      let first = this.#firstAfter[w] ?? 0;
      while (first < this.#end && this.#at(first) <= nowMs - ms) first++;
      this.#firstAfter[w] = first;
    });
    this.#head = this.#inForceFrom(WINDOW.d7);
    this.#maxima.dropBefore(this.#head);
    this.#minima.dropBefore(this.#head);
    if (this.#head - this.#dropped > Math.max(COMPACT_ABOVE, this.count)) this.#compact();
  }

  #compact(): void {
    const gone = this.#head - this.#dropped;
    const zero = this.#integral[gone] ?? 0;
    this.#atMs = this.#atMs.slice(gone);
    this.#usd = this.#usd.slice(gone);
    // Sums restart near zero, so that years of sums do not eat the digits of minutes.
    this.#integral = this.#integral.slice(gone).map((sum) => sum - zero);
    this.#dropped = this.#head;
  }
}

/** Indices, ascending, with strictly monotone values: indices that a new value makes irrelevant are popped. */
class MonotoneStack {
  readonly #beats: (old: number, fresh: number) => boolean;
  #indices: number[] = [];
  #values: number[] = [];
  #head = 0;

  /** @param beats whether a fresh value makes an older one irrelevant. */
  constructor(beats: (old: number, fresh: number) => boolean) {
    this.#beats = beats;
  }

  push(index: number, value: number): void {
    while (this.#indices.length > this.#head && this.#beats(this.#values.at(-1) ?? NaN, value)) {
      this.#indices.pop();
      this.#values.pop();
    }
    this.#indices.push(index);
    this.#values.push(value);
  }

  dropBefore(index: number): void {
    while ((this.#indices[this.#head] ?? Infinity) < index) this.#head++;
    if (this.#head <= COMPACT_ABOVE) return;
    this.#indices = this.#indices.slice(this.#head);
    this.#values = this.#values.slice(this.#head);
    this.#head = 0;
  }

  /** The first index that is not before `index`: the extreme of all from there on. */
  firstFrom(index: number): number {
    const at = this.#partition((i) => (this.#indices[i] ?? Infinity) >= index);
    return this.#indices[at] ?? NaN;
  }

  /** Last index with a value above `usd`; values descend. Null: none. */
  lastAbove(usd: number, valueOf: (index: number) => number): number | null {
    const at = this.#partition((i) => valueOf(this.#indices[i] ?? NaN) <= usd) - 1;
    return at < this.#head ? null : (this.#indices[at] ?? null);
  }

  /** First position from the head with `holds`; it holds for all after it. */
  #partition(holds: (position: number) => boolean): number {
    let low = this.#head;
    let high = this.#indices.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Rise of the price above its level at the beginning, per full hour of the clock (UTC). A ring. */
class HourlyRises {
  readonly #rises = new Float64Array(HOURS_KEPT);
  #hour = NaN;
  /** The first hour that was seen from its beginning. */
  #firstHour = NaN;
  #openUsd = NaN;
  #highUsd = NaN;

  /** Moves to the hour of `nowMs`, at the price in force (NaN before any). */
  reach(nowMs: number, usd: number): void {
    const hour = Math.floor(nowMs / HOUR_MS);
    if (Number.isNaN(usd)) {
      // The first price of all: its hour counts only if it begins with it.
      this.#hour = hour;
      this.#firstHour = nowMs === hour * HOUR_MS ? hour : hour + 1;
      return;
    }
    if (hour === this.#hour) return;
    this.#rises[this.#hour % HOURS_KEPT] = this.#highUsd - this.#openUsd;
    for (let h = Math.max(this.#hour + 1, hour - HOURS_KEPT); h < hour; h++) this.#rises[h % HOURS_KEPT] = 0;
    this.#hour = hour;
    this.#openUsd = this.#highUsd = usd;
  }

  /** A price of the hour that was reached; the one that the hour begins with takes the place of the one before. */
  take(atMs: number, usd: number): void {
    if (atMs === this.#hour * HOUR_MS || Number.isNaN(this.#openUsd)) this.#openUsd = this.#highUsd = usd;
    else if (usd > this.#highUsd) this.#highUsd = usd;
  }

  calm(deltaUsd: number, hours: number): { calm: number; known: number } {
    const from = Math.max(this.#hour - Math.min(hours, HOURS_KEPT), this.#firstHour);
    let calm = 0;
    for (let h = from; h < this.#hour; h++) if ((this.#rises[h % HOURS_KEPT] ?? 0) <= deltaUsd) calm++;
    return { calm, known: Math.max(0, this.#hour - from) };
  }
}
