import { EbbError } from '../kernel/errors.ts';
import type { Backend } from '../ports/backend.ts';
import { findJob } from './find-job.ts';
import type { CancelAnswer } from './schemas.ts';
import { jobSummary } from './views.ts';

/** Asks the engine to end a job. Asking again changes nothing; a job that ended by itself cannot be cancelled. */
export async function cancelJob(of: Backend, ref: string): Promise<CancelAnswer> {
  const job = await findJob(of, ref);
  const requested = await of.store.requestCancel(job.id);
  const now = (await of.store.job(job.id)) ?? job;
  if (requested) {
    of.wake();
    return { outcome: 'requested', job: jobSummary(now) };
  }
  if (now.state === 'cancelled') return { outcome: 'already-cancelled', job: jobSummary(now) };
  throw new EbbError('conflict', {
    what: `the job is over: it has ${now.state}`,
    got: now.id,
    allowed: 'a job that is pending or running',
    next: 'See how it ended: `ebb status JOB`.',
  });
}
