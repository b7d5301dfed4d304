/**
 * Order of jobs by what runs where there is room (Mary, Hugo and Hugo*, sections 4.1.2, 4.2.2 and 4.3): the next job's
 * program is drawn by its chances beside the running ones, and then one of its jobs.
 */
import { z } from 'zod';
import { hash32, randomStream, type Uniform } from '../../kernel/random.ts';
import type { JobId } from '../../kernel/ids.ts';
import { raw, secondsBetween } from '../../kernel/units.ts';
import { compareText } from '../../kernel/compare.ts';
import type { Job } from '../../domain/job.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import type { NeighbourBelief } from '../../policy/colocation/neighbour-belief.ts';
import { neighbourLearner } from '../../policy/colocation/neighbour-learner.ts';
import { templateOf } from '../../policy/colocation/together.ts';
import type { JobRank } from './job-order.ts';

export const neighbourSettings = z.strictObject({
  by: z.enum(['template', 'group']).default('group').describe('What preferences are of: `template` (Mary) or `group`.'),
  draws: z
    .enum(['programs', 'jobs'])
    .default('programs')
    .describe(
      'What chances are of: `programs`, as in the papers, or `jobs`, so that a program with many of them is not left for last.',
    ),
  byWaiting: z
    .boolean()
    .default(false)
    .describe(
      'True: in a group, jobs are drawn in proportion to their waiting times, and `waitingLimitS` holds (Hugo*).',
    ),
  waitingLimitS: z
    .number()
    .positive()
    .default(3600)
    .describe('A job that has waited for so many seconds starts before all preferences.'),
});
export type NeighbourSettings = z.output<typeof neighbourSettings>;

/** Jobs that are drawn in one decision; what is behind them stays in the order of submission. */
const MOST_DRAWN = 1000;
/** Key of what was never measured. */
const UNKNOWN = '';

interface Waiting {
  readonly job: JobId;
  readonly key: string;
  readonly waitedS: number;
  readonly milliCpu: number;
}

/**
 * O(running tasks + jobs log jobs), and for each job that is drawn O(programs x running programs + jobs of its
 * program).
 */
export const goodNeighboursFirst =
  ({ by, draws, byWaiting, waitingLimitS }: NeighbourSettings) =>
  (input: PlanInput): JobRank => {
    const { snapshot } = input;
    const belief = input.beliefs.of(neighbourLearner);
    const keyOf = (job: Job, stage: Job['spec']['stages'][number]): string => {
      const template = templateOf(job, stage);
      return by === 'template' ? template : (belief.groupOf(template) ?? UNKNOWN);
    };
    const all = waitingJobs(input, keyOf);
    const running = runningWhereRoomIs(input, keyOf);
    const draw = randomStream(hash32(String(raw(snapshot.nowMs))), 'neighbours');
    const chances = (beside: string, keys: readonly string[]): readonly number[] =>
      belief.chances(beside, keys, by === 'template');
    let room = [...snapshot.instances.values()].reduce((sum, { free }) => sum + milliCpuIn(free), 0);
    const order: JobId[] = [];
    const mayDraw = (): boolean => order.length < MOST_DRAWN && room > 0;
    /** Draws one of them, and takes it out. */
    const take = (those: Waiting[]): void => {
      const weights = those.map((w) => (byWaiting ? w.waitedS : 1));
      const [next] = those.splice(drawn(weights, draw), 1);
      if (next === undefined) return;
      order.push(next.job);
      room -= next.milliCpu;
      running.set(next.key, (running.get(next.key) ?? 0) + next.milliCpu);
    };
    const isLate = (w: Waiting): boolean => byWaiting && w.waitedS >= waitingLimitS;
    const late = all.filter(isLate);
    while (late.length > 0 && mayDraw()) take(late);
    const inTime = all.filter((w) => !isLate(w));
    const waiting = Map.groupBy(inTime, (w) => w.key);
    while (waiting.size > 0 && mayDraw()) {
      const key = nextKey(waiting, running, { chances, draws, draw });
      const those = waiting.get(key) ?? [];
      // Of what is not known the first that was submitted.
      take(key === UNKNOWN ? those.splice(0, 1) : those);
      if (those.length === 0) waiting.delete(key);
    }
    const places = new Map(order.map((job, i) => [job, i]));
    return (_, job) => places.get(job) ?? order.length;
  };

/** Jobs by submission; one is of the program of its first waiting stage. */
function waitingJobs({ snapshot }: PlanInput, keyOf: KeyOf): readonly Waiting[] {
  const { jobs, groups, nowMs } = snapshot;
  const found = new Map<JobId, Waiting>();
  for (const { job: id, stage, need, count } of groups) {
    const job = jobs.get(id);
    if (job === undefined) continue;
    const known = found.get(id);
    const waitedS = Math.max(1, secondsBetween(job.submittedMs, nowMs));
    const milliCpu = (known?.milliCpu ?? 0) + count * milliCpuIn(need);
    found.set(id, { job: id, key: known?.key ?? keyOf(job, stage), waitedS, milliCpu });
  }
  return [...found.values()].sort((a, b) => b.waitedS - a.waitedS || compareText(a.job, b.job));
}

type KeyOf = (job: Job, stage: Job['spec']['stages'][number]) => string;

/** mCPU that each program uses on instances with room; none where no instance has any. */
function runningWhereRoomIs({ snapshot }: PlanInput, keyOf: KeyOf): Map<string, number> {
  const found = new Map<string, number>();
  for (const { attempt, stage } of snapshot.running) {
    const view = snapshot.instances.get(attempt.instance);
    const job = snapshot.jobs.get(attempt.job);
    if (view === undefined || job === undefined || milliCpuIn(view.free) <= 0) continue;
    const key = keyOf(job, stage);
    found.set(key, (found.get(key) ?? 0) + milliCpuIn(attempt.resources));
  }
  return found;
}

/** Drawn by the mean of the chances beside running programs, weighed by their vCPUs; the first where none runs. */
function nextKey(
  waiting: ReadonlyMap<string, readonly Waiting[]>,
  running: ReadonlyMap<string, number>,
  of: Pick<NeighbourSettings, 'draws'> & { readonly chances: NeighbourBelief['chances']; readonly draw: Uniform },
): string {
  const keys = [...waiting.keys()];
  const [first = UNKNOWN] = keys;
  if (running.size === 0 || keys.length === 1) return first;
  const weights = keys.map(() => 0);
  for (const [beside, milliCpu] of running) {
    of.chances(beside, keys).forEach((p, i) => (weights[i] = (weights[i] ?? 0) + milliCpu * p));
  }
  const times = (key: string): number => (of.draws === 'jobs' ? (waiting.get(key)?.length ?? 0) : 1);
  const weighed = keys.map((key, i) => times(key) * (weights[i] ?? 0));
  return keys[drawn(weighed, of.draw)] ?? first;
}

/** Index of one of them, drawn in proportion to its weight. */
function drawn(weights: readonly number[], draw: Uniform): number {
  let at = draw() * weights.reduce((sum, w) => sum + w, 0);
  const found = weights.findIndex((w) => (at -= w) < 0);
  return found === -1 ? weights.length - 1 : found;
}
