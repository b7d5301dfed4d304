import type { JobId } from '../../kernel/ids.ts';
import { plus, type EpochMs } from '../../kernel/units.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Admission, Job, JobSpec } from '../../domain/job.ts';
import { templateOf } from '../../domain/job-features.ts';

/** Job record of an admitted specification; no task has been tried. */
export function newJob(
  spec: JobSpec,
  as: {
    readonly id: JobId;
    readonly at: EpochMs;
    readonly after: readonly JobId[];
    readonly admission: Admission;
    /** Absent: not known. */
    readonly by?: Caller | null;
  },
): Job {
  return {
    id: as.id,
    spec,
    template: templateOf(spec),
    state: 'pending',
    stateReason: null,
    submittedMs: as.at,
    deadlineMs: deadlineOf(spec, as.at),
    startedMs: null,
    finishedMs: null,
    cancelRequested: false,
    ...(as.by === undefined || as.by === null ? {} : { submittedBy: as.by }),
    stages: spec.stages.map(({ name, tasks }) => ({
      name,
      tasks,
      nextFresh: 0,
      waiting: 0,
      running: 0,
      succeeded: 0,
      failed: 0,
      cancelled: 0,
      ...(spec.class === 'service' ? { noCopies: 'it is a replica of a service' } : {}),
    })),
    after: as.after,
    admission: as.admission,
  };
}

/** Null for a job without one. */
export function deadlineOf(spec: Pick<JobSpec, 'deadline'>, submittedMs: EpochMs): EpochMs | null {
  if (spec.deadline === null) return null;
  return 'atMs' in spec.deadline ? spec.deadline.atMs : plus(submittedMs, spec.deadline.afterS);
}
