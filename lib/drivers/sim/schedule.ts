import FlatQueue from 'flatqueue';

interface Scheduled {
  /** The how manieth that was scheduled. */
  readonly sequence: number;
  readonly happen: () => void;
}

/**
 * Coming events, in the order (time, sequence number). O(log waiting); times lie in one array, so that finding the next
 * event reads a few lines of memory instead of many records.
 */
export class Schedule {
  /** By time alone; events of one instant are unordered. */
  readonly #waiting = new FlatQueue<Scheduled>();
  /** Events of one instant, taken out of the queue: the next one last. */
  #front: Scheduled[] = [];
  #frontMs = Infinity;
  #sequence = 0;

  add(atMs: number, happen: () => void): void {
    this.#waiting.push({ sequence: this.#sequence++, happen }, atMs);
  }

  /** Time of the next event; null: none. */
  get nextMs(): number | null {
    const waitingMs = this.#waiting.peekValue();
    if (this.#front.length === 0) return waitingMs ?? null;
    return waitingMs === undefined ? this.#frontMs : Math.min(waitingMs, this.#frontMs);
  }

  /** Takes the next event out; null: none. */
  take(): (() => void) | null {
    if (this.#front.length === 0 || (this.#waiting.peekValue() ?? Infinity) < this.#frontMs) this.#takeInstant();
    return this.#front.pop()?.happen ?? null;
  }

  /**
   * Takes all events of the earliest instant. Later additions to it have higher sequence numbers, and wait for the next
   * call.
   */
  #takeInstant(): void {
    for (const later of this.#front) this.#waiting.push(later, this.#frontMs);
    this.#frontMs = this.#waiting.peekValue() ?? Infinity;
    this.#front = [];
    while (this.#waiting.length > 0 && this.#waiting.peekValue() === this.#frontMs)
      this.#front.push(this.#waiting.pop() as Scheduled);
    if (this.#front.length > 1) this.#front.sort((a, b) => b.sequence - a.sequence);
  }
}
