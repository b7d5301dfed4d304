/**
 * The cheapest strategy of one task when everything is known in advance: spot, non-interruptible capacity, or nothing,
 * slot by slot until the deadline, by dynamic programming over time, work left and where the task is.
 *   V(i, w, m)  least USD from the beginning of slot i with w units of work left, on m in {nowhere, spot, non-interruptible}
 *   V(i, w, m) = min( V(i+1, w, nowhere),
 *                     rate(a, i) + V(i+1, w + [m != a] c - slot, a) for a in {spot that lasts the slot, non-interruptible} )
 *   V(end, w, m) = 0 for w = 0, else LATE times the price of what is left, of a changeover too if m = nowhere:
 *                  late work begins at once
 * with c the changeover: start-up and set-up are run like work. The last slot is paid as far as it is needed. Time is
 * in SLOTS slots, work in PARTS units of a slot: an upper bound of the optimum that is within rounding of it (one unit
 * for each changeover, one slot for each end of a spot stretch). O(SLOTS x units of work) = O(SLOTS^2 x PARTS) time and
 * memory, once per task: some 3 million states, tens of milliseconds, 25 MB; a question costs O(1).
 */
export type On = 'nowhere' | 'spot' | 'non-interruptible';

export interface OfflineTask {
  readonly fromS: number;
  readonly deadlineS: number;
  /** Most work that will ever be asked about, s. */
  readonly workS: number;
  readonly changeoverS: number;
  /** USD per second on non-interruptible capacity; null: none. */
  readonly nonInterruptibleUsdPerS: number | null;
  /** USD per second on the cheapest spot capacity that lasts over this time; null: none. */
  readonly spotUsdPerS: (fromS: number, untilS: number) => number | null;
}

const SLOTS = 480;
const PARTS = 4;
const LEAST_SLOT_S = 30;
/** Late work is this much dearer than work: lateness is never chosen. */
const LATE = 1000;
const PLACES: readonly On[] = ['nowhere', 'spot', 'non-interruptible'];

export class OfflineStrategy {
  readonly #task: OfflineTask;
  readonly #slotS: number;
  readonly #unitS: number;
  readonly #slots: number;
  readonly #units: number;
  readonly #changeover: number;
  readonly #rates: { readonly spot: Float64Array; readonly nonInterruptible: number };
  /** Indexed by slot, then place, then units left. */
  readonly #value: Float64Array;

  constructor(task: OfflineTask) {
    this.#task = task;
    const windowS = Math.max(0, task.deadlineS - task.fromS);
    this.#slotS = Math.max(LEAST_SLOT_S, windowS / SLOTS);
    this.#unitS = this.#slotS / PARTS;
    this.#slots = Math.max(0, Math.floor(windowS / this.#slotS + 1e-9) - 1);
    this.#changeover = Math.ceil(task.changeoverS / this.#unitS - 1e-9);
    // More work than the window holds is late in any case.
    const most = Math.max(task.workS, windowS) + 2 * task.changeoverS;
    this.#units = Math.ceil(most / this.#unitS) + 2;
    this.#rates = {
      nonInterruptible: (task.nonInterruptibleUsdPerS ?? Infinity) * this.#unitS,
      spot: Float64Array.from({ length: this.#slots }, (_, i) => {
        const at = task.fromS + i * this.#slotS;
        return (task.spotUsdPerS(at, at + this.#slotS) ?? Infinity) * this.#unitS;
      }),
    };
    this.#value = this.#solved();
  }

  /**
   * Best place now with `leftS` of work left, including the remaining set-up of a running attempt. Within a slot the
   * answer is that of its beginning, so that it does not change from one question to the next; the window is a slot
   * shorter than the task's for that. After it running work stays, and waiting work takes non-interruptible capacity,
   * if there is some. Ties: spot, then waiting.
   */
  best(atS: number, leftS: number, on: On): On {
    if (atS >= this.#endS) return on === 'nowhere' ? this.#late : on;
    const slot = Math.min(this.#slots - 1, Math.floor(Math.max(0, atS - this.#task.fromS) / this.#slotS));
    const left = Math.ceil(leftS / this.#unitS - 1e-9);
    const spot = this.#cost(slot, left, { from: on, to: 'spot' });
    const wait = this.#cost(slot, left, { from: on, to: 'nowhere' });
    const nonInterruptible = this.#cost(slot, left, { from: on, to: 'non-interruptible' });
    // On-demand work may be done later at the same price: equal strategies differ by rounding alone.
    const equal = 1e-9 * Math.max(1e-6, Math.abs(Math.min(wait, nonInterruptible)));
    if (spot <= wait + equal && spot <= nonInterruptible + equal && spot < Infinity) return 'spot';
    if (on === 'non-interruptible') return wait < nonInterruptible - equal ? 'nowhere' : 'non-interruptible';
    return wait <= nonInterruptible + equal ? 'nowhere' : 'non-interruptible';
  }

  get #endS(): number {
    return this.#task.fromS + Math.max(1, this.#slots) * this.#slotS;
  }

  get #late(): On {
    return this.#task.nonInterruptibleUsdPerS === null ? 'spot' : 'non-interruptible';
  }

  get bytes(): number {
    return this.#value.byteLength;
  }

  /** Least USD from the beginning of the window. */
  leastUsd(leftS: number): number {
    return this.#at(0, Math.ceil(leftS / this.#unitS - 1e-9), 'nowhere');
  }

  #solved(): Float64Array {
    const row = this.#units * PLACES.length;
    const value = new Float64Array((this.#slots + 1) * row);
    const lateUsd = LATE * (Number.isFinite(this.#rates.nonInterruptible) ? this.#rates.nonInterruptible : 1);
    for (let p = 0; p < PLACES.length; p++) {
      const still = PLACES[p] === 'nowhere' ? this.#changeover : 0;
      for (let w = 1; w < this.#units; w++) value[this.#slots * row + p * this.#units + w] = (w + still) * lateUsd;
    }
    const units = this.#units;
    const after = (slot: number, place: number): Float64Array =>
      value.subarray((slot + 1) * row + place * units, (slot + 1) * row + (place + 1) * units);
    for (let i = this.#slots - 1; i >= 0; i--) {
      const waiting = after(i, 0);
      const spot = { rate: this.#rates.spot[i] ?? Infinity, next: after(i, 1) };
      const nonInterruptible = { rate: this.#rates.nonInterruptible, next: after(i, 2) };
      for (let p = 0; p < PLACES.length; p++) {
        const best = value.subarray(i * row + p * units, i * row + (p + 1) * units);
        best.set(waiting);
        best[0] = 0;
        // Flat loops over one place each, instead of millions of calls of `#run`.
        improve(best, spot, p === 1 ? 0 : this.#changeover);
        improve(best, nonInterruptible, p === 2 ? 0 : this.#changeover);
      }
    }
    return value;
  }

  #step(value: Float64Array, slot: number, w: number, place: number): number {
    const capped = Math.min(this.#units - 1, Math.max(0, w));
    return value[((slot + 1) * PLACES.length + place) * this.#units + capped] ?? 0;
  }

  #run(
    value: Float64Array,
    slot: number,
    w: number,
    how: { readonly rate: number; readonly to: number; readonly same: boolean },
  ): number {
    if (how.rate === Infinity) return Infinity;
    const work = how.same ? w : w + this.#changeover;
    return how.rate * Math.min(PARTS, work) + this.#step(value, slot, work - PARTS, how.to);
  }

  #cost(slot: number, w: number, { from, to }: { readonly from: On; readonly to: On }): number {
    if (slot < 0) return to === 'non-interruptible' ? 0 : Infinity;
    if (to === 'nowhere') return this.#step(this.#value, slot, w, 0);
    const rate = to === 'spot' ? (this.#rates.spot[slot] ?? Infinity) : this.#rates.nonInterruptible;
    return this.#run(this.#value, slot, w, { rate, to: to === 'spot' ? 1 : 2, same: from === to });
  }

  #at(slot: number, w: number, on: On): number {
    if (w <= 0) return 0;
    return this.#value[(slot * PLACES.length + PLACES.indexOf(on)) * this.#units + Math.min(w, this.#units - 1)] ?? 0;
  }
}

/** One slot of running at a place: V(w) = min(V(w), rate min(PARTS, w + c) + next(w + c - PARTS)). */
function improve(
  best: Float64Array,
  there: { readonly rate: number; readonly next: Float64Array },
  changeover: number,
): void {
  const { rate, next } = there;
  if (rate === Infinity) return;
  const last = best.length - 1;
  for (let w = 1; w <= last; w++) {
    const work = w + changeover;
    const left = work <= PARTS ? 0 : work - PARTS > last ? last : work - PARTS;
    const usd = rate * (work < PARTS ? work : PARTS) + (next[left] ?? 0);
    if (usd < (best[w] ?? 0)) best[w] = usd;
  }
}
