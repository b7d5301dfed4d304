/** Newest entries of a log, so that a long-running double does not grow. */
export class Kept<T> {
  readonly #most: number;
  readonly #items: T[] = [];
  #dropped = 0;

  /** `most`: number of entries that are certainly kept; up to a tenth more may be. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Entries in order; always the same array. */
  get items(): readonly T[] {
    return this.#items;
  }

  /** Number of entries so far, including dropped ones. */
  get count(): number {
    return this.#dropped + this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
    // Removal in bulk: each removal moves all that stay.
    if (this.#items.length <= this.#most * 1.1) return;
    this.#dropped += this.#items.splice(0, this.#items.length - this.#most).length;
  }

  /** Kept entries after the first `count`. */
  after(count: number): readonly T[] {
    return this.#items.slice(Math.max(0, count - this.#dropped));
  }
}
