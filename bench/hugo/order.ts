/** Runs as plain data: one queue, after the queues that a scheduler learns from. */
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import { interference, jobsOf, QUEUES, SLOTS_OF_TASK, type QueueName } from './jobs.ts';

export interface Order {
  readonly preset: string;
  readonly queue: QueueName;
  /** Queues that ran before it, in this order. */
  readonly after: readonly QueueName[];
  readonly nodes: number;
  readonly seed: number;
  /** Arrivals: all at once, one at each round, or one to three (section 4.3.1). */
  readonly arrivals: 'at-once' | 'constant' | 'arbitrary';
}

export interface HugoFigures extends ClusterFigures {
  /** From the first start that is possible to the last end, seconds. */
  readonly makespanS: number;
  /** Seconds that each job waited for its start. */
  readonly waitedS: readonly number[];
}

export interface Answer extends Order {
  readonly figures: HugoFigures;
}

/** A round is as long as one start is apart from the next: ten minutes for four jobs at once. */
const ROUND_S = 600 / 4;
/** Longest wait of Hugo*, seconds (section 4.3.1: 20 rounds). */
export const LIMIT_S = 20 * ROUND_S;

/** Hugo* with the limit of section 4.3.1, 20 rounds; ours: chances of jobs in place of groups. */
const OWN: OwnPresets = {
  'hugo-limit': {
    extends: 'hugo',
    plan: { policy: 'neighbours', by: 'group', byWaiting: true, waitingLimitS: LIMIT_S },
  },
  'hugo-jobs': { extends: 'hugo', plan: { policy: 'neighbours', by: 'group', draws: 'jobs' } },
};
/** Enough for any queue to end before the next one begins. */
const APART_S = 2 * 86_400;

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, queue, after, nodes, seed, arrivals } = order;
  const beginS = after.length * APART_S;
  const earlier = after.flatMap((name, n) =>
    jobsOf({ queue: name, nodes, seed, key: `before${n}`, atS: () => n * APART_S }),
  );
  const jobs = jobsOf({ queue, nodes, seed, key: 'job', atS: arriving(arrivals, beginS, QUEUES[queue].length) });
  const figures = await runOnCluster({
    preset: preset === 'hugo-star' ? 'hugo-limit' : preset,
    own: OWN,
    cluster: `${nodes}x{cpu: ${2 * SLOTS_OF_TASK}, memory: 16GiB}`,
    jobs: [...earlier, ...jobs],
    earlier: [],
    runtime: null,
    interference,
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

function arriving(arrivals: Order['arrivals'], beginS: number, jobs: number): (i: number) => number {
  if (arrivals === 'at-once') return () => beginS;
  if (arrivals === 'constant') return (i) => beginS + i * ROUND_S;
  // 1, 2 or 3 jobs a round, in the ratio 3 to 1 to 1: fixed, so that all presets see the same.
  const sizes = [1, 1, 1, 2, 3];
  const at: number[] = [];
  for (let round = 0; at.length < jobs; round++)
    for (let n = 0; n < (sizes[(round * 2) % sizes.length] ?? 1); n++) at.push(beginS + round * ROUND_S);
  return (i) => at[i] ?? beginS;
}
