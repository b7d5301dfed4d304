/**
 * Order of jobs by what runs where there is room (Mary, Hugo and Hugo*, sections 4.1.2, 4.2.2 and 4.3): the next job's
 * program is drawn by its chances beside the running ones, and then one of its jobs.
 */
import { z } from 'zod';
import { hash32, randomStream, type Uniform } from '../../kernel/random.ts';
import type { JobId } from '../../kernel/ids.ts';
import { raw, secondsBetween } from '../../kernel/units.ts';
import { compareText } from '../../kernel/compare.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import type { JobRank } from './job-order.ts';
import {
  byGoodness,
  byPace,
  programsIn,
  UNKNOWN,
  type Program,
  type ProgramOf,
  type RunningProgram,
  type ChancesBeside,
} from './neighbour-chances.ts';
import { dueInOrder, pastLimit, type WaitingJob } from './waiting-limit.ts';

export const neighbourSettings = z.strictObject({
  by: z.enum(['template', 'group']).default('group').describe('What preferences are of: `template` (Mary) or `group`.'),
  prefers: z
    .enum(['goodness', 'pace'])
    .default('goodness')
    .describe(
      'What makes a good neighbour: how much of the machine both use (`goodness`, as in the papers), or how little both are slowed down (`pace`).',
    ),
  draws: z
    .enum(['programs', 'jobs'])
    .default('programs')
    .describe('What chances are of: `programs`, or `jobs`, so that a program with many of them is not left for last.'),
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
  aheadOfLimit: z
    .boolean()
    .default(false)
    .describe(
      'True: jobs start in the order of submission as soon as one of them could otherwise not start within the limit.',
    ),
});
export type NeighbourSettings = z.output<typeof neighbourSettings>;

/** Jobs that are drawn in one decision; what is behind them stays in the order of submission. */
const MOST_DRAWN = 1000;

interface Waiting extends Program, WaitingJob {
  readonly milliCpu: number;
}

/**
 * O(running tasks + jobs log jobs), and for each job that is drawn O(programs x running programs + jobs of its
 * program).
 */
export const goodNeighboursFirst =
  (settings: NeighbourSettings) =>
  (input: PlanInput): JobRank => {
    const { by, prefers, draws, byWaiting, aheadOfLimit } = settings;
    const { snapshot } = input;
    const programOf = programsIn(input, by);
    const all = waitingJobs(input, programOf);
    const running = runningWhereRoomIs(input, programOf);
    const draw = randomStream(hash32(String(raw(snapshot.nowMs))), 'neighbours');
    const chances = prefers === 'pace' ? byPace(input) : byGoodness(input, by);
    let room = [...snapshot.instances.values()].reduce((sum, { free }) => sum + milliCpuIn(free), 0);
    const order: JobId[] = [];
    const mayDraw = (): boolean => order.length < MOST_DRAWN && room > 0;
    // Of an instance where it may start: which one is not known yet.
    const [type] = Array.from(snapshot.instances.values(), ({ pool }) => pool.type);
    const start = (next: Waiting): void => {
      order.push(next.job);
      room -= next.milliCpu;
      const there = running.get(next.key);
      if (there !== undefined) running.set(next.key, { ...there, milliCpu: there.milliCpu + next.milliCpu });
      else if (type !== undefined) running.set(next.key, { ...next, type });
    };
    /** Draws one of them, and takes it out. */
    const take = (those: Waiting[]): void => {
      const weights = those.map((w) => (byWaiting ? w.waitedS : 1));
      const [next] = those.splice(drawn(weights, draw), 1);
      if (next !== undefined) start(next);
    };
    const [late, inTime] = byLimit(all, input, settings);
    while (late.length > 0 && mayDraw()) {
      if (aheadOfLimit) late.splice(0, 1).forEach(start);
      else take(late);
    }
    const waiting = Map.groupBy(inTime, (w) => w.key);
    while (waiting.size > 0 && mayDraw()) {
      const key = nextKey(waiting, running, { chances, draws, draw });
      const those = waiting.get(key) ?? [];
      // Of what is not known the first that was submitted.
      if (key === UNKNOWN) those.splice(0, 1).forEach(start);
      else take(those);
      if (those.length === 0) waiting.delete(key);
    }
    const places = new Map(order.map((job, i) => [job, i]));
    return (_, job) => places.get(job) ?? order.length;
  };

/** Jobs that start before all preferences, and the others; both by submission. */
function byLimit(
  all: readonly Waiting[],
  input: PlanInput,
  { byWaiting, waitingLimitS, aheadOfLimit }: NeighbourSettings,
): readonly [late: Waiting[], inTime: readonly Waiting[]] {
  if (!byWaiting) return [[], all];
  if (aheadOfLimit) {
    const due = dueInOrder(all, waitingLimitS, input);
    return [all.slice(0, due), all.slice(due)];
  }
  const isLate = pastLimit(waitingLimitS);
  return [all.filter(isLate), all.filter((w) => !isLate(w))];
}

/** Jobs by submission; one is of the program of its first waiting stage. */
function waitingJobs({ snapshot }: PlanInput, programOf: ProgramOf): readonly Waiting[] {
  const { jobs, groups, nowMs } = snapshot;
  const found = new Map<JobId, Waiting>();
  for (const { job: id, stage, need, count } of groups) {
    const job = jobs.get(id);
    if (job === undefined) continue;
    const known = found.get(id);
    const waitedS = Math.max(1, secondsBetween(job.submittedMs, nowMs));
    const taskMilliCpu = milliCpuIn(need);
    const milliCpu = (known?.milliCpu ?? 0) + count * taskMilliCpu;
    found.set(id, { job: id, waitedS, taskMilliCpu, ...programOf(job, stage), ...known, milliCpu });
  }
  return [...found.values()].sort((a, b) => b.waitedS - a.waitedS || compareText(a.job, b.job));
}

/** What each program uses of instances with room; none where no instance has any. */
function runningWhereRoomIs({ snapshot }: PlanInput, programOf: ProgramOf): Map<string, RunningProgram> {
  const found = new Map<string, RunningProgram>();
  for (const { attempt, stage } of snapshot.running) {
    const view = snapshot.instances.get(attempt.instance);
    const job = snapshot.jobs.get(attempt.job);
    if (view === undefined || job === undefined || milliCpuIn(view.free) <= 0) continue;
    const program = programOf(job, stage);
    const known = found.get(program.key);
    const milliCpu = (known?.milliCpu ?? 0) + milliCpuIn(attempt.resources);
    found.set(program.key, { ...program, type: view.pool.type, ...known, milliCpu });
  }
  return found;
}

/** Drawn by the mean of the chances beside running programs, weighed by their vCPUs; the first where none runs. */
function nextKey(
  waiting: ReadonlyMap<string, readonly Waiting[]>,
  running: ReadonlyMap<string, RunningProgram>,
  of: Pick<NeighbourSettings, 'draws'> & { readonly chances: ChancesBeside; readonly draw: Uniform },
): string {
  const keys = [...waiting.keys()];
  const [first = UNKNOWN] = keys;
  if (running.size === 0 || keys.length === 1) return first;
  const programs = [...waiting.values()].flatMap(([one]) => one ?? []);
  const sums = keys.map(() => 0);
  for (const beside of running.values()) {
    of.chances(beside, programs).forEach((p, i) => (sums[i] = (sums[i] ?? 0) + beside.milliCpu * p));
  }
  const times = (key: string): number => (of.draws === 'jobs' ? (waiting.get(key)?.length ?? 0) : 1);
  const weights = keys.map((key, i) => times(key) * (sums[i] ?? 0));
  return keys[drawn(weights, of.draw)] ?? first;
}

/** Index of one of them, drawn in proportion to its weight. */
function drawn(weights: readonly number[], draw: Uniform): number {
  let at = draw() * weights.reduce((sum, w) => sum + w, 0);
  const found = weights.findIndex((w) => (at -= w) < 0);
  return found === -1 ? weights.length - 1 : found;
}
