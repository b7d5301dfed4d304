import type { JobId } from '../../kernel/ids.ts';
import type { Job, JobSpec, JobState } from '../../domain/job.ts';
import type { JobFilter, Page } from '../../ports/store.ts';
import { decodeCursor, encodeCursor } from '../../ports/store-paging.ts';
import type { Blobs } from './blobs.ts';
import { activePartitions } from './cache.ts';
import { text, textAt } from './codec.ts';
import { jobDocOf, type JobDoc } from './documents.ts';
import { itemOfPartition, jobKey, namedPartition, newKey, padded, specKey, textOf, unpadded } from './keys.ts';
import type { Journal } from './journal.ts';
import type { Table } from './table.ts';
import type { View } from './view.ts';

/** Jobs looked at for one page at most: a page may be short, with a cursor, when few of them are wanted. */
const EXAMINED_PER_PAGE = 2000;
const EXAMINED_AT_ONCE = 50;
/** No number of arrival is beyond. */
const LAST_NUMBER = 999_999_999_999_999;
const STATES_OF_LIVE: ReadonlySet<JobState> = new Set<JobState>(['pending', 'running']);

export const jobOf = (doc: JobDoc, spec: JobSpec): Job | null =>
  doc.body === null ? null : { ...doc.body, cancelRequested: doc.cancelRequested, spec };

/** Specifications that lie beside their jobs. */
export async function specsOf(table: Table, blobs: Blobs, ids: readonly string[]): Promise<Map<string, JobSpec>> {
  const items = await table.getMany(ids.map(specKey));
  const specs = new Map<string, JobSpec>();
  for (const id of ids) {
    const item = items.get(textOf(specKey(id)));
    if (item !== undefined) specs.set(id, await blobs.valueOf<JobSpec>(item));
  }
  return specs;
}

interface Arrived {
  readonly id: string;
  readonly arrival: number;
}

/** Jobs as others than the engine see them: as of the newest commit, or newer. */
export class Jobs {
  readonly #table: Table;
  readonly #blobs: Blobs;
  readonly #journal: Journal;

  constructor(table: Table, blobs: Blobs, journal: Journal) {
    this.#table = table;
    this.#blobs = blobs;
    this.#journal = journal;
  }

  async get(id: string): Promise<Job | null> {
    return (await this.getMany([id])).get(id) ?? null;
  }

  async getMany(ids: readonly string[]): Promise<Map<string, Job>> {
    if (ids.length === 0) return new Map();
    const view = await this.#journal.view();
    return new Map([...(await this.#arrived(view, ids))].map(([id, { job }]) => [id, job]));
  }

  async #arrived(
    view: View,
    ids: readonly string[],
  ): Promise<Map<string, { readonly job: Job; readonly arrival: number | null }>> {
    const items = await view.getMany(ids.map(jobKey));
    const docs = [...new Set(ids)].flatMap((id) => {
      const item = items.get(textOf(jobKey(id)));
      return item === undefined ? [] : [{ id, doc: jobDocOf(item) }];
    });
    const lacking = docs.filter(({ doc }) => doc.body !== null && doc.spec === null).map(({ id }) => id);
    const specs = await specsOf(this.#table, this.#blobs, lacking);
    const jobs = new Map<string, { readonly job: Job; readonly arrival: number | null }>();
    for (const { id, doc } of docs) {
      const spec = doc.spec ?? specs.get(id);
      const job = spec === undefined ? null : jobOf(doc, spec);
      if (job !== null) jobs.set(id, { job, arrival: doc.arrival });
    }
    return jobs;
  }

  /** True when the job is there and not over; then the engine sees the request at its next load. */
  async requestCancel(id: JobId): Promise<boolean> {
    const key = jobKey(id);
    // What its item says may be older than what commits have made of it.
    const state = textAt(await (await this.#journal.view()).get(key), 'st');
    if (!STATES_OF_LIVE.has(state as JobState)) return false;
    const outcome = await this.#table.transact([
      {
        key,
        set: { c: { BOOL: true } },
        condition: {
          expression: 'st IN (:pending, :running)',
          values: { ':pending': text('pending'), ':running': text('running') },
        },
      },
      { key: newKey(id), set: { c: { BOOL: true } } },
    ]);
    return outcome.status === 'done';
  }

  /** Jobs by id, else the newest of the name. */
  async find(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    const byId = await this.getMany(refs);
    const found = new Map<string, Job>();
    for (const ref of new Set(refs)) {
      const job = byId.get(ref) ?? (await this.#newestNamed(ref));
      if (job !== null) found.set(ref, job);
    }
    return found;
  }

  /** A name may be there whose job was given up (single.ts): then the one before it counts. */
  async #newestNamed(name: string): Promise<Job | null> {
    let to = padded(LAST_NUMBER);
    for (;;) {
      const [item] = await this.#table.range({ pk: namedPartition(name), to, descending: true, limit: 1 });
      if (item === undefined) return null;
      const [id, arrival] = [textAt(item, 'job'), unpadded(textAt(item, 'sk'))];
      const there = (await this.#arrived(await this.#journal.view(), [id])).get(id);
      if (there?.arrival === arrival) return there.job;
      to = padded(arrival - 1);
    }
  }

  /** Newest first. Looks at 2,000 jobs at most: a page may have fewer than `limit` and still a `next`. */
  async list(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    const wanted = acceptor(filter);
    let before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('jobs', after);
    if (filter.states?.length === 0) return { items: [], next: null };
    const found: { readonly job: Job; readonly arrival: number }[] = [];
    let examined = 0;
    const view = await this.#journal.view();
    const next = await this.#source(view, filter);
    for (;;) {
      const batch = await next(before, EXAMINED_AT_ONCE);
      const jobs = await this.#arrived(
        view,
        batch.map((b) => b.id),
      );
      for (const { id, arrival } of batch) {
        const there = jobs.get(id);
        // A name may be there under a number that was given up.
        if (there === undefined || there.arrival !== arrival || !wanted(there.job)) continue;
        const { job } = there;
        const last = found.at(-1);
        if (found.length === limit && last !== undefined) return page(found, encodeCursor('jobs', last.arrival));
        found.push({ job, arrival });
      }
      const end = batch.at(-1);
      if (end === undefined || batch.length < EXAMINED_AT_ONCE) return page(found, null);
      before = end.arrival;
      examined += batch.length;
      if (examined >= EXAMINED_PER_PAGE) return page(found, encodeCursor('jobs', before));
    }
  }

  /** Where to look for jobs so that few are looked at in vain: those that live, those of the name, of the owner, or all. */
  async #source(
    view: View,
    filter: JobFilter,
  ): Promise<(before: number, limit: number) => Promise<readonly Arrived[]>> {
    if (filter.states?.every((s) => STATES_OF_LIVE.has(s)) === true) {
      const live = await this.#live(view);
      return async (before, limit) => live.filter((j) => j.arrival < before).slice(0, limit);
    }
    const { name, owner } = filter;
    if (name !== undefined) {
      const pk = namedPartition(name);
      const all = async (before: number, limit: number): Promise<readonly Arrived[]> => {
        const to = padded(Math.min(before - 1, LAST_NUMBER));
        const items = await this.#table.range({ pk, to, descending: true, limit });
        return items.map((i) => ({ id: textAt(i, 'job'), arrival: unpadded(textAt(i, 'sk')) }));
      };
      return all;
    }
    const index = owner === undefined ? { list: 'jobs' } : { owner };
    return async (before, limit) =>
      (await view.newest(index, before, limit)).map(({ key, arrival }) => ({ id: key.pk.slice(2), arrival }));
  }

  async #live(view: View): Promise<readonly Arrived[]> {
    const keys = (await activePartitions(view, this.#table, 'J#')).map(itemOfPartition);
    const items = await view.getMany(keys);
    return [...items.values()]
      .flatMap((item) => {
        const { arrival } = jobDocOf(item);
        return arrival === null ? [] : [{ id: textAt(item, 'pk').slice(2), arrival }];
      })
      .sort((a, b) => b.arrival - a.arrival);
  }
}

const page = (found: readonly { readonly job: Job }[], next: string | null): Page<Job> => ({
  items: found.map((f) => f.job),
  next,
});

function acceptor({ states, owner, name, label }: JobFilter): (job: Job) => boolean {
  return (job) =>
    (states === undefined || states.includes(job.state)) &&
    (owner === undefined || job.spec.owner === owner) &&
    (name === undefined || job.spec.name === name) &&
    (label === undefined || (Object.hasOwn(job.spec.labels, label.key) && job.spec.labels[label.key] === label.value));
}
