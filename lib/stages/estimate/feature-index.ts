/** Numbers of a feature-value beside its feature. */
export const PARTS = 4;
const KEY = 1 + PARTS;

/**
 * Index of histories by feature-value: (feature, PARTS numbers) -> slot. Bounded: when all slots are taken, the
 * second-chance (CLOCK) rule frees one that was not looked up since the hand last passed. New entries start without
 * their chance, so a flood of names that never come again evicts itself and not the recurring ones.
 * Chained hashing over typed arrays; find, add and evict are O(1) expected. Memory: 33 bytes per slot, grown by
 * doubling.
 */
export class FeatureIndex {
  readonly #maxSlots: number;
  #capacity: number;
  #heads: Int32Array;
  #next: Int32Array;
  /** Feature and parts of each slot. */
  #keys: Int32Array;
  #touched: Uint8Array;
  #used = 0;
  #hand = 0;

  constructor(maxSlots: number) {
    this.#maxSlots = maxSlots;
    this.#capacity = Math.min(maxSlots, 256);
    this.#heads = new Int32Array(hashSize(this.#capacity)).fill(-1);
    this.#next = new Int32Array(this.#capacity);
    this.#keys = new Int32Array(this.#capacity * KEY);
    this.#touched = new Uint8Array(this.#capacity);
  }

  get size(): number {
    return this.#used;
  }

  /** Slots allocated so far. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Slot of a feature-value, -1 when it has none. Counts as a use. `i` is where its numbers begin in `ids`. */
  find(feature: number, ids: Int32Array, i: number): number {
    const a = ids[i] as number;
    const b = ids[i + 1] as number;
    const c = ids[i + 2] as number;
    const d = ids[i + 3] as number;
    const keys = this.#keys;
    let slot = this.#heads[this.#bucket(feature, ids, i)] as number;
    while (slot !== -1) {
      const k = slot * KEY;
      if (keys[k] === feature && keys[k + 1] === a && keys[k + 2] === b && keys[k + 3] === c && keys[k + 4] === d) {
        this.#touched[slot] = 1;
        return slot;
      }
      slot = this.#next[slot] as number;
    }
    return -1;
  }

  /**
   * Adds a feature-value that `find` did not find. To replace another one, it first calls `evict(slot)`, while that
   * slot's key can still be read.
   */
  add(feature: number, ids: Int32Array, i: number, evict: (slot: number) => void): number {
    let slot = this.#used;
    if (slot === this.#maxSlots) {
      slot = this.#victim();
      evict(slot);
      this.#unlink(slot);
    } else {
      if (slot === this.#capacity) this.#grow();
      this.#used++;
    }
    const k = slot * KEY;
    this.#keys[k] = feature;
    for (let part = 0; part < PARTS; part++) this.#keys[k + 1 + part] = ids[i + part] as number;
    this.#touched[slot] = 0;
    this.#link(slot);
    return slot;
  }

  /** Feature and numbers of a slot in use. */
  key(slot: number): readonly [feature: number, ids: readonly number[]] {
    const k = slot * KEY;
    return [this.#keys[k] as number, [...this.#keys.subarray(k + 1, k + KEY)]];
  }

  #victim(): number {
    for (;;) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#maxSlots;
      if (this.#touched[slot] === 0) return slot;
      this.#touched[slot] = 0;
    }
  }

  #bucket(feature: number, ids: Int32Array, i: number): number {
    let h = Math.imul(feature + 1, 0x9e3779b1);
    h = Math.imul((h ^ (ids[i] as number)) + 0x7f4a7c15, 0x85ebca6b);
    h = Math.imul((h ^ (h >>> 15) ^ (ids[i + 1] as number)) + 0x165667b1, 0xc2b2ae35);
    h = Math.imul((h ^ (h >>> 13) ^ (ids[i + 2] as number)) + 0x27d4eb2f, 0x85ebca6b);
    h = Math.imul((h ^ (h >>> 15) ^ (ids[i + 3] as number)) + 0x165667b1, 0x9e3779b1);
    return ((h ^ (h >>> 16)) >>> 0) & (this.#heads.length - 1);
  }

  #bucketOf(slot: number): number {
    const k = slot * KEY;
    return this.#bucket(this.#keys[k] as number, this.#keys, k + 1);
  }

  #link(slot: number): void {
    const bucket = this.#bucketOf(slot);
    this.#next[slot] = this.#heads[bucket] as number;
    this.#heads[bucket] = slot;
  }

  #unlink(slot: number): void {
    const bucket = this.#bucketOf(slot);
    const after = this.#next[slot] as number;
    let at = this.#heads[bucket] as number;
    if (at === slot) {
      this.#heads[bucket] = after;
      return;
    }
    while (this.#next[at] !== slot) at = this.#next[at] as number;
    this.#next[at] = after;
  }

  #grow(): void {
    this.#capacity = Math.min(this.#maxSlots, this.#capacity * 2);
    const keys = new Int32Array(this.#capacity * KEY);
    keys.set(this.#keys);
    this.#keys = keys;
    const touched = new Uint8Array(this.#capacity);
    touched.set(this.#touched);
    this.#touched = touched;
    this.#next = new Int32Array(this.#capacity);
    this.#heads = new Int32Array(hashSize(this.#capacity)).fill(-1);
    for (let slot = 0; slot < this.#used; slot++) this.#link(slot);
  }
}

/** A power of two, at least twice the slots. */
const hashSize = (slots: number): number => 2 ** Math.ceil(Math.log2(Math.max(slots, 8) * 2));
