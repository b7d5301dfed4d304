/**
 * The cheapest strategy of one task when everything is known in advance: one of a few spot pools, non-interruptible
 * capacity, or nothing, slot by slot until the deadline, by dynamic programming over time, work left and where the task
 * is.
 *   V(i, w, m)  least USD from the beginning of slot i with w units of work left, on m in {nowhere, non-interruptible,
 *               spot pools}
 *   S(i, w)    = min( V(i+1, w, nowhere), rate(a, i) + V(i+1, w + c - slot, a) for every a that lasts the slot )
 *   V(i, w, m) = min( S(i, w), rate(m, i) + V(i+1, w - slot, m) )
 *   V(end, w, m) = 0 for w = 0, else LATE times the price of what is left, of a changeover too if m = nowhere:
 *                  late work begins at once
 * with c the changeover: start-up and set-up are run like work, also between two spot pools. The last slot is paid as
 * far as it is needed. Time is in SLOTS slots, work in PARTS units of a slot: an upper bound of the optimum that is
 * within rounding of it (one unit for each changeover, one slot for each end of a spot stretch). O(SLOTS x units of
 * work x pools) = O(SLOTS^2 x PARTS x pools) time and memory, once per task: some 900,000 states for each place, tens
 * of milliseconds, 7 MB; a question costs O(pools).
 */
/** A number: the spot pool at that position of `OfflineTask.spots`. */
export type On = 'nowhere' | 'non-interruptible' | number;

/** USD per second on a spot pool over this time; null: it is not to be had, or does not last. */
export type SpotUsdPerS = (fromS: number, untilS: number) => number | null;

/** A purchase for work that still waits. */
export interface Begun {
  /** Position of its spot pool. */
  readonly pool: number;
  readonly elapsedS: number;
}

export interface OfflineTask {
  readonly fromS: number;
  readonly deadlineS: number;
  /** Most work that will ever be asked about, s. */
  readonly workS: number;
  readonly changeoverS: number;
  /** USD per second on non-interruptible capacity; null: none. */
  readonly nonInterruptibleUsdPerS: number | null;
  readonly spots: readonly SpotUsdPerS[];
}

const SLOTS = 480;
const PARTS = 4;
const LEAST_SLOT_S = 30;
/** Late work is this much dearer than work: lateness is never chosen. */
const LATE = 1000;
/** Places in tables: nowhere, non-interruptible, then the spot pools. */
const FIRST_SPOT = 2;
const placeOf = (on: On): number => (on === 'nowhere' ? 0 : on === 'non-interruptible' ? 1 : FIRST_SPOT + on);

/** Slot length for a window, and how many there are: the window is a slot shorter for answers that hold a slot long. */
const gridOf = (windowS: number): { readonly slotS: number; readonly slots: number } => {
  const slotS = Math.max(LEAST_SLOT_S, windowS / SLOTS);
  return { slotS, slots: Math.max(0, Math.floor(windowS / slotS + 1e-9) - 1) };
};

export class OfflineStrategy {
  readonly #task: OfflineTask;
  readonly #slotS: number;
  readonly #unitS: number;
  readonly #slots: number;
  readonly #units: number;
  readonly #changeover: number;
  /** USD per unit by place, then by slot; Infinity: not to be had. */
  readonly #rates: readonly Float64Array[];
  /** Indexed by slot, then place, then units left. */
  readonly #value: Float64Array;

  constructor(task: OfflineTask) {
    this.#task = task;
    const windowS = Math.max(0, task.deadlineS - task.fromS);
    const { slotS, slots } = gridOf(windowS);
    this.#slotS = slotS;
    this.#unitS = slotS / PARTS;
    this.#slots = slots;
    this.#changeover = Math.ceil(task.changeoverS / this.#unitS - 1e-9);
    // More work than the window holds is late in any case.
    const most = Math.max(task.workS, windowS) + 2 * task.changeoverS;
    this.#units = Math.ceil(most / this.#unitS) + 2;
    const row = (of: (fromS: number, untilS: number) => number | null): Float64Array =>
      Float64Array.from({ length: slots }, (_, i) => {
        const at = task.fromS + i * slotS;
        return (of(at, at + slotS) ?? Infinity) * this.#unitS;
      });
    this.#rates = [new Float64Array(slots), row(() => task.nonInterruptibleUsdPerS), ...task.spots.map(row)];
    this.#value = this.#solved();
  }

  /**
   * Best place now with `leftS` of work left, including the remaining set-up of a running attempt. Within a slot the
   * answer is that of its beginning, so that it does not change from one question to the next; the window is a slot
   * shorter than the task's for that. After it running work stays, and waiting work takes what was bought for it, else
   * non-interruptible capacity if there is some. Ties: spot, then waiting. `begun`: what was bought for waiting work
   * has that much of its changeover behind it.
   */
  best(atS: number, leftS: number, on: On, begun: Begun | null = null): On {
    if (atS >= this.#endS) return on === 'nowhere' ? (begun?.pool ?? this.#late) : on;
    const slot = Math.min(this.#slots - 1, Math.floor(Math.max(0, atS - this.#task.fromS) / this.#slotS));
    const left = Math.ceil(leftS / this.#unitS - 1e-9);
    const spots = this.#task.spots.map((_, pool) => ({ pool, usd: this.#cost(slot, left, { from: on, to: pool }) }));
    if (begun !== null) spots.push({ pool: begun.pool, usd: this.#begunUsd(slot, leftS, begun) });
    // A task stays where it is if no other pool is cheaper.
    const spot = spots.reduce((a, b) => (b.usd < a.usd || (b.usd === a.usd && b.pool === on) ? b : a), {
      pool: 0,
      usd: Infinity,
    });
    const wait = this.#cost(slot, left, { from: on, to: 'nowhere' });
    const nonInterruptible = this.#cost(slot, left, { from: on, to: 'non-interruptible' });
    // On-demand work may be done later at the same price: equal strategies differ by rounding alone.
    const equal = 1e-9 * Math.max(1e-6, Math.abs(Math.min(wait, nonInterruptible)));
    if (spot.usd <= wait + equal && spot.usd <= nonInterruptible + equal && spot.usd < Infinity) return spot.pool;
    if (on === 'non-interruptible') return wait < nonInterruptible - equal ? 'nowhere' : 'non-interruptible';
    return wait <= nonInterruptible + equal ? 'nowhere' : 'non-interruptible';
  }

  #begunUsd(slot: number, leftS: number, { pool, elapsedS }: Begun): number {
    const stillS = Math.max(0, this.#task.changeoverS - elapsedS);
    return this.#cost(slot, Math.ceil((leftS + stillS) / this.#unitS - 1e-9), { from: pool, to: pool });
  }

  get #endS(): number {
    return this.#task.fromS + Math.max(1, this.#slots) * this.#slotS;
  }

  get #late(): On {
    return this.#task.nonInterruptibleUsdPerS === null ? 0 : 'non-interruptible';
  }

  get bytes(): number {
    return this.#value.byteLength;
  }

  /** Least USD from the beginning of the window. */
  leastUsd(leftS: number): number {
    const left = Math.ceil(leftS / this.#unitS - 1e-9);
    return left <= 0 ? 0 : (this.#value[Math.min(left, this.#units - 1)] ?? 0);
  }

  #solved(): Float64Array {
    const [units, places] = [this.#units, this.#rates.length];
    const row = units * places;
    const value = new Float64Array((this.#slots + 1) * row);
    const nonInterruptible = this.#task.nonInterruptibleUsdPerS;
    const lateUsd = LATE * (nonInterruptible === null ? 1 : nonInterruptible * this.#unitS);
    for (let p = 0; p < places; p++) {
      const still = p === 0 ? this.#changeover : 0;
      for (let w = 1; w < units; w++) value[this.#slots * row + p * units + w] = (w + still) * lateUsd;
    }
    const at = (slot: number, place: number): Float64Array =>
      value.subarray(slot * row + place * units, slot * row + (place + 1) * units);
    for (let i = this.#slots - 1; i >= 0; i--) {
      const there = (p: number): Place => ({ rate: this.#rates[p]?.[i] ?? Infinity, next: at(i + 1, p) });
      const nowhere = at(i, 0);
      nowhere.set(at(i + 1, 0));
      nowhere[0] = 0;
      for (let p = 1; p < places; p++) improve(nowhere, there(p), this.#changeover);
      for (let p = 1; p < places; p++) {
        const staying = at(i, p);
        staying.set(nowhere);
        improve(staying, there(p), 0);
      }
    }
    return value;
  }

  #cost(slot: number, w: number, { from, to }: { readonly from: On; readonly to: On }): number {
    if (slot < 0) return to === 'non-interruptible' ? 0 : Infinity;
    const place = placeOf(to);
    const after = (left: number): number =>
      this.#value[
        ((slot + 1) * this.#rates.length + place) * this.#units + Math.min(this.#units - 1, Math.max(0, left))
      ] ?? 0;
    if (to === 'nowhere') return after(w);
    const rate = this.#rates[place]?.[slot] ?? Infinity;
    if (rate === Infinity) return Infinity;
    const work = from === to ? w : w + this.#changeover;
    return rate * Math.min(PARTS, work) + after(work - PARTS);
  }
}

interface Place {
  readonly rate: number;
  readonly next: Float64Array;
}

/** One slot of running at a place: V(w) = min(V(w), rate min(PARTS, w + c) + next(w + c - PARTS)). */
function improve(best: Float64Array, { rate, next }: Place, changeover: number): void {
  if (rate === Infinity) return;
  const last = best.length - 1;
  for (let w = 1; w <= last; w++) {
    const work = w + changeover;
    const left = work <= PARTS ? 0 : work - PARTS > last ? last : work - PARTS;
    const usd = rate * (work < PARTS ? work : PARTS) + (next[left] ?? 0);
    if (usd < (best[w] ?? 0)) best[w] = usd;
  }
}

/** A task that saves nothing: it runs once, from beginning to end, in one pool. */
export interface OneRunTask extends Pick<OfflineTask, 'fromS' | 'deadlineS' | 'nonInterruptibleUsdPerS'> {
  /** Start-up, set-up and work. */
  readonly lengthS: number;
  /** Time that a pool must last beyond that when an instance is bought: it starts while decisions go on. */
  readonly spareS: number;
  /** USD of a run on a spot pool over this time; null: it is not to be had, or is taken before. */
  readonly runUsd: readonly SpotUsdPerS[];
}

/**
 * The cheapest single run, by the cost of every slot's run in every pool: O(SLOTS x pools) questions, once.
 * U(i) = least USD of a run that begins in slot i or later.
 */
export class OneRunStrategy {
  readonly #task: OneRunTask;
  readonly #slotS: number;
  readonly #least: Float64Array;

  constructor(task: OneRunTask) {
    this.#task = task;
    const { slotS } = gridOf(Math.max(0, task.deadlineS - task.fromS));
    this.#slotS = slotS;
    const starts = Math.max(0, Math.floor((task.deadlineS - task.lengthS - task.fromS) / slotS) + 1);
    this.#least = new Float64Array(starts + 1).fill(Infinity);
    for (let i = starts - 1; i >= 0; i--)
      this.#least[i] = Math.min(this.#least[i + 1] ?? Infinity, this.#at(task.fromS + i * slotS, task.spareS).usd);
  }

  get bytes(): number {
    return this.#least.byteLength;
  }

  /**
   * Where to begin now; `nowhere`: a later run is cheaper. Ties: now, on spot. `begun`: the answer was a pool before,
   * and what was bought for it may be starting.
   */
  best(atS: number, begun = false): On {
    const { fromS, nonInterruptibleUsdPerS, spareS } = this.#task;
    const now = this.#at(atS, begun ? 0 : spareS);
    if (begun && now.usd < Infinity) return now.on;
    const later = Math.floor(Math.max(0, atS - fromS) / this.#slotS) + 1;
    const laterUsd = later >= this.#least.length ? Infinity : (this.#least[later] ?? Infinity);
    if (now.usd === Infinity && laterUsd === Infinity)
      return nonInterruptibleUsdPerS === null ? 0 : 'non-interruptible';
    return laterUsd < now.usd * (1 - 1e-9) ? 'nowhere' : now.on;
  }

  #at(startS: number, spareS: number): { readonly on: On; readonly usd: number } {
    const { lengthS, nonInterruptibleUsdPerS, runUsd } = this.#task;
    const onDemandUsd = (nonInterruptibleUsdPerS ?? Infinity) * lengthS;
    return runUsd.reduce<{ readonly on: On; readonly usd: number }>(
      (best, run, pool) => {
        const lasts = run(startS, startS + lengthS + spareS) !== null;
        const usd = lasts ? (run(startS, startS + lengthS) ?? Infinity) : Infinity;
        return usd < best.usd || (usd === best.usd && best.on === 'non-interruptible') ? { on: pool, usd } : best;
      },
      { on: 'non-interruptible', usd: onDemandUsd },
    );
  }
}
