/** The positions with the lowest keys, of many; ties by the second key, then in the order of their addition. */
export class Lowest {
  readonly positions: number[] = [];
  readonly keys: number[] = [];
  readonly #most: number;
  readonly #seconds: number[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** O(1) for most of many, O(positions kept) at worst. */
  add(position: number, key: number, second = 0): void {
    let at = this.positions.length;
    if (at === this.#most) {
      if (!this.#isBefore(key, second, at - 1)) return;
      at--;
    }
    for (; at > 0 && this.#isBefore(key, second, at - 1); at--) this.#move(at - 1, at);
    this.positions[at] = position;
    this.keys[at] = key;
    this.#seconds[at] = second;
  }

  #isBefore(key: number, second: number, at: number): boolean {
    const other = this.keys[at] ?? Infinity;
    return key < other || (key === other && second < (this.#seconds[at] ?? Infinity));
  }

  #move(from: number, to: number): void {
    this.positions[to] = this.positions[from] ?? 0;
    this.keys[to] = this.keys[from] ?? 0;
    this.#seconds[to] = this.#seconds[from] ?? 0;
  }
}
