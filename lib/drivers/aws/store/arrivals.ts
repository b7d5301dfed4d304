/**
 * Submissions that no commit knows yet. Each call of a submitter is one item of the partition `NEW` with its whole
 * jobs: durable, all or nothing. The next reader commits it: the jobs get their numbers, item, event, list entry and
 * name, together with the rest of the commit. Then the item of `NEW` is deleted.
 *
 * With an idempotency key, the key's item is written first, on the condition that there is none. It holds the whole job
 * too. So a repeated call can write the item of `NEW` for a writer that died between the two.
 *
 * Crash points. After the key: nothing has happened, and a repeated call completes it. After the item of `NEW`: the job
 * exists. After the commit: leftovers in `NEW` are recognised by their ids and only deleted. So are late, repeated or
 * concurrent writes. Clocks decide nothing but the order of jobs in one commit.
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
  /** Object with the jobs, if they are too large for an item. */
  readonly object: string | null;
}

/** All submissions, in order. */
export async function arrivals(table: Pick<Table, 'range'>, blobs: Blobs): Promise<readonly Arrival[]> {
  const items = await table.range({ pk: NEW });
  const ordered = items.sort((a, b) => (textAt(a, 'at') < textAt(b, 'at') ? -1 : 1));
  return Promise.all(ordered.map((item) => arrivalOf(item, blobs)));
}

async function arrivalOf(item: Item, blobs: Blobs): Promise<Arrival> {
  const key = { pk: textAt(item, 'pk'), sk: textAt(item, 'sk') };
  return { key, jobs: await blobs.valueOf<readonly Job[]>(item), object: item['s3']?.S ?? null };
}

/** Attributes that hold the jobs of a call, in the item or in an object. */
export const heldJobs = async (blobs: Blobs, jobs: readonly Job[], name: string): Promise<NonNullable<Write['set']>> =>
  (await blobs.held(jobs, name)).set;

export const objectOf = (job: string): string => `${ARRIVALS_PREFIX}${job}`;

let lastMs = 0;
let ordinal = 0;
/** Time that ascends within this process, whatever its clock does. */
function now(nowMs: number): string {
  ordinal = nowMs > lastMs ? 0 : ordinal + 1;
  lastMs = Math.max(lastMs, nowMs);
  return `${padded(lastMs)}.${padded(ordinal)}`;
}

/** `jobs`: those of one call; `held`: their attributes; `nowMs`: wall time. */
export const arrivalWrite = (first: Job, held: NonNullable<Write['set']>, nowMs: number): Write => ({
  key: newKey(first.id),
  set: { ...held, at: text(now(nowMs)) },
  condition: { expression: 'attribute_not_exists(pk)' },
});

/** True if an item of `NEW` holds the same jobs. */
export const isSameArrival = (item: Item, held: NonNullable<Write['set']>): boolean =>
  textAt(item, 's3') === textAt(held, 's3') &&
  Buffer.compare(item['b']?.B ?? new Uint8Array(), held['b']?.B ?? new Uint8Array()) === 0;

/** `held`: attributes with the job. An expired key can be used again, even before the service deletes it. */
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

/** Objects that are not needed once the jobs are known: that of the call and those of its keys. */
export const objectsOf = ({ jobs, object }: Arrival): readonly string[] =>
  object === null ? [] : [object, ...(jobs.length === 1 ? [] : jobs.map((job) => objectOf(job.id)))];
