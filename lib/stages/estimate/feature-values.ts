import { invariant } from '../../kernel/errors.ts';
import type { JobFeatures } from '../../domain/forecasts.ts';
import { AtomTable } from './atom-table.ts';
import { atomTexts, isText, type FeatureSet } from './features.ts';
import { FeatureIndex, PARTS } from './feature-index.ts';
import { corrupt } from './history-codec.ts';

/** Histories by slot, as plain arrays of their owner. */
export interface Slots {
  /** Makes room for slots 0 .. count-1. New ones are empty. */
  reserve(count: number): void;
  clear(slot: number): void;
  /** Content as text. */
  read(slot: number): string;
  /** Replaces the content. Throws `store.corrupt`. */
  write(slot: number, key: string, text: string): void;
  /** A slot is about to change, or to be forgotten. */
  changing(slot: number): void;
}

/**
 * Slots of histories by feature-value, with the keys of their stored rows: `<prefix><feature>/<part>...`.
 * Lifecycle: `import` stored rows, then `resolve`, `find` and `learn`; `export` hands out the rows changed since the
 * last export, to be written together with the learned observation. A crash before that write loses at most the runs
 * learned since, and never the consistency: rows are whole histories, not increments. One owner, no concurrency.
 * Beyond `most` feature-values the least used ones are forgotten (FeatureIndex). An empty row stands for one of them.
 */
export class FeatureValues {
  readonly #set: FeatureSet;
  readonly #prefix: string;
  readonly #slots: Slots;
  readonly #index: FeatureIndex;
  readonly #atoms = new AtomTable();
  readonly #ids: Int32Array;
  /** Per slot: CHANGED since the last export, STORED by an export or an import. */
  #flags = new Uint8Array(0);
  #changed: number[] = [];
  /** Keys of stored feature-values that were forgotten since: exported as empty rows. */
  readonly #forgotten = new Set<string>();

  constructor(set: FeatureSet, of: { readonly prefix: string; readonly most: number; readonly slots: Slots }) {
    this.#set = set;
    this.#prefix = of.prefix;
    this.#slots = of.slots;
    this.#index = new FeatureIndex(of.most);
    this.#ids = new Int32Array(PARTS * set.lookups);
    this.#reserve();
  }

  /** Feature-values that have a history. */
  get size(): number {
    return this.#index.size;
  }

  /** Begins questions about a job. */
  resolve(features: JobFeatures): void {
    this.#set.resolve(features, this.#find, this.#ids);
  }

  /** Slot of a lookup of the resolved job; -1: no history. Counts as a use. */
  find(lookup: number): number {
    const i = lookup * PARTS;
    if (this.#ids[i] === -1) return -1;
    return this.#index.find(this.#set.featureOf[lookup] as number, this.#ids, i);
  }

  /** Calls back for each feature-value of a job, with its slot, which is made if there is none. The slot changes. */
  learn(features: JobFeatures, visit: (lookup: number, slot: number) => void): void {
    // Held until the end: making room for one feature-value may forget another that shares a text with it.
    const held = this.#set.textsOf(features).map((text) => this.#intern(text));
    this.resolve(features);
    for (let lookup = 0; lookup < this.#set.lookups; lookup++) {
      if (this.#ids[lookup * PARTS] === -1) continue;
      const found = this.find(lookup);
      const slot = found === -1 ? this.#add(this.#set.featureOf[lookup] as number, this.#ids, lookup * PARTS) : found;
      this.#slots.changing(slot);
      visit(lookup, slot);
      this.#mark(slot);
    }
    for (const id of held) this.#atoms.release(id);
  }

  /**
   * Rows that changed since the last export. Clears the list of changes; give the keys to `markChanged` when they could
   * not be stored.
   */
  export(): [key: string, value: string][] {
    const rows: [string, string][] = [...this.#forgotten].map((key) => [key, '']);
    for (const slot of this.#changed) {
      // A slot is listed twice when it was forgotten and given to another feature-value meanwhile.
      if ((this.#flags[slot] as number) < CHANGED) continue;
      this.#flags[slot] = STORED;
      rows.push([this.#keyOf(slot), this.#slots.read(slot)]);
    }
    this.#changed = [];
    this.#forgotten.clear();
    return rows;
  }

  /** Marks rows as not stored after all: the next export has them again. */
  markChanged(keys: Iterable<string>): void {
    for (const key of keys) {
      const { feature, ids } = this.#parse(key, this.#find);
      const slot = ids.includes(-1) ? -1 : this.#index.find(feature, ids, 0);
      if (slot === -1) this.#forgotten.add(key);
      else this.#mark(slot);
    }
  }

  /** Adds exported rows, replacing those with the same keys. Throws `store.corrupt`. */
  import(rows: Iterable<readonly [key: string, value: string]>): void {
    for (const [key, value] of rows) {
      if (value === '') continue;
      const held: number[] = [];
      const { feature, ids } = this.#parse(key, (text) => {
        const id = this.#intern(text);
        held.push(id);
        return id;
      });
      const found = this.#index.find(feature, ids, 0);
      const slot = found === -1 ? this.#add(feature, ids, 0) : found;
      this.#slots.changing(slot);
      this.#slots.write(slot, key, value);
      this.#flags[slot] = STORED;
      for (const id of held) this.#atoms.release(id);
    }
  }

  readonly #find = (text: string): number => this.#atoms.find(text);

  #reserve(): void {
    const { capacity } = this.#index;
    if (capacity === this.#flags.length) return;
    this.#slots.reserve(capacity);
    const flags = new Uint8Array(capacity);
    flags.set(this.#flags);
    this.#flags = flags;
  }

  #mark(slot: number): void {
    const flags = this.#flags[slot] as number;
    if (flags >= CHANGED) return;
    this.#flags[slot] = flags | CHANGED;
    this.#changed.push(slot);
  }

  #intern(text: string): number {
    const id = this.#atoms.intern(text);
    this.#atoms.hold(id);
    return id;
  }

  #add(feature: number, ids: Int32Array, i: number): number {
    const slot = this.#index.add(feature, ids, i, this.#forget);
    this.#reserve();
    this.#slots.clear(slot);
    // Its old row is still in the store: should it be forgotten again, that has to be said again.
    const stored = this.#forgotten.size > 0 && this.#forgotten.delete(this.#keyOf(slot));
    this.#flags[slot] = stored ? STORED : 0;
    this.#set.features[feature]?.of.forEach((part, p) => {
      if (isText(part)) this.#atoms.hold(ids[i + p] as number);
    });
    return slot;
  }

  readonly #forget = (slot: number): void => {
    const [feature, ids] = this.#index.key(slot);
    this.#slots.changing(slot);
    if (((this.#flags[slot] as number) & STORED) !== 0) this.#forgotten.add(this.#keyOf(slot));
    this.#set.features[feature]?.of.forEach((part, p) => {
      if (isText(part)) this.#atoms.release(ids[p] as number);
    });
  };

  #keyOf(slot: number): string {
    const [index, ids] = this.#index.key(slot);
    const feature = invariant(this.#set.features[index], 'a slot belongs to a tracked feature');
    return this.#prefix + [feature.name, ...atomTexts(feature, ids, this.#atoms).map(encodeURIComponent)].join('/');
  }

  #parse(key: string, idOf: (text: string) => number): { feature: number; ids: Int32Array } {
    const [name, ...texts] = key.slice(this.#prefix.length).split('/');
    const index = this.#set.features.findIndex((f) => f.name === name);
    const feature = this.#set.features[index];
    if (!key.startsWith(this.#prefix) || feature === undefined || texts.length !== feature.of.length) {
      throw corrupt(key, 'a key of another form');
    }
    const ids = new Int32Array(PARTS);
    feature.of.forEach((part, i) => {
      const text = decoded(key, texts[i] ?? '');
      ids[i] = isText(part) ? idOf(text) : Number(text);
    });
    return { feature: index, ids };
  }
}

const STORED = 1;
const CHANGED = 2;

function decoded(key: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw corrupt(key, 'a key that is not URL-encoded');
  }
}
