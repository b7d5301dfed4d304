/** Jobs that start before all preferences, so that none waits longer than a limit (Hugo*, section 4.3). */
import type { JobId } from '../../kernel/ids.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { workOfJobs } from '../../policy/job-work.ts';
import { slotsOf } from '../../policy/slots.ts';

export interface WaitingJob {
  readonly job: JobId;
  readonly waitedS: number;
  /** Of one of its tasks. */
  readonly taskMilliCpu: number;
}

/** Starts come later than work and slots tell: tasks slow one another down, and some room is too small. */
const LATE_BY = 1.25;

export const pastLimit =
  (limitS: number) =>
  ({ waitedS }: WaitingJob): boolean =>
    waitedS >= limitS;

/**
 * Ours: how many of them, in the order of submission, have to start in that order, because what runs and those before
 * the last one would else keep it from starting within the limit. O(running tasks + jobs).
 */
export function dueInOrder(waiting: readonly WaitingJob[], limitS: number, input: PlanInput): number {
  const work = workOfJobs(input);
  const slots = slotsOf(input.snapshot);
  const timeOf = (job: JobId, taskMilliCpu: number): number => ((work.get(job)?.leftS ?? 0) * taskMilliCpu) / slots;
  const ids = new Set(waiting.map(({ job }) => job));
  const running = new Map(
    input.snapshot.running.flatMap(({ attempt: { job, resources } }) => (ids.has(job) ? [] : [[job, resources]])),
  );
  let aheadS = 0;
  for (const [job, resources] of running) aheadS += timeOf(job, milliCpuIn(resources));
  let due = 0;
  for (const [i, { job, waitedS, taskMilliCpu }] of waiting.entries()) {
    if (waitedS + LATE_BY * aheadS >= limitS) due = i + 1;
    aheadS += timeOf(job, taskMilliCpu);
  }
  return due;
}
