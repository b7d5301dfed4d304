import { body } from './codec.ts';
import type { ActiveDoc } from './documents.ts';
import { ACTIVE, activeKey } from './keys.ts';
import type { Write } from './dynamo-table.ts';

/** Entries per item, some 25 bytes each, so that an item stays below a kilobyte. */
const ENTRIES_PER_ITEM = 32;

/**
 * `ACTIVE` while a commit changes it: open jobs and instances, with positions of instances, in as few items as
 * possible.
 */
export class ActiveList {
  readonly #items: Map<string, ActiveDoc>;
  readonly #itemOf = new Map<string, string>();
  readonly #changed = new Set<string>();

  constructor(items: ReadonlyMap<string, ActiveDoc>) {
    this.#items = new Map(items);
    for (const [sk, doc] of items) for (const partition of Object.keys(doc)) this.#itemOf.set(partition, sk);
  }

  get isChanged(): boolean {
    return this.#changed.size > 0;
  }

  /** Items as they are now, without empty ones. */
  get items(): ReadonlyMap<string, ActiveDoc> {
    return new Map([...this.#items].filter(([, doc]) => Object.keys(doc).length > 0));
  }

  has(partition: string): boolean {
    return this.#itemOf.has(partition);
  }

  set(partition: string, isActive: boolean): void {
    const sk = this.#itemOf.get(partition);
    if (isActive && sk === undefined) this.place(partition, null);
    if (isActive || sk === undefined) return;
    const { [partition]: _, ...others } = this.#items.get(sk) ?? {};
    this.#put(sk, others);
    this.#itemOf.delete(partition);
  }

  /** Adds a partition, with the position of its last observation. */
  place(partition: string, cursor: number | null): void {
    const sk = this.#itemOf.get(partition) ?? this.#room();
    this.#put(sk, { ...this.#items.get(sk), [partition]: cursor });
    this.#itemOf.set(partition, sk);
  }

  /** Item with room; preferably one that is written anyway. */
  #room(): string {
    const hasRoom = (sk: string): boolean => Object.keys(this.#items.get(sk) ?? {}).length < ENTRIES_PER_ITEM;
    const known = [...this.#changed].find(hasRoom) ?? [...this.#items.keys()].find(hasRoom);
    if (known !== undefined) return known;
    for (let part = this.#items.size; ; part++) {
      const { sk } = activeKey(part);
      if (!this.#items.has(sk)) return sk;
    }
  }

  #put(sk: string, doc: ActiveDoc): void {
    this.#items.set(sk, doc);
    this.#changed.add(sk);
  }

  writes(): readonly Write[] {
    return [...this.#changed].map((sk): Write => {
      const doc = this.#items.get(sk) ?? {};
      const key = { pk: ACTIVE, sk };
      return Object.keys(doc).length === 0 ? { key, isDeleted: true } : { key, set: { b: body(doc) } };
    });
  }
}
