import type { Job } from '../domain/job.ts';
import type { EventRecord } from './store.ts';

/**
 * What a store adds to the event log with each job that it takes, in the same transaction: without it a job would be
 * seen only once something became of it. Repeated and refused submissions leave no event.
 */
export function submittedEvent({ id, spec, submittedMs }: Job): Omit<EventRecord, 'sequence'> {
  const tasks = spec.stages.reduce((n, s) => n + s.tasks, 0);
  const stages = spec.stages.length === 1 ? '' : ` in ${spec.stages.length} stages`;
  return {
    atMs: submittedMs,
    type: 'job-submitted',
    job: id,
    text: `job ${spec.name} submitted by ${spec.owner}: ${tasks} ${tasks === 1 ? 'task' : 'tasks'}${stages}`,
    data: { class: spec.class, tasks },
  };
}
