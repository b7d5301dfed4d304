import type { Caller } from '../../../domain/caller.ts';
import { epochMs } from '../../../kernel/units.ts';
import type { Attempt, Job, JobSpec, Task } from '../../../domain/job.ts';

/** A job without its specification, which lies in a table of its own. */
export type JobBody = Omit<Job, 'spec'>;

export interface JobRow {
  readonly arrival: number;
  readonly id: string;
  readonly cancel_requested: number;
  readonly cancelled_by: string | null;
  readonly released_hold_ms: number | null;
  readonly body: string;
  readonly spec: string;
}

export function bodyOf(job: Job): JobBody {
  const { spec: _, ...body } = job;
  return body;
}

/**
 * `cancel_requested`, `cancelled_by` and `released_hold_ms` are columns of their own, because others than the writer of
 * `body` set them.
 */
export const jobOf = (row: Omit<JobRow, 'arrival' | 'id' | 'spec'>, spec: JobSpec): Job => ({
  ...(JSON.parse(row.body) as JobBody),
  cancelRequested: row.cancel_requested === 1,
  ...(row.cancelled_by === null ? {} : { cancelledBy: JSON.parse(row.cancelled_by) as Caller }),
  ...(row.released_hold_ms === null ? {} : { releasedHoldMs: epochMs(row.released_hold_ms) }),
  spec,
});

export const isOpenTask = (task: Task): boolean => task.state === 'waiting' || task.state === 'running';
export const isOpenAttempt = (attempt: Attempt): boolean => attempt.state !== 'ended';
export const asFlag = (value: boolean): number => (value ? 1 : 0);
