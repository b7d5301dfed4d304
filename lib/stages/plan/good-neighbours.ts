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
import { neighbourLearner, templateOf, type NeighbourBelief } from '../../policy/colocation/neighbour-learner.ts';
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

/** O(running tasks + jobs log jobs + jobs drawn x (programs x running programs)). */
export const goodNeighboursFirst =
  ({ by, draws, byWaiting, waitingLimitS }: NeighbourSettings) =>
  (input: PlanInput): JobRank => {
    const { snapshot } = input;
    const belief = input.beliefs.of(neighbourLearner);
    const keyOf = (job: Job, stage: Job['spec']['stages'][number]): string => {
      const template = templateOf(job, stage);
      return by === 'template' ? template : (belief.groupOf(template) ?? UNKNOWN);
    };
    const waiting = waitingJobs(input, keyOf);
    const running = runningWhereRoomIs(input, keyOf);
    const draw = randomStream(hash32(String(raw(snapshot.nowMs))), 'neighbours');
    const chances = (beside: string, keys: readonly string[]): readonly number[] =>
      belief.chances(beside, keys, by === 'template');
    let room = [...snapshot.instances.values()].reduce((sum, { free }) => sum + milliCpuIn(free), 0);
    const order: JobId[] = [];
    const left = new Set(waiting);
    const take = (next: Waiting): void => {
      left.delete(next);
      order.push(next.job);
      room -= next.milliCpu;
      running.set(next.key, (running.get(next.key) ?? 0) + next.milliCpu);
    };
    while (left.size > 0 && order.length < MOST_DRAWN && room > 0) {
      const late = byWaiting ? [...left].filter((w) => w.waitedS >= waitingLimitS) : [];
      const those = late.length > 0 ? late : ofKey([...left], nextKey([...left], running, { chances, draws, draw }));
      take(drawn(those, byWaiting ? (w) => w.waitedS : () => 1, draw));
    }
    const places = new Map(order.map((job, i) => [job, i]));
    return (_, job) => places.get(job) ?? order.length;
  };

/** Jobs of a program; of what is not known the one that was submitted first. */
function ofKey(waiting: readonly Waiting[], key: string): readonly Waiting[] {
  const those = waiting.filter((w) => w.key === key);
  return key === UNKNOWN ? those.slice(0, 1) : those;
}

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

/** mCPU that each program uses on instances with room; all of them where none has any. */
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
  waiting: readonly Waiting[],
  running: ReadonlyMap<string, number>,
  of: Pick<NeighbourSettings, 'draws'> & { readonly chances: NeighbourBelief['chances']; readonly draw: Uniform },
): string {
  const keys = [...new Set(waiting.map((w) => w.key))];
  const [first = UNKNOWN] = keys;
  if (running.size === 0 || keys.length === 1) return first;
  const weights = keys.map(() => 0);
  for (const [beside, milliCpu] of running) {
    of.chances(beside, keys).forEach((p, i) => (weights[i] = (weights[i] ?? 0) + milliCpu * p));
  }
  const jobs = Map.groupBy(waiting, (w) => w.key);
  const times = (key: string): number => (of.draws === 'jobs' ? (jobs.get(key)?.length ?? 0) : 1);
  return drawn(keys, (key, i) => times(key) * (weights[i] ?? 0), of.draw);
}

/** One of them, in proportion to its weight. */
function drawn<T>(all: readonly T[], weight: (of: T, i: number) => number, draw: Uniform): T {
  const sum = all.reduce((total, of, i) => total + weight(of, i), 0);
  let at = draw() * sum;
  let last = all[0] as T;
  for (const [i, of] of all.entries()) {
    last = of;
    at -= weight(of, i);
    if (at < 0) break;
  }
  return last;
}
