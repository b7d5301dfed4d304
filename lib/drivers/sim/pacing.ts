import { invariant } from '../../kernel/errors.ts';
import { epochMs, raw, seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';

interface Stretch {
  readonly fromMs: number;
  pace: number;
}

/**
 * Progress of a program whose pace changes with its neighbours: stretches of one pace each, in the order of time. Pace:
 * seconds of work done in a second. O(changes) per question.
 */
export class Pacing {
  readonly #stretches: Stretch[];

  /** Nothing is done before `from`. */
  constructor(from: EpochMs, pace: number) {
    this.#stretches = [{ fromMs: raw(from), pace }];
  }

  /** Times of changes ascend. True where it is another pace. */
  change(at: EpochMs, pace: number): boolean {
    const atMs = raw(at);
    const last = invariant(this.#stretches.at(-1), 'there is a first stretch');
    if (last.pace === pace) return false;
    if (atMs <= last.fromMs) last.pace = pace;
    else this.#stretches.push({ fromMs: atMs, pace });
    return true;
  }

  /** Work done by then, seconds. */
  workS(at: EpochMs): Seconds {
    return seconds(this.#workS(raw(at)));
  }

  #workS(atMs: number): number {
    let workS = 0;
    this.#stretches.forEach(({ fromMs, pace }, i) => {
      const toMs = Math.min(atMs, this.#stretches[i + 1]?.fromMs ?? Infinity);
      if (toMs > fromMs) workS += ((toMs - fromMs) / 1000) * pace;
    });
    return workS;
  }

  /** Time at which this work is done at the present pace; no earlier than the last change. */
  whenMs(workS: Seconds): EpochMs {
    const { fromMs, pace } = invariant(this.#stretches.at(-1), 'there is a first stretch');
    return epochMs(fromMs + (Math.max(0, raw(workS) - this.#workS(fromMs)) / pace) * 1000);
  }
}
