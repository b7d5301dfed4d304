/**
 * Tells a hung thread from a working one on a busy machine. Both are silent for long; but an endless loop uses all the
 * processor time that it gets, and an endless wait uses none.
 */

/** Share of the limit that a thread must have spent in processor time to be taken for a loop. */
const LOOP_SHARE = 2 / 3;
/** Less processor time than this share of its silence is none: the thread waits. A busy machine gives a thread more. */
const WAIT_SHARE = 0.02;
/** Silence, in limits, that ends a thread in any case. */
const MOST_LIMITS = 10;
/** Ticks for which an older answer holds. */
const FRESH_TICKS = 5;

export class Silence {
  /** Since the thread last said something, s. */
  seconds = 0;
  #cpuS: number | null = null;
  #cpuTicks = 0;
  /** Processor time at the first answer of this silence. */
  #fromS: number | null = null;

  /** The thread has said something. */
  broken(): void {
    this.seconds = 0;
    this.#fromS = null;
    this.#cpuS = null;
  }

  /** Processor time that the thread has used since it was started. */
  used(cpuS: number): void {
    this.#fromS ??= cpuS;
    this.#cpuS = cpuS;
    this.#cpuTicks = 0;
  }

  /**
   * Called once a second: true if the thread is to be ended. If its processor time is unknown, the limit alone decides.
   */
  isTooLong(limitS: number): boolean {
    this.seconds += 1;
    this.#cpuTicks += 1;
    if (this.seconds < limitS) return false;
    if (this.#cpuS === null || this.#fromS === null || this.#cpuTicks > FRESH_TICKS) return true;
    const spentS = this.#cpuS - this.#fromS;
    const isStarved = spentS < LOOP_SHARE * limitS && spentS >= WAIT_SHARE * this.seconds;
    return !isStarved || this.seconds >= MOST_LIMITS * limitS;
  }
}
