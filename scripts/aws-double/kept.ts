/** The newest of what has happened, so that a double that runs for days does not grow. */
export class Kept<T> {
  readonly #most: number;
  readonly #items: T[] = [];
  #dropped = 0;

  /** `most`: how many are kept for certain; up to a tenth more may be. */
  constructor(most: number) {
    this.#most = most;
  }

  /** In their order; the same array throughout. */
  get items(): readonly T[] {
    return this.#items;
  }

  /** How many there have been. */
  get count(): number {
    return this.#dropped + this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
    // Not one by one: each removal moves all that stay.
    if (this.#items.length <= this.#most * 1.1) return;
    this.#dropped += this.#items.splice(0, this.#items.length - this.#most).length;
  }

  /** Those that came after the first `count`, as far as they are kept. */
  after(count: number): readonly T[] {
    return this.#items.slice(Math.max(0, count - this.#dropped));
  }
}
