import FlatQueue from 'flatqueue';

interface Scheduled {
  /** The how manieth that was scheduled. */
  readonly sequence: number;
  readonly happen: () => void;
}

/**
 * What is to happen, in the order (time, sequence of being scheduled). O(log waiting); times lie in one array, so that
 * finding the next one reads a few lines of memory, where as many records would have to be visited.
 */
export class Schedule {
  /** By time alone: of one instant in no order. */
  readonly #waiting = new FlatQueue<Scheduled>();
  /** Taken out for being of one instant: the next one last. */
  #front: Scheduled[] = [];
  #frontMs = Infinity;
  #sequence = 0;

  add(atMs: number, happen: () => void): void {
    this.#waiting.push({ sequence: this.#sequence++, happen }, atMs);
  }

  /** When the next thing is due; null when nothing is. */
  get nextMs(): number | null {
    const waitingMs = this.#waiting.peekValue();
    if (this.#front.length === 0) return waitingMs ?? null;
    return waitingMs === undefined ? this.#frontMs : Math.min(waitingMs, this.#frontMs);
  }

  /** Takes the next thing out; null when there is none. */
  take(): (() => void) | null {
    if (this.#front.length === 0 || (this.#waiting.peekValue() ?? Infinity) < this.#frontMs) this.#takeInstant();
    return this.#front.pop()?.happen ?? null;
  }

  /** Everything of the earliest instant. What comes to it later has a higher sequence, and waits for the next call. */
  #takeInstant(): void {
    for (const later of this.#front) this.#waiting.push(later, this.#frontMs);
    this.#frontMs = this.#waiting.peekValue() ?? Infinity;
    this.#front = [];
    while (this.#waiting.length > 0 && this.#waiting.peekValue() === this.#frontMs)
      this.#front.push(this.#waiting.pop() as Scheduled);
    if (this.#front.length > 1) this.#front.sort((a, b) => b.sequence - a.sequence);
  }
}
