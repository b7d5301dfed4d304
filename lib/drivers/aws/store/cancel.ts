import type { Job } from '../../../domain/job.ts';
import type { Cancelling } from '../../../ports/store.ts';
import { body, flag } from './codec.ts';
import { eventWrites } from './event-items.ts';
import type { Head } from './journal.ts';
import { jobKey } from './keys.ts';
import type { Batch } from './journal.ts';
import { cancelEvent } from '../../stores/job-events.ts';

/** Request to cancel a job as one commit: the flag, its first caller and the event. */
export function cancelBatch(job: Job, head: Head, by: Cancelling | undefined): Batch {
  const key = jobKey(job.id);
  if (by === undefined) return { writes: [{ key, set: { c: flag(true) } }], head };
  const mark = { key, set: { c: flag(true), cb: body(by.caller) } };
  const writes = [mark, ...eventWrites(head.events + 1, [cancelEvent(job, by)])];
  return { writes, head: { ...head, events: head.events + 1 } };
}
