/**
 * How heavy the tail of running times is: the index beta of a Pareto distribution, from what has been seen so far.
 * Hopper needs it for the number of slots per task (section 2, equation 2).
 */
import { ACCURACY, binsOf, type RunningTimes } from '../../domain/running-times.ts';
import { raw } from '../../kernel/units.ts';

/** Times of one stage, whose tasks are alike. */
export interface StageTimes {
  readonly ended: RunningTimes;
  /** Seconds for which tasks run that have not ended. */
  readonly running: readonly number[];
}

export interface Tail {
  /** Posterior mean. */
  readonly beta: number;
  /** Posterior standard deviation. */
  readonly deviation: number;
  /** Ended tasks that it comes from. */
  readonly seen: number;
}

/** Before anything is seen: the middle of the indices from 1 to 2 that matter (shares.ts), worth ten tasks. */
const PRIOR = { beta: 1.5, tasks: 10 };

/**
 * The posterior of beta. Above any level u a Pareto tail is again one, and ln(x / u) is exponential with rate beta, so
 * a gamma prior stays a gamma. The level is the median of the stage's ended tasks: shorter ones need not be Pareto. A
 * running task has lasted for so long at least: it adds its logarithm and no end (right-censored), so that stragglers
 * count before they end. O(stages x (bins + running tasks)).
 */
export function tailOf(stages: readonly StageTimes[]): Tail {
  let [ends, logs, seen] = [PRIOR.tasks, PRIOR.tasks / PRIOR.beta, 0];
  for (const { ended, running } of stages) {
    const bins = binsOf(ended).map(([atS, count]) => [raw(atS), count] as const);
    const level = levelOf(bins, ended.count);
    if (!(level > 0)) continue;
    seen += ended.count;
    for (const [atS, count] of bins) {
      if (atS <= level) continue;
      ends += count;
      logs += count * Math.log(atS / level);
    }
    for (const s of running) if (s > level) logs += Math.log(s / level);
  }
  return { beta: ends / logs, deviation: Math.sqrt(ends) / logs, seen };
}

/** Upper edge of the bin with the median. */
function levelOf(bins: readonly (readonly [atS: number, count: number])[], all: number): number {
  let below = 0;
  for (const [atS, count] of bins) {
    below += count;
    if (2 * below >= all) return atS * (1 + ACCURACY);
  }
  return 0;
}
