import type { Constraints } from '../domain/job.ts';
import type { PendingGroup, RunningTask } from '../domain/snapshot.ts';
import type { Begun } from '../domain/work-to-do.ts';

/** Group of a running attempt that would have to start again with the saved progress `keptS`. */
export const pendingAgain = (
  { attempt, stage, deadlineMs, class: jobClass }: RunningTask,
  { id, constraints, keptS, ranS }: Pick<PendingGroup, 'id'> & Required<Begun> & { readonly constraints: Constraints },
): PendingGroup => ({
  id,
  job: attempt.job,
  class: jobClass,
  stage: { ...stage, constraints },
  count: 1,
  members: { indices: [attempt.index] },
  keptS,
  ranS,
  submittedMs: attempt.placedMs,
  deadlineMs,
  need: attempt.resources,
});
