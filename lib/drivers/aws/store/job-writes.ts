/** Writes of jobs and of the records of their tasks, as parts of one commit. */
import type { Job, TaskRef } from '../../../domain/job.ts';
import type { Blobs } from './blobs.ts';
import { body, bodyOf, encode, flag, text } from './codec.ts';
import {
  isOpenAttempt,
  jobAttributes,
  newJobAttributes,
  newJobDoc,
  type Doc,
  type JobDoc,
  type JobsDoc,
  type ListedJob,
  type RunsDoc,
} from './documents.ts';
import type { Write } from './dynamo-table.ts';
import type { Expiry } from './expiry.ts';
import { innerRunsKey, jobKey, jobsKey, namedKey, specKey, SPECS_PREFIX, spillKey, type Key } from './keys.ts';
import type { View } from './view.ts';

/**
 * Size of a `RUN#` item, in bytes, from which ended attempts are moved to an item of their own. Larger items make each
 * change expensive.
 */
const SPILL_BYTES = 24_576;
/** The same limit for records within a job's own item. */
const SPILL_WITHIN_BYTES = 4_096;

/** Writes of one document, and the document as they leave it. */
export interface DocWrites<D extends Doc> {
  readonly doc: D;
  readonly writes: readonly Write[];
}

export interface NewJob {
  readonly job: Job;
  /** False: the engine put the job, and nobody submitted it. */
  readonly isSubmitted: boolean;
}

/** `doc`: the job as earlier changes of the commit leave it. `arrival`: its number. */
export async function newJobWrites(
  { blobs, expiry }: { readonly blobs: Blobs; readonly expiry: Expiry },
  { job, isSubmitted }: NewJob,
  { doc: now, arrival }: { readonly doc: JobDoc; readonly arrival: number },
): Promise<DocWrites<JobDoc>> {
  const { open, body: jobBody, cancelRequested } = now;
  // A job without a submission record already has task records.
  const isKnown = !isSubmitted || Object.keys(open).length > 0;
  const doc: JobDoc = { ...newJobDoc(job, arrival, isKnown), open, body: jobBody, cancelRequested };
  const writes: Write[] = [{ key: jobKey(job.id), set: newJobAttributes(job, doc) }];
  if (doc.spec === null)
    writes.push({ key: specKey(job.id), ...(await blobs.held(job.spec, `${SPECS_PREFIX}${job.id}`)) });
  writes.push({ key: namedKey(job.spec.name), set: { job: text(job.id), ...expiry.beside } });
  return { doc, writes };
}

/** Adds new jobs to the items that list jobs by arrival. `former`: number of jobs before them. */
export async function listedJobWrites(
  view: View,
  jobs: readonly Job[],
  { former, expiry }: { readonly former: number; readonly expiry: Expiry },
): Promise<readonly Write[]> {
  const lists = new Map<string, { readonly key: Key; readonly list: ListedJob[] }>();
  for (const [n, job] of jobs.entries()) {
    const key = jobsKey(former + n + 1);
    let list = lists.get(key.sk)?.list;
    if (list === undefined) {
      // The open item already holds earlier jobs.
      const item = await view.get(key);
      list = item === undefined ? [] : [...bodyOf<JobsDoc>(item)];
      lists.set(key.sk, { key, list });
    }
    list.push({ id: job.id, owner: job.spec.owner, name: job.spec.name });
  }
  return [...lists.values()].map(({ key, list }) => ({
    key,
    set: { b: body(list satisfies JobsDoc), ...expiry.listed },
  }));
}

/** A job whose item would become too large moves ended attempts to an item of their own. */
export function jobWrites(key: Key, of: JobDoc, before: JobDoc): DocWrites<JobDoc> {
  const { runs } = of;
  const moved = runs === null ? null : spilled(innerRunsKey(key.pk.slice(2)), runs, SPILL_WITHIN_BYTES);
  const doc = moved === null || moved.doc === runs ? of : { ...of, runs: moved.doc };
  const writes = [...(moved?.writes ?? [])];
  const { set, remove } = jobAttributes(doc);
  const isNewlyCancelled = doc.cancelRequested && !before.cancelRequested;
  const isSame = !isNewlyCancelled && JSON.stringify(doc) === JSON.stringify(before);
  if (!isSame) {
    writes.push({
      key,
      set: { ...set, ...(isNewlyCancelled ? { c: flag(true) } : {}) },
      ...(remove === undefined ? {} : { remove }),
    });
  }
  return { doc, writes };
}

export function runsWrites(key: Key, of: RunsDoc): DocWrites<RunsDoc> {
  const { doc, writes } = spilled(key, of, SPILL_BYTES);
  return { doc, writes: [...writes, { key, set: { b: body(doc) } }] };
}

/** Moves ended attempts of a large document to an item of their own. The same document if it is small. */
function spilled(key: Key, doc: RunsDoc, limitBytes: number): DocWrites<RunsDoc> {
  const ended = doc.attempts.filter(([, a]) => !isOpenAttempt(a));
  if (ended.length === 0 || encode(doc).length <= limitBytes) return { doc, writes: [] };
  const spill: RunsDoc = { tasks: {}, attempts: ended, spills: 0 };
  return {
    doc: { tasks: doc.tasks, attempts: doc.attempts.filter(([, a]) => isOpenAttempt(a)), spills: doc.spills + 1 },
    writes: [{ key: spillKey(key, doc.spills), set: { b: body(spill) } }],
  };
}

/** Name of a task within its document. A small job keeps the tasks of all its stages in one. */
export const nameWithin = ({ runs }: JobDoc, { stage, index }: TaskRef): string =>
  runs === null ? String(index) : `${stage}/${index}`;
