import { type Caller, callerText } from '../../domain/caller.ts';
import type { Job } from '../../domain/job.ts';
import type { Cancelling, EventRecord } from '../../ports/store.ts';

/**
 * What a store adds to the event log with each job that it takes, in the same transaction: without it a job would be
 * seen only once something became of it. Repeated and refused submissions leave no event.
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

/** What a store adds to the event log with the first request to cancel a job that says who asks. */
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
