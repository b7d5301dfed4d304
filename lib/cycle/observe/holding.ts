import type { JobId } from '../../kernel/ids.ts';
import { same, type EpochMs } from '../../kernel/units.ts';
import { isOver, type Job } from '../../domain/job.ts';
import type { WorkingState } from '../state/working-state.ts';

/** A job that is to be held, and the fault that it causes. */
export interface Held {
  readonly job: JobId;
  /** One sentence. */
  readonly reason: string;
}

/** Longest text of a fault that is stored with a job. */
const MAX_REASON = 500;

/**
 * Sets a job aside: none of its tasks starts until it is released. Running tasks go on, because stopping them would
 * lose good work, and they need no policy any more. A finished job stays as it is.
 */
export function holdJob(state: WorkingState, { job: id, reason }: Held, at: EpochMs): void {
  const job = state.jobs.get(id);
  if (job === undefined || isOver(job.state) || job.state === 'held') return;
  const said = reason.length <= MAX_REASON ? reason : `${reason.slice(0, MAX_REASON)} ...`;
  state.putJob({ ...job, state: 'held', held: { reason: said, sinceMs: at } });
  state.event('job-held', at, {
    job: id,
    text: `job ${job.spec.name} is held, all others go on: ${said}`,
    data: { reason: said },
  });
}

/** Holds the jobs that kept a decision from being made. */
export function holdAll(
  state: WorkingState,
  { held = [], undecided = 0 }: { readonly held?: readonly Held[]; readonly undecided?: number },
  at: EpochMs,
): void {
  for (const of of held) holdJob(state, of, at);
  if (undecided === 0) return;
  state.event('cycle-partial', at, {
    text: `the scheduler had no time for ${undecided} of its jobs in this cycle; they are decided on in the next ones`,
    data: { undecided },
  });
}

/** Returns held jobs to the cycle that a person has released. O(active jobs). */
export function releaseAll(state: WorkingState, at: EpochMs): void {
  for (const job of state.activeJobs()) {
    if (!isReleased(job)) continue;
    const { held: _, ...rest } = job;
    state.putJob({ ...rest, state: job.startedMs === null ? 'pending' : 'running' });
    state.event('job-released', at, { job: job.id, text: `job ${job.spec.name} is released and is decided on again` });
  }
}

const isReleased = ({ state, held, releasedHoldMs }: Job): boolean =>
  state === 'held' && held !== undefined && releasedHoldMs !== undefined && same(releasedHoldMs, held.sinceMs);
