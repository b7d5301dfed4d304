import { epochMs } from '../../../kernel/units.ts';
import type { Job, JobSpec, JobState } from '../../../domain/job.ts';
import type { JobFilter, Page } from '../../../ports/store.ts';
import { readingAnew, type Blobs } from './blobs.ts';
import { activePartitions } from './cache.ts';
import { bodyOf, textAt } from './codec.ts';
import { jobDocOf, type JobDoc, type JobsDoc } from './documents.ts';
import {
  itemOfPartition,
  jobKey,
  JOBS,
  JOBS_PER_ITEM,
  jobsKey,
  namedKey,
  newKey,
  specKey,
  textOf,
  unpadded,
} from './keys.ts';
import type { Journal } from './journal.ts';
import type { Reader, View } from './view.ts';
import { decodeCursor, encodeCursor } from '../../stores/paging.ts';

/** Most jobs read for one page. If few match, a page may be short, with a cursor. */
const EXAMINED_PER_PAGE = 2000;
const EXAMINED_AT_ONCE = 50;
/** Most items of the list of all jobs per page, and per read. */
const LISTS_PER_PAGE = 1568;
const LISTS_AT_ONCE = 16;
const STATES_OF_LIVE: ReadonlySet<JobState> = new Set<JobState>(['pending', 'running', 'held']);

export const jobOf = (doc: JobDoc, spec: JobSpec): Job | null =>
  doc.body === null
    ? null
    : {
        ...doc.body,
        cancelRequested: doc.cancelRequested,
        ...(doc.cancelledBy === undefined ? {} : { cancelledBy: doc.cancelledBy }),
        ...(doc.releasedHoldMs === null ? {} : { releasedHoldMs: epochMs(doc.releasedHoldMs) }),
        spec,
      };

/** Specifications that are stored beside their jobs. */
export async function specsOf(view: Reader, blobs: Blobs, ids: readonly string[]): Promise<Map<string, JobSpec>> {
  const items = await view.getMany(ids.map(specKey));
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

/** Jobs for readers other than the engine, as of the newest commit or later. */
export class Jobs {
  readonly #blobs: Blobs;
  readonly #journal: Journal;

  constructor(blobs: Blobs, journal: Journal) {
    this.#blobs = blobs;
    this.#journal = journal;
  }

  async get(id: string): Promise<Job | null> {
    return (await this.getMany([id])).get(id) ?? null;
  }

  async getMany(ids: readonly string[]): Promise<Map<string, Job>> {
    if (ids.length === 0) return new Map();
    const arrived = await readingAnew(async () => this.#arrived(await this.#journal.view(), ids));
    return new Map([...arrived].map(([id, { job }]) => [id, job]));
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
    const specs = await specsOf(view, this.#blobs, lacking);
    const jobs = new Map<string, { readonly job: Job; readonly arrival: number | null }>();
    for (const { id, doc } of docs) {
      const spec = doc.spec ?? specs.get(id);
      const job = spec === undefined ? null : jobOf(doc, spec);
      if (job !== null) jobs.set(id, { job, arrival: doc.arrival });
    }
    return jobs;
  }

  /** Ids in use, by a job or a submission. */
  async there(ids: readonly string[]): Promise<Set<string>> {
    const view = await this.#journal.view();
    const items = await view.getMany([...ids.map(jobKey), ...ids.map(newKey)]);
    const isThere = (id: string): boolean =>
      items.has(textOf(newKey(id))) || jobDocOf(items.get(textOf(jobKey(id)))).body !== null;
    return new Set(ids.filter(isThere));
  }

  /** Jobs by id, else the newest job of the name. */
  async find(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    const byId = await this.getMany(refs);
    const found = new Map<string, Job>();
    for (const ref of new Set(refs)) {
      const job = byId.get(ref) ?? (await this.#newestNamed(ref));
      if (job !== null) found.set(ref, job);
    }
    return found;
  }

  async #newestNamed(name: string): Promise<Job | null> {
    const item = await (await this.#journal.view()).get(namedKey(name));
    return item === undefined ? null : this.get(textAt(item, 'job'));
  }

  /**
   * Jobs, newest first. Reads at most 2,000 jobs, found among 50,000 in the list of all. So a page may have fewer than
   * `limit` and still a `next`.
   */
  list(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    return readingAnew(() => this.#list(filter, limit, after));
  }

  async #list(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    const wanted = acceptor(filter);
    const before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('jobs', after);
    if (filter.states?.length === 0) return { items: [], next: null };
    const found: { readonly job: Job; readonly arrival: number }[] = [];
    let examined = 0;
    const view = await this.#journal.view();
    for await (const { batch, lastSeen, isEnd } of await this.#batches(view, filter, before)) {
      const jobs = await this.#arrived(
        view,
        batch.map((b) => b.id),
      );
      for (const { id, arrival } of batch) {
        const there = jobs.get(id);
        if (there === undefined || !wanted(there.job)) continue;
        const last = found.at(-1);
        if (found.length === limit && last !== undefined) return page(found, encodeCursor('jobs', last.arrival));
        found.push({ job: there.job, arrival });
      }
      if (isEnd) return page(found, null);
      examined += batch.length;
      if (examined >= EXAMINED_PER_PAGE) return page(found, encodeCursor('jobs', lastSeen));
    }
    return page(found, null);
  }

  /** Candidates with few misses: open jobs, or the list of all. */
  async #batches(view: View, filter: JobFilter, before: number): Promise<AsyncIterable<Batch>> {
    if (filter.states?.every((s) => STATES_OF_LIVE.has(s)) !== true) {
      const { jobs } = await this.#journal.head();
      return listedBatches(view, { filter, before, jobs, live: () => this.#live(view) });
    }
    const live = (await this.#live(view)).filter((j) => j.arrival < before);
    return inBatches(live);
  }

  async #live(view: View): Promise<readonly Arrived[]> {
    const keys = (await activePartitions(view, 'J#')).map(itemOfPartition);
    const items = await view.getMany(keys);
    return [...items.values()]
      .flatMap((item) => {
        const { arrival } = jobDocOf(item);
        return arrival === null ? [] : [{ id: textAt(item, 'pk').slice(2), arrival }];
      })
      .sort((a, b) => b.arrival - a.arrival);
  }
}

/** Jobs read together, newest first. `lastSeen`: from this arrival on none is missing. */
interface Batch {
  readonly batch: readonly Arrived[];
  readonly lastSeen: number;
  readonly isEnd: boolean;
}

async function* inBatches(all: readonly Arrived[]): AsyncIterable<Batch> {
  for (let from = 0; from === 0 || from < all.length; from += EXAMINED_AT_ONCE) {
    const batch = all.slice(from, from + EXAMINED_AT_ONCE);
    yield { batch, lastSeen: batch.at(-1)?.arrival ?? 0, isEnd: from + EXAMINED_AT_ONCE >= all.length };
  }
}

/** Jobs in the list of all with the owner and name, and open jobs that outlived the list. */
async function* listedBatches(
  view: View,
  {
    filter,
    before,
    jobs,
    live,
  }: {
    readonly filter: JobFilter;
    readonly before: number;
    readonly jobs: number;
    readonly live: () => Promise<readonly Arrived[]>;
  },
): AsyncIterable<Batch> {
  const { owner, name } = filter;
  let next = Math.min(before - 1, jobs);
  let batch: Arrived[] = [];
  for (let items = 0; next > 0 && items < LISTS_PER_PAGE; items += LISTS_AT_ONCE) {
    const to = jobsKey(next).sk;
    const lists = await view.range({ pk: JOBS, to, descending: true, limit: LISTS_AT_ONCE });
    if (lists.length === 0) {
      // Earlier entries have expired; only live jobs remain.
      yield { batch, lastSeen: next + 1, isEnd: false };
      yield* inBatches((await live()).filter((j) => j.arrival <= next));
      return;
    }
    for (const item of lists) {
      const first = unpadded(textAt(item, 'sk')) * JOBS_PER_ITEM + 1;
      for (const [i, job] of [...bodyOf<JobsDoc>(item).entries()].reverse()) {
        if (first + i > next) continue;
        if ((owner ?? job.owner) === job.owner && (name ?? job.name) === job.name) {
          batch.push({ id: job.id, arrival: first + i });
        }
      }
      next = first - 1;
      if (batch.length >= EXAMINED_AT_ONCE) {
        yield { batch, lastSeen: next + 1, isEnd: next === 0 };
        batch = [];
      }
    }
  }
  yield { batch, lastSeen: next + 1, isEnd: next === 0 };
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
