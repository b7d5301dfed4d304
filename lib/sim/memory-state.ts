/**
 * Entities by key in order of arrival, with those that are not over at hand: what a cycle loads costs as much as what is
 * active. `put` replaces the value and keeps its place.
 */
export class Arrivals<V> {
  readonly #isOpen: (value: V) => boolean;
  readonly #rows: { value: V; readonly arrival: number }[] = [];
  readonly #byKey = new Map<string, { value: V; readonly arrival: number }>();
  readonly #open = new Set<string>();

  constructor(isOpen: (value: V) => boolean) {
    this.#isOpen = isOpen;
  }

  put(key: string, value: V): void {
    const row = this.#byKey.get(key);
    if (row === undefined) {
      const added = { value, arrival: this.#rows.length + 1 };
      this.#rows.push(added);
      this.#byKey.set(key, added);
    } else row.value = value;
    if (this.#isOpen(value)) this.#open.add(key);
    else this.#open.delete(key);
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key)?.value;
  }

  open(): V[] {
    return [...this.#open].flatMap((key) => this.get(key) ?? []);
  }

  all(): V[] {
    return this.#rows.map((r) => r.value);
  }

  /** At most `limit` that `wanted` accepts, newest first, below an arrival number. */
  newest(
    wanted: (value: V) => boolean,
    limit: number,
    before = Infinity,
  ): { readonly value: V; readonly arrival: number }[] {
    const found: { value: V; arrival: number }[] = [];
    for (let i = Math.min(this.#rows.length, before - 1) - 1; i >= 0 && found.length < limit; i--) {
      const row = this.#rows[i];
      if (row !== undefined && wanted(row.value)) found.push({ value: row.value, arrival: row.arrival });
    }
    return found;
  }
}

/** Values in lists by a key, without duplicates: an index that only grows. */
export class Index {
  readonly #lists = new Map<string, Set<string>>();

  add(of: string, key: string): void {
    const list = this.#lists.get(of);
    if (list === undefined) this.#lists.set(of, new Set([key]));
    else list.add(key);
  }

  get(of: string): readonly string[] {
    return [...(this.#lists.get(of) ?? [])];
  }
}
