/** Entities by key in order of arrival, some of them still open. `put` replaces the value and keeps its place. */
export class Arrivals<V> {
  readonly #isOpen: (value: V) => boolean;
  /** Rows by arrival; a forgotten one stays as an empty row until the rows are swept. */
  #rows: Row<V>[] = [];
  readonly #byKey = new Map<string, Row<V>>();
  #arrivals = 0;

  constructor(isOpen: (value: V) => boolean) {
    this.#isOpen = isOpen;
  }

  /** The new row for a new key, else null. */
  put(key: string, value: V): Row<V> | null {
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      known.value = value;
      return null;
    }
    const row = { value, arrival: ++this.#arrivals };
    this.#rows.push(row);
    this.#byKey.set(key, row);
    return row;
  }

  /** Removes it without a trace. */
  forget(key: string): void {
    const row = this.#byKey.get(key);
    if (row === undefined) return;
    row.value = null;
    this.#byKey.delete(key);
    if (this.#rows.length > 2 * this.#byKey.size + SWEEP_AT) this.#rows = this.#rows.filter((r) => r.value !== null);
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key)?.value ?? undefined;
  }

  /** Open entities, in the order of arrival. O(all known entities): an engine asks once. */
  open(): V[] {
    const values: V[] = [];
    for (const { value } of this.#rows) if (value !== null && this.#isOpen(value)) values.push(value);
    return values;
  }

  /** Open entities, newest first. O(visited entities, and those that came and went after them). */
  *newestOpen(): Generator<V> {
    for (let i = this.#rows.length - 1; i >= 0; i--) {
      const { value } = this.#rows[i] as Row<V>;
      if (value !== null && this.#isOpen(value)) yield value;
    }
  }

  /** At most `limit` accepted by `wanted`, newest first, below an arrival number. */
  newest(
    wanted: (value: V) => boolean,
    limit: number,
    before = Infinity,
  ): { readonly value: V; readonly arrival: number }[] {
    const found: { value: V; arrival: number }[] = [];
    for (let i = this.#below(before) - 1; i >= 0 && found.length < limit; i--) {
      const { value, arrival } = this.#rows[i] as Row<V>;
      if (value !== null && wanted(value)) found.push({ value, arrival });
    }
    return found;
  }

  /** Number of rows that arrived before that number. */
  #below(arrival: number): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rows[middle] as Row<V>).arrival < arrival) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Row of an entity; its value is null once the entity is forgotten. */
export interface Row<V> {
  value: V | null;
  readonly arrival: number;
}

/** Empty rows that are let stand before they are swept out. */
const SWEEP_AT = 1024;

/** Lists of rows by key, in the order of insertion. A row belongs to one list, and is forgotten once. */
export class RowLists<V> {
  readonly #lists = new Map<string, RowList<V>>();

  add(of: string, row: Row<V>): void {
    const list = this.#lists.get(of);
    if (list === undefined) this.#lists.set(of, { rows: [row], known: 1 });
    else {
      list.rows.push(row);
      list.known++;
    }
  }

  values(of: string): V[] {
    const values: V[] = [];
    for (const { value } of this.#lists.get(of)?.rows ?? []) if (value !== null) values.push(value);
    return values;
  }

  has(of: string): boolean {
    return this.#lists.has(of);
  }

  /** Notes that a row of the list has become empty. */
  forgotten(of: string): void {
    const list = this.#lists.get(of);
    if (list === undefined) return;
    list.known--;
    if (list.known === 0) this.#lists.delete(of);
    else if (list.rows.length > 2 * list.known + SWEEP_LIST_AT) list.rows = list.rows.filter((r) => r.value !== null);
  }

  /** All of the list. */
  forget(of: string): void {
    this.#lists.delete(of);
  }
}

interface RowList<V> {
  rows: Row<V>[];
  /** Rows that are not empty. */
  known: number;
}

const SWEEP_LIST_AT = 16;

const NONE: ReadonlySet<never> = new Set<never>();

/** Members in lists by a key, without duplicates. */
export class Index<M> {
  readonly #lists = new Map<string, Set<M>>();

  add(of: string, member: M): void {
    const list = this.#lists.get(of);
    if (list === undefined) this.#lists.set(of, new Set([member]));
    else list.add(member);
  }

  /** In the order of insertion. Read it before anything is added or removed. */
  get(of: string): ReadonlySet<M> {
    return this.#lists.get(of) ?? NONE;
  }

  remove(of: string, member: M): void {
    const list = this.#lists.get(of);
    if (list?.delete(member) === true && list.size === 0) this.#lists.delete(of);
  }
}
