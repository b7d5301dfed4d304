/** Runs as plain data: one queue, after the queues that a scheduler learns from. */
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import {
  BEST_ORDERS,
  FIT,
  interferenceOf,
  jobsOf,
  nodesOf,
  QUEUES,
  SLOTS_OF_TASK,
  type Fit,
  type QueueName,
} from './jobs.ts';

export interface Order {
  readonly preset: string;
  readonly queue: QueueName;
  /** Queues that ran before it, in this order. */
  readonly after: readonly QueueName[];
  readonly seed: number;
  /** Arrivals: all at once, one at each round, or one to three (section 4.3.1). */
  readonly arrivals: 'at-once' | 'constant' | 'arbitrary';
  /** Absent: what was found to fit. */
  readonly fit?: Fit;
  /** Jobs in the order of submission. Absent: those of the queue. */
  readonly letters?: string;
}

/** Of a run in the best order of jobs that was found, which no scheduler knows. */
export const BEST = 'best-order';

export interface HugoFigures extends ClusterFigures {
  /** From the first start that is possible to the last end, seconds. */
  readonly makespanS: number;
  /** Seconds that each job waited for its start. */
  readonly waitedS: readonly number[];
}

export interface Answer extends Order {
  readonly figures: HugoFigures;
}

/**
 * A round is as long as one start is apart from the next: 45 jobs of queue 3 in the time of round robin, of which Hugo*
 * took 10.73 % less, 145 min 44 s (section 4.3.1).
 */
const ROUND_S = 8744 / (1 - 0.1073) / 45;
/** Longest wait of Hugo*, seconds (section 4.3.1: 20 rounds). */
export const LIMIT_S = 20 * ROUND_S;

/** Presets with the limit of section 4.3.1, 20 rounds. */
const OWN: OwnPresets = {
  'hugo-star-20': withLimit({ aheadOfLimit: true }),
  // The rule as it is written: only once the limit is reached.
  'hugo-star-once': withLimit({ aheadOfLimit: false }),
};
/** Names in the report, where they differ. */
const PRESETS: Readonly<Record<string, string>> = { 'hugo-star': 'hugo-star-20', [BEST]: 'fifo-random' };

function withLimit(of: { readonly aheadOfLimit: boolean }): OwnPresets[string] {
  const plan = { policy: 'neighbours', by: 'group', byWaiting: true, waitingLimitS: LIMIT_S, ...of };
  return { extends: 'hugo-star', plan };
}
/** Enough for any queue to end before the next one begins. */
const APART_S = 2 * 86_400;

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, queue, after, seed, arrivals, fit = FIT } = order;
  const nodes = nodesOf(queue);
  const { letters = preset === BEST ? BEST_ORDERS[queue] : QUEUES[queue] } = order;
  const beginS = after.length * APART_S;
  const earlier = after.flatMap((name, n) =>
    jobsOf({
      letters: QUEUES[name],
      nodes,
      seed,
      key: `before${n}`,
      atS: arriving('at-once', n * APART_S, QUEUES[name].length),
      fit,
    }),
  );
  const jobs = jobsOf({ letters, nodes, seed, key: 'job', atS: arriving(arrivals, beginS, letters.length), fit });
  const figures = await runOnCluster({
    preset: PRESETS[preset] ?? preset,
    own: OWN,
    cluster: `${nodes}x{cpu: ${2 * SLOTS_OF_TASK}, memory: 16GiB}`,
    jobs: [...earlier, ...jobs],
    earlier: [],
    runtime: null,
    interference: interferenceOf(fit),
    seed,
    gapS: 1,
    cycleS: 60,
    untilS: beginS + APART_S,
  });
  const ends = jobs.map(({ key, submittedS }) => submittedS + (figures.jctS[key] ?? Infinity));
  const waitedS = jobs.map(({ key }) => figures.waitS[key] ?? Infinity);
  const jctS = Object.fromEntries(jobs.map(({ key }) => [key, figures.jctS[key] ?? NaN]));
  return { ...order, figures: { ...figures, jctS, makespanS: Math.max(...ends) - beginS, waitedS } };
}

/** Apart by a moment, so that there is an order of submission. */
const MOMENT_S = 0.001;

function arriving(arrivals: Order['arrivals'], beginS: number, jobs: number): (i: number) => number {
  const rounds = arrivals === 'arbitrary' ? inRounds(jobs) : [];
  const roundOf = (i: number): number => (arrivals === 'constant' ? i : (rounds[i] ?? 0));
  return (i) => beginS + roundOf(i) * ROUND_S + i * MOMENT_S;
}

/** 1, 2 or 3 jobs a round, in the ratio 3 to 1 to 1: fixed, so that all presets see the same. */
function inRounds(jobs: number): readonly number[] {
  const sizes = [1, 1, 1, 2, 3];
  const rounds: number[] = [];
  for (let round = 0; rounds.length < jobs; round++)
    for (let n = 0; n < (sizes[(round * 2) % sizes.length] ?? 1); n++) rounds.push(round);
  return rounds;
}
