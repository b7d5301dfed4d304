/**
 * Plans that put whole jobs in an order: the first has all the room that it can use, then the next. This cycle only,
 * each group on its best offer; running tasks run to their ends.
 */
import { raw } from '../../kernel/units.ts';
import type { JobId } from '../../kernel/ids.ts';
import { compareText } from '../../kernel/compare.ts';
import { unsolved, type JobWork } from '../../domain/plan.ts';
import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { workOfJobs } from '../../policy/job-work.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { IN_ORDER } from './options.ts';
import { nowAlone, problemOf, type Problem } from './problem.ts';

/** The lowest comes first; ties by submission. */
export type JobRank = (work: JobWork, job: JobId) => number;

/** First in, first out: the order of submission alone. */
export const fifo: JobRank = ({ submittedMs }) => raw(submittedMs);

/** Shortest remaining processing time: the job with the least work left (a baseline of Hopper). */
export const shortestLeft: JobRank = ({ leftS }) => leftS;

export const jobOrderPlan = (rank: JobRank): PlanPolicy<unknown> => jobOrderBy(() => rank);

/** The same, with a rank that depends on the whole decision. */
export const jobOrderBy =
  (rankIn: (input: PlanInput) => JobRank): PlanPolicy<unknown> =>
  (input: PlanInput) => {
    const problem = problemOf(nowAlone(input), IN_ORDER);
    const selection = fill(problem, byJob(problem, input, rankIn(input)), { preemptFor: 'nobody' });
    return Promise.resolve(allotmentOf(problem, selection, unsolved(selection.objectiveUsd)));
  };

/** Choices of this cycle, job by job. O(running tasks + stages + groups x log groups). */
function byJob(problem: Problem, input: PlanInput, rank: JobRank): readonly number[] {
  const work = workOfJobs(input);
  const placeOf = new Map(
    [...work].map(([job, of]) => [job, { rank: rank(of, job), submittedMs: raw(of.submittedMs) }]),
  );
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
