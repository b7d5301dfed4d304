import { EbbError } from '../kernel/errors.ts';
import { recordOf, type Asker } from '../domain/caller.ts';
import type { Backend } from '../ports/backend.ts';
import { checkMayChange } from './access.ts';
import { findJob } from './find-job.ts';
import type { CancelAnswer, ReleaseAnswer } from './schemas.ts';
import { jobSummary } from './views.ts';

/**
 * Requests the end of a job. Repeating has no effect; finished jobs cannot be cancelled. Throws `forbidden` for a
 * caller without the right.
 */
export async function cancelJob(of: Backend, ref: string, caller: Asker | null): Promise<CancelAnswer> {
  const job = await findJob(of, ref);
  checkMayChange(of.access, job, caller);
  const by = caller === null ? undefined : { caller: recordOf(caller), atMs: of.clock.now() };
  const requested = await of.store.requestCancel(job.id, by);
  const now = (await of.store.job(job.id)) ?? job;
  if (requested) {
    of.wake();
    return { outcome: 'requested', job: jobSummary(now) };
  }
  if (now.state === 'cancelled') return { outcome: 'already-cancelled', job: jobSummary(now) };
  throw new EbbError('conflict', {
    what: `the job is over: it has ${now.state}`,
    got: now.id,
    allowed: 'a job that is pending, running or held',
    next: 'See how it ended: `ebb status JOB`.',
  });
}

/**
 * Requests a new decision on a held job. If that fails, the job is held again. Throws `forbidden` for a caller without
 * the right.
 */
export async function releaseJob(of: Backend, ref: string, caller: Asker | null): Promise<ReleaseAnswer> {
  const job = await findJob(of, ref);
  checkMayChange(of.access, job, caller);
  const requested = await of.store.requestRelease(job.id);
  const now = (await of.store.job(job.id)) ?? job;
  if (requested) {
    of.wake();
    return { job: jobSummary(now) };
  }
  throw new EbbError('conflict', {
    what: `the job is not held: it is ${now.state}`,
    got: now.id,
    allowed: 'a job that is held',
    next: 'See where it stands: `ebb status JOB`.',
  });
}
