import { type Caller, callerText } from '../../domain/caller.ts';
import type { Job } from '../../domain/job.ts';
import type { Cancelling, EventRecord } from '../../ports/store.ts';

/**
 * Event of a submission, added by the store in the same transaction: without it the log would have no trace of a job
 * until something happens to it. Repeated and refused submissions leave no event.
 */
export function submittedEvent({ id, spec, submittedMs, submittedBy }: Job): Omit<EventRecord, 'sequence'> {
  const tasks = spec.stages.reduce((n, s) => n + s.tasks, 0);
  const stages = spec.stages.length === 1 ? '' : ` in ${spec.stages.length} stages`;
  return {
    atMs: submittedMs,
    type: 'job-submitted',
    job: id,
    text: `job ${spec.name} submitted by ${submitterText(spec.owner, submittedBy)}: ${tasks} ${tasks === 1 ? 'task' : 'tasks'}${stages}`,
    data: { class: spec.class, tasks, ...callerData(submittedBy) },
  };
}

/** Event of the first request with a caller to cancel a job, added by the store. */
export function cancelEvent(
  { id, spec }: Pick<Job, 'id' | 'spec'>,
  { caller, atMs }: Cancelling,
): Omit<EventRecord, 'sequence'> {
  return {
    atMs,
    type: 'job-cancel-requested',
    job: id,
    text: `job ${spec.name}: ${callerText(caller)} asks to cancel it`,
    data: callerData(caller),
  };
}

function submitterText(owner: string, caller: Caller | undefined): string {
  if (caller === undefined || caller.id === owner) return owner;
  return caller.name === owner ? callerText(caller) : `${callerText(caller)} for ${owner}`;
}

const callerData = (caller: Caller | undefined): Record<string, unknown> =>
  caller === undefined ? {} : { caller: caller.id, requestId: caller.requestId };
