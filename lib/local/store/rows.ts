import type { Attempt, Job, JobSpec, Task } from '../../domain/job.ts';

/** A job without its specification, which lies in a table of its own. */
export type JobBody = Omit<Job, 'spec'>;

export interface JobRow {
  readonly arrival: number;
  readonly id: string;
  readonly cancel_requested: number;
  readonly body: string;
  readonly spec: string;
}

export function bodyOf(job: Job): JobBody {
  const { spec: _, ...body } = job;
  return body;
}

/** `cancel_requested` is a column of its own, because others than the writer of `body` set it. */
export const jobOf = (row: Omit<JobRow, 'arrival' | 'id' | 'spec'>, spec: JobSpec): Job => ({
  ...(JSON.parse(row.body) as JobBody),
  cancelRequested: row.cancel_requested === 1,
  spec,
});

export const isOpenTask = (task: Task): boolean => task.state === 'waiting' || task.state === 'running';
export const isOpenAttempt = (attempt: Attempt): boolean => attempt.state !== 'ended';
export const asFlag = (value: boolean): number => (value ? 1 : 0);
