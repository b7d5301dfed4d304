/**
 * Best-effort jobs with little work left first (`shortJobsFirst`), where room is short. A job's time counts the same
 * whatever its size: its worth per task is divided by the work that it has left, which is Smith's rule for the weighted
 * sum of completion times, with equal weights, and on one machine the shortest remaining time first. Deadline work,
 * jobs with a stated worth, stops of running work, and plans with room for all are as they were.
 */
import { secondsBetween } from '../kernel/units.ts';
import type { PendingGroup } from '../domain/snapshot.ts';
import type { PlanInput } from './contracts.ts';
import { workOfJobs } from './job-work.ts';

/** Jobs of less work than this are alike, seconds of running time. */
const LEAST_S = 60;
/** A job that has waited for so long counts as one of half its work: a large one is not put off for ever. */
const HALF_AFTER_S = 6 * 3600;

/** Factor in (0, 1] on what a task of the group brings. O(groups + running tasks), then O(1) for each group. */
export function shortJobsFirst(
  input: Pick<PlanInput, 'snapshot' | 'forecasts' | 'work'>,
): (group: PendingGroup) => number {
  const work = input.work?.() ?? workOfJobs(input);
  const { nowMs, jobs } = input.snapshot;
  return ({ job, submittedMs, class: kind }) => {
    const stated = jobs.get(job)?.spec.value.onTimeUsd ?? null;
    if (kind !== 'best-effort' || stated !== null) return 1;
    const leftS = work.get(job)?.leftS ?? 0;
    const waitedS = Math.max(0, secondsBetween(submittedMs, nowMs));
    return LEAST_S / (LEAST_S + leftS * 2 ** (-waitedS / HALF_AFTER_S));
  };
}
