import { NO_LOAD, plusLoad, timesLoad } from '../../domain/load.ts';
import { invariant } from '../../kernel/errors.ts';
import { epochMs, raw, seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { Beside, Metered } from './interference/interference.ts';

interface Stretch {
  readonly fromMs: number;
  beside: Beside;
}

/**
 * Progress of a program whose pace changes with its neighbours, and what is measured of it: stretches of one pace each,
 * in the order of time. Pace: seconds of work done in a second. O(changes) per question.
 */
export class Pacing {
  readonly #stretches: Stretch[];

  /** Nothing is done before `from`. */
  constructor(from: EpochMs, beside: Beside) {
    this.#stretches = [{ fromMs: raw(from), beside }];
  }

  /** Times of changes ascend. True where it is another pace. */
  change(at: EpochMs, beside: Beside): boolean {
    const atMs = raw(at);
    const last = invariant(this.#stretches.at(-1), 'there is a first stretch');
    const isOther = last.beside.pace !== beside.pace;
    if (!isOther && last.beside.measured === undefined) return false;
    if (atMs <= last.fromMs) last.beside = beside;
    else this.#stretches.push({ fromMs: atMs, beside });
    return isOther;
  }

  /** Means of what was measured from the beginning until then; null: nothing was. */
  measured(at: EpochMs): (Metered & { readonly ofS: number }) | null {
    let [own, load, ofS, most] = [NO_LOAD, NO_LOAD, 0, null as Metered['machine']['most'] | null];
    for (const { beside, lastsS } of this.#until(raw(at))) {
      if (beside.measured === undefined) continue;
      own = plusLoad(own, timesLoad(beside.measured.own, lastsS));
      load = plusLoad(load, timesLoad(beside.measured.machine.load, lastsS));
      ofS += lastsS;
      ({ most } = beside.measured.machine);
    }
    if (most === null || ofS <= 0) return null;
    return { own: timesLoad(own, 1 / ofS), machine: { load: timesLoad(load, 1 / ofS), most }, ofS };
  }

  /** Work done by then, seconds. */
  workS(at: EpochMs): Seconds {
    return seconds(this.#workS(raw(at)));
  }

  #workS(atMs: number): number {
    return this.#until(atMs).reduce((workS, { beside, lastsS }) => workS + lastsS * beside.pace, 0);
  }

  /** Stretches that have begun by then, and how long they lasted. */
  #until(atMs: number): readonly { readonly beside: Beside; readonly lastsS: number }[] {
    return this.#stretches.flatMap(({ fromMs, beside }, i) => {
      const toMs = Math.min(atMs, this.#stretches[i + 1]?.fromMs ?? Infinity);
      return toMs > fromMs ? [{ beside, lastsS: (toMs - fromMs) / 1000 }] : [];
    });
  }

  /** Time at which this work is done at the present pace; no earlier than the last change. */
  whenMs(workS: Seconds): EpochMs {
    const {
      fromMs,
      beside: { pace },
    } = invariant(this.#stretches.at(-1), 'there is a first stretch');
    return epochMs(fromMs + (Math.max(0, raw(workS) - this.#workS(fromMs)) / pace) * 1000);
  }
}
