/**
 * Plans that put whole jobs in an order: the first has all the room that it can use, then the next. This cycle only,
 * each group on its best offer; running tasks run to their ends.
 */
import { raw, type EpochMs } from '../../kernel/units.ts';
import type { JobId } from '../../kernel/ids.ts';
import { compareText } from '../../kernel/compare.ts';
import { unsolved } from '../../domain/plan.ts';
import type { Job } from '../../domain/job.ts';
import { meanS } from '../../domain/distribution.ts';
import { meanToDo } from '../../domain/work-to-do.ts';
import { workDoneS } from '../../domain/snapshot.ts';
import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { meanLeftS } from '../../policy/work-left.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { UNGUARDED } from './options.ts';
import { problemOf, type Problem } from './problem.ts';

/** Work of a job, in seconds of its tasks. */
export interface JobWork {
  readonly submittedMs: EpochMs;
  /** Expected work of the tasks that wait or run, and of the stages that come after them. */
  readonly leftS: number;
  /** Work that its tasks have had, running ones included. */
  readonly attainedS: number;
}

/** The lowest comes first; ties by submission. */
export type JobRank = (work: JobWork) => number;

/** First in, first out: the order of submission alone. */
export const fifo: JobRank = ({ submittedMs }) => raw(submittedMs);

/** Shortest remaining processing time: the job with the least work left (the baseline of Hopper's evaluation). */
export const shortestLeft: JobRank = ({ leftS }) => leftS;

/**
 * Least attained service: the job that has had the least so far, which needs no estimate. The exponential queues of
 * SLearn's baseline (section 5.1) with a queue for every amount.
 */
export const leastAttained: JobRank = ({ attainedS }) => attainedS;

export const jobOrderPlan =
  (rank: JobRank): PlanPolicy<unknown> =>
  (input: PlanInput) => {
    const problem = problemOf(input, UNGUARDED);
    const selection = fill(problem, byJob(problem, input, rank), { preemptFor: 'nobody' });
    return Promise.resolve(allotmentOf(problem, selection, unsolved(selection.objectiveUsd)));
  };

/** Choices of this cycle, job by job. O(running tasks + stages + groups x log groups). */
function byJob(problem: Problem, input: PlanInput, rank: JobRank): readonly number[] {
  const work = workOfJobs(input);
  const placeOf = new Map([...work].map(([job, of]) => [job, { rank: rank(of), submittedMs: raw(of.submittedMs) }]));
  const place = (group: number) => {
    const job = problem.groups[group]?.group.job;
    return { rank: 0, submittedMs: 0, ...(job === undefined ? {} : placeOf.get(job)), job: job ?? '', group };
  };
  return problem.groups
    .map((_, group) => place(group))
    .sort((a, b) => a.rank - b.rank || a.submittedMs - b.submittedMs || compareText(a.job, b.job) || a.group - b.group)
    .flatMap(({ group }) =>
      (problem.groups[group]?.choices ?? []).filter((c) => problem.choices[c]?.planned.option.slot === 0),
    );
}

/** Work of every job that has a task waiting or running. */
export function workOfJobs({
  snapshot,
  forecasts,
}: Pick<PlanInput, 'snapshot' | 'forecasts'>): ReadonlyMap<JobId, JobWork> {
  const begun = new Set(snapshot.groups.map((g) => `${g.job}/${g.stage.name}`));
  const found = new Map<JobId, { submittedMs: EpochMs; leftS: number; attainedS: number }>();
  const workOf = (id: JobId) => {
    let work = found.get(id);
    const job = snapshot.jobs.get(id);
    if (work === undefined && job !== undefined) {
      work = { submittedMs: job.submittedMs, leftS: laterS(job, forecasts, begun), attainedS: doneS(job) };
      found.set(id, work);
    }
    return work;
  };
  for (const group of snapshot.groups) {
    const work = workOf(group.job);
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (work !== undefined && forecast !== undefined) work.leftS += group.count * meanToDo(forecast.runtime, group);
  }
  for (const running of snapshot.running) {
    const work = workOf(running.attempt.job);
    if (work === undefined) continue;
    work.leftS += meanLeftS(running, { snapshot, forecasts });
    work.attainedS += raw(workDoneS(running, snapshot.nowMs));
  }
  return found;
}

/** Expected work of stages that come after others: no task of them waits, runs or has ended. */
function laterS(job: Job, { runtime }: PlanInput['forecasts'], begun: ReadonlySet<string>): number {
  let sum = 0;
  for (const { name, tasks, waiting, running, succeeded, failed, cancelled } of job.stages) {
    if (begun.has(`${job.id}/${name}`) || waiting + running + succeeded + failed + cancelled > 0) continue;
    const told = job.spec.stages.find((s) => s.name === name)?.expectedRuntimeS ?? null;
    const forecast = runtime.get(`${job.id}/${name}`);
    if (forecast !== undefined) sum += tasks * meanS(forecast.runtime);
    else if (told !== null) sum += tasks * raw(told);
  }
  return sum;
}

const doneS = ({ stages }: Job): number =>
  stages.reduce((sum, { times }) => sum + (times === undefined ? 0 : raw(times.sumS)), 0);
