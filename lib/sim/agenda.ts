import { invariant } from '../kernel/errors.ts';

/**
 * What is to happen, in the order (time, sequence of being put). A binary heap over typed arrays: a simulation holds an end for
 * every attempt that runs and for many that were stopped before it, and looking for the next one compares a dozen of them, which in
 * records of their own lie all over the memory. O(log n) to put and to take.
 */
export class Agenda<T> {
  /** Of the heap's places, the earliest first. */
  #atMs = new Float64Array(FIRST_SIZE);
  #sequence = new Float64Array(FIRST_SIZE);
  /** Where in `#what` each place's thing is. */
  #slot = new Int32Array(FIRST_SIZE);
  readonly #what: (T | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  #size = 0;
  #put = 0;

  /** When the next thing is due; null when there is none. */
  get nextMs(): number | null {
    return this.#size === 0 ? null : (this.#atMs[0] as number);
  }

  put(atMs: number, what: T): void {
    if (this.#size === this.#atMs.length) this.#grow();
    const slot = this.#freeSlots.pop() ?? this.#what.length;
    this.#what[slot] = what;
    this.#rise(this.#size++, { atMs, sequence: this.#put++, slot });
  }

  /** Takes the next thing away. Throws where there is none. */
  take(): T {
    const slot = this.#slot[0] as number;
    const what = invariant(this.#size === 0 ? undefined : this.#what[slot], 'nothing is taken of an empty agenda');
    this.#what[slot] = undefined;
    this.#freeSlots.push(slot);
    const last = --this.#size;
    if (last > 0) {
      const [atMs, sequence] = [this.#atMs[last] as number, this.#sequence[last] as number];
      this.#sink({ atMs, sequence, slot: this.#slot[last] as number });
    }
    return what;
  }

  #rise(from: number, entry: Entry): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#isBefore(entry, parent)) break;
      this.#move(parent, place);
      place = parent;
    }
    this.#set(place, entry);
  }

  /** Puts an entry in place of the first one. */
  #sink(entry: Entry): void {
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#comesFirst(child + 1, child)) child++;
      if (this.#isBefore(entry, child)) break;
      this.#move(child, place);
      place = child;
    }
    this.#set(place, entry);
  }

  #isBefore({ atMs, sequence }: Entry, place: number): boolean {
    const other = this.#atMs[place] as number;
    return atMs < other || (atMs === other && sequence < (this.#sequence[place] as number));
  }

  #comesFirst(a: number, b: number): boolean {
    const x = this.#atMs[a] as number;
    const y = this.#atMs[b] as number;
    return x < y || (x === y && (this.#sequence[a] as number) < (this.#sequence[b] as number));
  }

  #move(from: number, to: number): void {
    this.#atMs[to] = this.#atMs[from] as number;
    this.#sequence[to] = this.#sequence[from] as number;
    this.#slot[to] = this.#slot[from] as number;
  }

  #set(place: number, { atMs, sequence, slot }: Entry): void {
    this.#atMs[place] = atMs;
    this.#sequence[place] = sequence;
    this.#slot[place] = slot;
  }

  #grow(): void {
    const grown = <A extends Float64Array | Int32Array>(array: A, next: A): A => {
      next.set(array);
      return next;
    };
    const size = 2 * this.#atMs.length;
    this.#atMs = grown(this.#atMs, new Float64Array(size));
    this.#sequence = grown(this.#sequence, new Float64Array(size));
    this.#slot = grown(this.#slot, new Int32Array(size));
  }
}

interface Entry {
  readonly atMs: number;
  readonly sequence: number;
  readonly slot: number;
}

const FIRST_SIZE = 1024;
