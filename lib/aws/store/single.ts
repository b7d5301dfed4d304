/**
 * One job stored without a transaction, by writes of which the last decides: that of the job's own item. What is written
 * before it (its event, its name, its entry among what is new, its idempotency key) names the job and counts for nothing
 * until the job is there under the number that it names.
 *
 * Crash points. Before the last write: nothing has happened. An event whose job is not there is a gap to readers, as a number
 * is that nobody has written; a name or an entry of such a job is passed over. After it: all is there.
 *
 * Who cannot wait any longer for a job that is announced (a reader of events, another submission under its key) **gives it
 * up**: it leaves in the job's place the number that is given up (`x`), on the condition that the job is not there. A writer
 * that was only slow then finds its last condition failing, and begins anew with what is stored by then. So what anybody
 * has concluded from the absence of a job stays true, whatever clocks say.
 */
import type { Job } from '../../domain/job.ts';
import type { Submission } from '../../ports/store.ts';
import { submittedEvent } from '../../ports/store-events.ts';
import type { Blobs } from './blobs.ts';
import { besideJob } from './changes.ts';
import { flag, number, numberOf, text, textAt } from './codec.ts';
import { newJobAttributes, newJobDoc, type JobDoc } from './documents.ts';
import { eventWrites } from './events.ts';
import { giveUp } from './give-up.ts';
import { COUNTER, jobKey, newKey, submittedKey } from './keys.ts';
import type { Table, Write } from './table.ts';

export interface Created extends Submission {
  /** The number given up of this id; 0: there is an item of the id, and none is; null: there is no item. */
  readonly givenUp: number | null;
}

/** False when others were faster, or gave it up: what is stored must be looked at anew. */
export async function writeSingly(table: Table, blobs: Blobs, created: Created): Promise<boolean> {
  const { job, idempotency, givenUp } = created;
  const item = await table.add(COUNTER, 'n', 1);
  const arrival = numberOf(item, 'n');
  const doc = newJobDoc(job, arrival, givenUp !== null);
  const events = eventWrites(arrival, [submittedEvent(job)], 1).map((write): Write => ({
    ...write,
    set: { ...write.set, j: text(job.id) },
  }));
  const before = [...events, announcement(job, arrival), ...(await besideJob(blobs, job, doc))];
  const first = await Promise.all(
    [...before, ...(idempotency === null ? [] : [keyWrite(job.id, idempotency)])].map(async (write) => {
      const { status, item: found } = await table.write(write);
      // An event that a request has written which was thought lost.
      return status === 'done' || textAt(found, 'j') === job.id;
    }),
  );
  if (first.includes(false)) return false;
  const { status, item: found } = await table.write(jobWrite(job, doc, givenUp));
  // A repeated request finds what the one before it has written.
  return status === 'done' || (found['st'] !== undefined && numberOf(found, 'a') === arrival);
}

/** The job's own item, if it is not there and nobody has given up more than was known. */
export function jobWrite(job: Job, doc: JobDoc, givenUp: number | null): Write {
  const of = { key: jobKey(job.id), set: newJobAttributes(job, doc), remove: ['x'] };
  if (givenUp === null) return { ...of, condition: { expression: 'attribute_not_exists(pk)' } };
  const unchanged = givenUp === 0 ? 'attribute_not_exists(x)' : 'x = :x';
  const condition = { expression: `attribute_not_exists(st) AND ${unchanged}` };
  return { ...of, condition: givenUp === 0 ? condition : { ...condition, values: { ':x': number(givenUp) } } };
}

/** For the next load of the engine. */
export const announcement = (job: Job, arrival: number): Write => ({
  key: newKey(job.id),
  set: { n: number(arrival), ...(job.cancelRequested ? { c: flag(true) } : {}) },
});

export const keyWrite = (job: string, { key, digest }: NonNullable<Submission['idempotency']>): Write => ({
  key: submittedKey(key),
  set: { digest: text(digest), job: text(job) },
  condition: { expression: 'attribute_not_exists(pk) OR job = :job', values: { ':job': text(job) } },
});

/** Takes a key away from a job that is not there, unless it comes meanwhile. */
export async function giveUpKey(table: Table, key: string, job: string): Promise<void> {
  const counter = numberOf(await table.get(COUNTER), 'n');
  if (!(await giveUp(table, job, counter))) return;
  await table.write({
    key: submittedKey(key),
    isDeleted: true,
    condition: { expression: 'job = :job', values: { ':job': text(job) } },
  });
}
