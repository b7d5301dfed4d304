/**
 * The latest runs of each feature-value, one slot each, in bounded memory: logarithms of seconds in a ring and in
 * ascending order, and how often each estimator was within a factor of two. Adding is O(RUNS), reading O(1).
 */
import { Doubles, type Distribution } from '../../domain/distribution.ts';
import { Smoother } from './smoothing.ts';

/** Runs kept. Fewer cost accuracy (20: 0.1 points within 2x on the first half of the Google trace), more gain none. */
export const RUNS = 32;
/** Weight of a run relative to the one after it. */
const RECENCY = 0.95;
/** The same for the estimator `last`, whose distribution is about the last run. */
const RECENCY_OF_LAST = 0.5;

/**
 * `centre`: of the window of a factor of four with the most recency-weighted runs, for a prediction within a factor of
 * two of as many as can be. `last`: the last run.
 */
export const PICKS = ['centre', 'last'] as const;
export const PICK_COUNT = PICKS.length;

/** JamaisVu section 6.2: between half and twice the truth. */
const FACTOR = Math.LN2;
export const isHit = (predicted: number, logS: number): boolean => Math.abs(predicted - logS) <= FACTOR + 1e-9;

/** Weight of a past prediction relative to the one after it, in the hit rate and in the error. */
export const HIT_DECAY = 0.9;
/** A factor of four: whatever misses by more misses. */
const MOST_ERROR = 2 * FACTOR;
export const cappedError = (predicted: number, logS: number): number =>
  Math.min(MOST_ERROR, Math.abs(predicted - logS));

// Layout of a slot, in doubles.
const N = 0;
const JUDGED = 1;
const ERROR = 2;
const HITS = 3;
const CENTRE = HITS + PICK_COUNT;
const RING = CENTRE + 1;
const STRIDE = RING + RUNS;

/** Logarithms are kept to a hundredth of a percent: stored rows are short, and restored ones the same. */
const kept = (logS: number): number => Math.round(logS * 1e4) / 1e4;

const weights = (recency: number): Float64Array => Float64Array.from({ length: RUNS }, (_, age) => recency ** age);
const BY_AGE: readonly Float64Array[] = PICKS.map((pick) => weights(pick === 'last' ? RECENCY_OF_LAST : RECENCY));
const WEIGHT = weights(RECENCY);

/** State of one feature-value, as plain data. */
export interface RecentState {
  /** Runs ever. */
  readonly n: number;
  /** Decayed number of judged predictions, sum of the errors of the centre, and hits of each pick. */
  readonly judged: number;
  readonly error: number;
  readonly hits: readonly number[];
  /** Logarithms of seconds, oldest first, at most RUNS. */
  readonly runs: readonly number[];
}

export class RecentRuns {
  #slots = new Float64Array(0);
  /** Places in the ring, by ascending value. */
  #order = new Uint8Array(0);
  readonly #smoother = new Smoother(new Doubles());
  readonly #sorted = { logS: new Float64Array(RUNS), weight: new Float64Array(RUNS), count: 0 };

  /** Makes room for slots 0 .. count-1. New ones are empty. */
  reserve(count: number): void {
    const slots = new Float64Array(count * STRIDE);
    slots.set(this.#slots);
    const order = new Uint8Array(count * RUNS);
    order.set(this.#order);
    this.#slots = slots;
    this.#order = order;
  }

  clear(slot: number): void {
    this.#slots.fill(0, slot * STRIDE, (slot + 1) * STRIDE);
  }

  /** Runs ever. */
  count(slot: number): number {
    return this.#slots[slot * STRIDE + N] as number;
  }

  judged(slot: number): number {
    return this.#slots[slot * STRIDE + JUDGED] as number;
  }

  hits(slot: number, pick: number): number {
    return this.#slots[slot * STRIDE + HITS + pick] as number;
  }

  /** Decayed sum of the errors of the centre, as logarithms, each at most MOST_ERROR. */
  error(slot: number): number {
    return this.#slots[slot * STRIDE + ERROR] as number;
  }

  /** Next prediction of a pick, as logarithm. */
  prediction(slot: number, pick: number): number {
    const o = slot * STRIDE;
    if (pick === 0) return this.#slots[o + CENTRE] as number;
    return this.#slots[o + RING + (((this.#slots[o + N] as number) - 1) % RUNS)] as number;
  }

  /** Judges both predictions by a run, then adds it. */
  add(slot: number, exactLogS: number): void {
    const logS = kept(exactLogS);
    const f = this.#slots;
    const o = slot * STRIDE;
    const n = f[o + N] as number;
    if (n > 0) {
      f[o + JUDGED] = (f[o + JUDGED] as number) * HIT_DECAY + 1;
      f[o + ERROR] = (f[o + ERROR] as number) * HIT_DECAY + cappedError(this.prediction(slot, 0), logS);
      for (let pick = 0; pick < PICK_COUNT; pick++) {
        const hit = isHit(this.prediction(slot, pick), logS) ? 1 : 0;
        f[o + HITS + pick] = (f[o + HITS + pick] as number) * HIT_DECAY + hit;
      }
    }
    this.#insert(slot, (n >>> 0) % RUNS, logS);
    f[o + N] = n + 1;
    f[o + CENTRE] = this.#centre(slot);
  }

  /** Puts a value into a place of the ring, and the place where it belongs in the order. */
  #insert(slot: number, place: number, logS: number): void {
    const f = this.#slots;
    const ring = slot * STRIDE + RING;
    const order = this.#order;
    const first = slot * RUNS;
    const n = f[slot * STRIDE + N] as number;
    let end = first + Math.min(n, RUNS);
    if (n >= RUNS) {
      let at = first;
      while (order[at] !== place) at++;
      for (end--; at < end; at++) order[at] = order[at + 1] as number;
    }
    f[ring + place] = logS;
    let at = end;
    for (; at > first && (f[ring + (order[at - 1] as number)] as number) > logS; at--) {
      order[at] = order[at - 1] as number;
    }
    order[at] = place;
  }

  /** Centre of the window of a factor of four with the most recency-weighted runs; of equal ones the shortest. */
  #centre(slot: number): number {
    const f = this.#slots;
    const ring = slot * STRIDE + RING;
    const first = slot * RUNS;
    const n = f[slot * STRIDE + N] as number;
    const end = first + Math.min(n, RUNS);
    const newest = ((n - 1) >>> 0) % RUNS;
    let low = first;
    let inside = 0;
    let best = 0;
    let centre = 0;
    for (let high = first; high < end; high++) {
      const place = this.#order[high] as number;
      const top = f[ring + place] as number;
      inside += WEIGHT[(newest - place + RUNS) % RUNS] as number;
      for (;;) {
        const lowest = this.#order[low] as number;
        const bottom = f[ring + lowest] as number;
        if (top - bottom <= 2 * FACTOR) {
          if (inside > best + 1e-9) {
            best = inside;
            centre = (top + bottom) / 2;
          }
          break;
        }
        inside -= WEIGHT[(newest - lowest + RUNS) % RUNS] as number;
        low++;
      }
    }
    return centre;
  }

  /** Distribution of the next run, times exp(`offset`), with the pick's weights by age. */
  distribution(slot: number, pick: number, offset: number): Distribution {
    const f = this.#slots;
    const n = f[slot * STRIDE + N] as number;
    const ring = slot * STRIDE + RING;
    const byAge = BY_AGE[pick] as Float64Array;
    const newest = ((n - 1) >>> 0) % RUNS;
    const sorted = this.#sorted;
    sorted.count = Math.min(n, RUNS);
    for (let i = 0; i < sorted.count; i++) {
      const place = this.#order[slot * RUNS + i] as number;
      sorted.logS[i] = f[ring + place] as number;
      sorted.weight[i] = byAge[(newest - place + RUNS) % RUNS] as number;
    }
    return this.#smoother.of(sorted, offset);
  }

  read(slot: number): RecentState {
    const o = slot * STRIDE;
    const f = this.#slots;
    const n = f[o + N] as number;
    const count = Math.min(n, RUNS);
    return {
      n,
      judged: f[o + JUDGED] as number,
      error: f[o + ERROR] as number,
      hits: [...f.subarray(o + HITS, o + HITS + PICK_COUNT)],
      runs: Array.from({ length: count }, (_, i) => f[o + RING + ((n - count + i) % RUNS)] as number),
    };
  }

  /** Replaces the slot's content. */
  write(slot: number, { n, judged, error, hits, runs }: RecentState): void {
    this.clear(slot);
    const o = slot * STRIDE;
    const f = this.#slots;
    // Runs keep their places in the ring, which follow from the number of runs.
    for (let i = 0; i < runs.length; i++) {
      f[o + N] = i;
      this.#insert(slot, (n - runs.length + i) % RUNS, runs[i] as number);
    }
    f[o + N] = n;
    f[o + JUDGED] = judged;
    f[o + ERROR] = error;
    f.set(hits, o + HITS);
    f[o + CENTRE] = this.#centre(slot);
  }
}
