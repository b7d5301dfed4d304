/**
 * Which running tasks deserve a copy, as LATE and Mantri judge it. Hopper leaves this to such a rule (section 1)
 * and decides how much room copies get.
 */
import { seconds } from '../../kernel/units.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { meanS, quantileS, remaining, type Distribution } from '../../domain/distribution.ts';
import type { RunningTask } from '../../domain/snapshot.ts';

/** A running task of which a copy is expected to end first. */
export interface Straggler {
  readonly running: RunningTask;
  /** Expected remaining time, seconds. */
  readonly leftS: number;
  /** Expected running time of a copy, seconds. */
  readonly anewS: number;
  readonly reason: string;
  /** Attempts that are to live, the copy included. Absent: two. */
  readonly attempts?: number;
}

/** Running tasks of one stage, and what is known of the time that its tasks take. */
export interface StageSeen {
  /** Each with the seconds that it has run so far. One attempt runs of each. */
  readonly running: readonly { readonly running: RunningTask; readonly ranS: number }[];
  readonly anew: Distribution;
  /** Index of the tail of running times: above the median, what is left is taken to be Pareto. */
  readonly beta: number;
}

export interface CopyRule {
  readonly stragglers: (seen: StageSeen) => readonly Straggler[];
  /** True: a copy comes before tasks of its job that wait. False: they come first. */
  readonly comesFirst: boolean;
  /** Most copies that live at once, as a part of all slots. */
  readonly mostOfSlots: number;
}

/** Below it a tail has no mean; what is left is then given as that of this index. */
export const LEAST_WITH_MEAN = 1.01;

/**
 * Mantri's rule: a copy where P(t_rem > 2 t_new) > 0.25, so that it saves time and resources alike (Ananthanarayanan et
 * al., OSDI 2010; delta 0.25). A task that has run for e has more than x left with probability
 * (e / (e + x))^beta. O(running tasks + stragglers x bins).
 */
export const mantri: CopyRule = {
  stragglers: (seen) =>
    overdue(seen, quantileS(seen.anew, 0.5)).flatMap((one) => {
      const p = halfAsLong(one.ranS, seen);
      return p > LEAST_CHANCE ? [stragglerOf(one, seen, `less than half of that with probability ${percent(p)}`)] : [];
    }),
  comesFirst: true,
  mostOfSlots: 1,
};
const LEAST_CHANCE = 0.25;

/**
 * LATE: of the slowest quarter of a stage's tasks those with the longest time left, on at most a tenth of the slots,
 * and only when no task of the job waits (Zaharia et al., OSDI 2008). Our tasks report no progress:
 * slow are those that have run for longer than three quarters of the others took.
 */
export const late: CopyRule = {
  stragglers: (seen) =>
    overdue(seen, quantileS(seen.anew, 0.75)).map((one) => stragglerOf(one, seen, 'it is among the slowest quarter')),
  comesFirst: false,
  mostOfSlots: 0.1,
};

type Ran = StageSeen['running'][number];

const overdue = ({ running }: StageSeen, limitS: number): readonly Ran[] =>
  limitS > 0 ? running.filter(({ ranS }) => ranS > limitS) : [];

/** Mantri's rule for a task that has run for so long. */
export const probablyTwiceAsLong = (ranS: number, of: Pick<StageSeen, 'anew' | 'beta'>): boolean =>
  halfAsLong(ranS, of) > LEAST_CHANCE;

/** P(what is left > twice the time of a copy). */
function halfAsLong(ranS: number, { anew, beta }: Pick<StageSeen, 'anew' | 'beta'>): number {
  let p = 0;
  for (let i = 0; i < anew.atS.length; i++)
    p += (anew.weight[i] ?? 0) * (ranS / (ranS + 2 * (anew.atS[i] ?? 0))) ** beta;
  return p;
}

function stragglerOf({ running, ranS }: Ran, { anew, beta }: StageSeen, why: string): Straggler {
  const leftS = ranS / (Math.max(beta, LEAST_WITH_MEAN) - 1);
  const anewS = meanS(anew);
  const words = (s: number): string => wordsForDuration(seconds(s));
  const reason = `it has run for ${words(ranS)}, and half of its stage take at most ${words(quantileS(anew, 0.5))}: about ${words(leftS)} are left, a copy takes about ${words(anewS)}; ${why}`;
  return { running, leftS, anewS, reason };
}

const percent = (p: number): string => `${Math.round(100 * p)} %`;

/**
 * Copies for slots that a job has and can use for nothing else, the largest expected saving first: E[max(0, what is
 * left - the time of a copy)] (Hopper, equation 2: a job with more slots than it needs runs S / T copies of each task).
 * O(running tasks + distinct times x bins).
 */
export function worthCopying({ running, anew, beta }: StageSeen): readonly Straggler[] {
  const median = quantileS(anew, 0.5);
  const known = new Map<number, Pick<Straggler, 'leftS' | 'anewS'> & { readonly savedS: number }>();
  const anewS = meanS(anew);
  return running
    .map(({ running: task, ranS }) => {
      // Times are told apart by what a bin tells apart.
      const bin = ranS > 0 ? Math.round(Math.log(ranS) * BINS_PER_E) : -Infinity;
      let of = known.get(bin);
      if (of === undefined) known.set(bin, (of = { ...savingOf(ranS, { anew, beta, median }), anewS }));
      const reason = `a slot of its job is free: a copy is expected to save ${wordsForDuration(seconds(of.savedS))}`;
      return { running: task, ...of, reason };
    })
    .filter(({ savedS }) => savedS > 0)
    .sort((a, b) => b.savedS - a.savedS);
}
const BINS_PER_E = 10;

/** Above the median what is left is Pareto; below it, as the finished siblings that took longer. */
function savingOf(
  ranS: number,
  { anew, beta, median }: Pick<StageSeen, 'anew' | 'beta'> & { readonly median: number },
): { readonly leftS: number; readonly savedS: number } {
  if (ranS > median) {
    const index = Math.max(beta, LEAST_WITH_MEAN);
    // E[max(0, left - x)] of a Pareto tail from e on: e (e / (e + x))^(beta - 1) / (beta - 1).
    const above = (x: number): number => (ranS * (ranS / (ranS + x)) ** (index - 1)) / (index - 1);
    return { leftS: above(0), savedS: expectationOf(anew, above) };
  }
  const left = remaining(anew, seconds(ranS));
  const savedS = expectationOf(anew, (x) => expectationOf(left, (l) => Math.max(0, l - x)));
  return { leftS: meanS(left), savedS };
}

function expectationOf({ atS, weight }: Distribution, f: (s: number) => number): number {
  let sum = 0;
  for (let i = 0; i < atS.length; i++) sum += (weight[i] ?? 0) * f(atS[i] ?? 0);
  return sum;
}
