/**
 * What was submitted and no commit knows of yet. A call of a submitter is one item of the partition `NEW`, with its
 * jobs whole: durable, all or nothing. Whoever looks next **takes it in**: a commit gives the jobs their numbers and
 * writes what there is of a job (its item, its event, its place in the lists, its name) with everything else that the
 * log holds, and then the item of `NEW` is deleted.
 *
 * Under an idempotency key the key's item comes first, on the condition that there is none, and holds the job whole,
 * too: so whoever is asked again under the key can put the item of `NEW` in place of a writer that died between the
 * two.
 *
 * Crash points. After the key: nothing has happened, and repeating it completes it. After the item of `NEW`: the job is
 * there. After the commit: what is left in `NEW` is found to be known by its ids, and only deleted; the same is true of
 * what comes late, twice, or from several that complete one another. No clock decides anything but the order of jobs
 * that are taken in together.
 */
import type { Job } from '../../../domain/job.ts';
import type { Submission } from '../../../ports/store.ts';
import { number, text, textAt, type Item } from './codec.ts';
import type { Expiry } from './expiry.ts';
import type { Blobs } from './blobs.ts';
import { ARRIVALS_PREFIX, NEW, newKey, padded, submittedKey, type Key } from './keys.ts';
import type { Table, Write } from './dynamo-table.ts';

export interface Arrival {
  readonly key: Key;
  readonly jobs: readonly Job[];
  /** The object that holds them, when they are too large for an item. */
  readonly object: string | null;
}

/** All there is, in order of submission. */
export async function arrivals(table: Pick<Table, 'range'>, blobs: Blobs): Promise<readonly Arrival[]> {
  const items = await table.range({ pk: NEW });
  const ordered = items.sort((a, b) => (textAt(a, 'at') < textAt(b, 'at') ? -1 : 1));
  return Promise.all(ordered.map((item) => arrivalOf(item, blobs)));
}

async function arrivalOf(item: Item, blobs: Blobs): Promise<Arrival> {
  const key = { pk: textAt(item, 'pk'), sk: textAt(item, 'sk') };
  return { key, jobs: await blobs.valueOf<readonly Job[]>(item), object: item['s3']?.S ?? null };
}

/** What holds the jobs of a call, in an item or an object. */
export const heldJobs = async (blobs: Blobs, jobs: readonly Job[], name: string): Promise<NonNullable<Write['set']>> =>
  (await blobs.held(jobs, name)).set;

export const objectOf = (job: string): string => `${ARRIVALS_PREFIX}${job}`;

let lastMs = 0;
let ordinal = 0;
/** Ascends in this process whatever its clock does. */
function now(nowMs: number): string {
  ordinal = nowMs > lastMs ? 0 : ordinal + 1;
  lastMs = Math.max(lastMs, nowMs);
  return `${padded(lastMs)}.${padded(ordinal)}`;
}

/** `jobs`: those of one call; `held`: what holds them; `nowMs`: wall time. */
export const arrivalWrite = (first: Job, held: NonNullable<Write['set']>, nowMs: number): Write => ({
  key: newKey(first.id),
  set: { ...held, at: text(now(nowMs)) },
  condition: { expression: 'attribute_not_exists(pk)' },
});

/** Whether an item of `NEW` holds the very same jobs. */
export const isSameArrival = (item: Item, held: NonNullable<Write['set']>): boolean =>
  textAt(item, 's3') === textAt(held, 's3') &&
  Buffer.compare(item['b']?.B ?? new Uint8Array(), held['b']?.B ?? new Uint8Array()) === 0;

/**
 * `held`: what holds the job. A key that has expired can be used again, also while the service has not deleted it yet.
 */
export const keyWrite = (
  { job, key: { key, digest } }: { readonly job: string; readonly key: NonNullable<Submission['idempotency']> },
  held: NonNullable<Write['set']>,
  expiry: Expiry,
): Write => ({
  key: submittedKey(key),
  set: { ...held, digest: text(digest), job: text(job), ...expiry.over },
  remove: ['b', 's3'].filter((name) => held[name] === undefined),
  condition: {
    expression: 'attribute_not_exists(pk) OR #ttl <= :nowS',
    names: { '#ttl': 'ttl' },
    values: { ':nowS': number(expiry.nowS) },
  },
});

/** Objects that nobody needs any more once the jobs are known: that of the call, and those of its keys. */
export const objectsOf = ({ jobs, object }: Arrival): readonly string[] =>
  object === null ? [] : [object, ...(jobs.length === 1 ? [] : jobs.map((job) => objectOf(job.id)))];
