import type { AttemptId, InstanceId, JobId } from '../../../kernel/ids.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import type { Attempt, Job, Task } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Explanation, Plan } from '../../../domain/plan.ts';
import type { EventRecord, JobFilter, Page, Retention } from '../../../ports/store.ts';
import { readingAnew, type Blobs } from './blobs.ts';
import { bodyOf, textAt, type Item } from './codec.ts';
import { activePartitions } from './cache.ts';
import { jobDocOf, newestExplained } from './documents.ts';
import { keptRows, ledgerCosts } from './cost-days.ts';
import type { ExplanationDoc, InstanceDoc, PlanDoc, RunsDoc, VisitsDoc } from './documents.ts';
import { readEvents } from './event-items.ts';
import type { Jobs } from './job-items.ts';
import type { Journal } from './journal.ts';
import {
  attemptKey,
  explanationKey,
  innerRunsKey,
  instanceKey,
  itemOfPartition,
  jobKey,
  LEDGER,
  RUNS,
  RUNS_RANGE,
  runsKey,
  textOf,
  VISITS,
  type Key,
} from './keys.ts';
import type { View } from './view.ts';
import { type By, type CostRow, isKeptSum } from '../../../domain/costs.ts';
import { decodeCursor, pageOf } from '../../stores/paging.ts';

export interface QueryParts {
  readonly blobs: Blobs;
  readonly journal: Journal;
  readonly jobs: Jobs;
  readonly retention: Retention;
  /** The newest state, with everything that was submitted. */
  readonly current: () => Promise<View>;
}

/** Instances read together while a page is filled. */
const INSTANCES_AT_ONCE = 50;

/** Reads of the store. They write nothing, except that `current` commits jobs that were submitted. */
export class Queries {
  readonly #blobs: Blobs;
  readonly #journal: Journal;
  readonly #jobs: Jobs;
  readonly #retention: Retention;
  readonly #current: () => Promise<View>;

  constructor({ blobs, journal, jobs, retention, current }: QueryParts) {
    this.#blobs = blobs;
    this.#journal = journal;
    this.#jobs = jobs;
    this.#retention = retention;
    this.#current = current;
  }

  async job(id: JobId): Promise<Job | null> {
    const known = await this.#jobs.get(id);
    if (known !== null) return known;
    await this.#current();
    return this.#jobs.get(id);
  }

  async jobs(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    await this.#current();
    return this.#jobs.list(filter, limit, after);
  }

  async findJobs(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    const byId = await this.#jobs.getMany(refs);
    if (refs.every((ref) => byId.has(ref))) return byId;
    await this.#current();
    return this.#jobs.find(refs);
  }

  async tasks(job: JobId): Promise<readonly Task[]> {
    const tasks = (await this.#runsOf(job)).flatMap((doc) => Object.values(doc.tasks));
    return tasks.sort((a, b) => ascending(a.stage, b.stage) || a.index - b.index);
  }

  async attempts(job: JobId): Promise<readonly Attempt[]> {
    return byArrival(await this.#runsOf(job));
  }

  async attemptsOn(instance: InstanceId): Promise<readonly Attempt[]> {
    const view = await this.#journal.view();
    const items = await view.range({ pk: instanceKey(instance).pk, prefix: VISITS });
    const visits = items.flatMap((item) => bodyOf<VisitsDoc>(item));
    const wanted = new Set(visits.map((v) => v.attempt));
    const docs = await this.#runsAt(
      view,
      visits.map((v) => v.runs),
    );
    return byArrival(docs).filter((a) => wanted.has(a.id));
  }

  async attempt(id: AttemptId): Promise<Attempt | null> {
    const view = await this.#journal.view();
    return byArrival(await this.#runsAt(view, await this.#placesOf(view, id))).find((a) => a.id === id) ?? null;
  }

  /**
   * Items that may hold an attempt. Attempts are named `job.stage.index.number`; one with another name has an item with
   * its place.
   */
  async #placesOf(view: View, id: AttemptId): Promise<readonly Key[]> {
    const item = await view.get(attemptKey(id));
    if (item !== undefined) return [bodyOf<Key>(item)];
    const match = /^([^.]+)\.(.+)\.(\d+)\.\d+$/.exec(id);
    if (match === null) return [];
    const [, job = '', stage = '', index] = match;
    return [jobKey(job), runsKey(job, stage, Number(index))];
  }

  async #runsOf(job: JobId): Promise<readonly RunsDoc[]> {
    const items = await (await this.#journal.view()).range({ pk: jobKey(job).pk, ...RUNS_RANGE });
    return items.flatMap(runsIn);
  }

  /** The documents at these keys, and the attempts that were moved out of them. */
  async #runsAt(view: View, keys: readonly Key[]): Promise<readonly RunsDoc[]> {
    const items = [...(await view.getMany(keys)).values()];
    const docs = items.flatMap((item) => runsIn(item).map((doc) => ({ item, doc })));
    const spilled = docs.filter(({ doc }) => doc.spills > 0);
    const more = await Promise.all(
      spilled.map(({ item }) => {
        const [pk, sk] = [textAt(item, 'pk'), textAt(item, 'sk')];
        return view.range({ pk, prefix: `${sk === 'JOB' ? innerRunsKey('').sk : sk}#` });
      }),
    );
    return [...docs.map((d) => d.doc), ...more.flat().map((item) => bodyOf<RunsDoc>(item))];
  }

  async instances(live: boolean | null, limit: number, after: string | null): Promise<Page<Instance>> {
    let before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('instances', after);
    const found: { readonly instance: Instance; readonly arrival: number }[] = [];
    const view = await this.#journal.view();
    const liveOnes = live === true ? await this.#liveInstances(view) : null;
    for (;;) {
      const batch =
        liveOnes?.filter((i) => i.arrival < before) ?? (await view.newest('instances', before, INSTANCES_AT_ONCE));
      const items = await view.getMany(batch.map((b) => b.key));
      for (const { key, arrival } of batch) {
        const item = items.get(textOf(key));
        const instance = item === undefined ? null : bodyOf<InstanceDoc>(item).instance;
        if (instance !== null && (live === null || isLive(instance) === live)) found.push({ instance, arrival });
      }
      const end = batch.at(-1);
      if (found.length > limit || end === undefined || liveOnes !== null || batch.length < INSTANCES_AT_ONCE) {
        return pageOf(found, { list: 'instances', limit, value: (row) => row.instance });
      }
      before = end.arrival;
    }
  }

  async #liveInstances(view: View): Promise<{ readonly key: Key; readonly arrival: number }[]> {
    const keys = (await activePartitions(view, 'I#')).map(itemOfPartition);
    const items = await view.getMany(keys);
    return [...items.values()]
      .flatMap((item) => {
        const { arrival } = bodyOf<InstanceDoc>(item);
        return arrival === null ? [] : [{ key: { pk: textAt(item, 'pk'), sk: textAt(item, 'sk') }, arrival }];
      })
      .sort((a, b) => b.arrival - a.arrival);
  }

  plans(limit: number, after: string | null): Promise<Page<Plan>> {
    return readingAnew(() => this.#plans(limit, after));
  }

  async #plans(limit: number, after: string | null): Promise<Page<Plan>> {
    const head = await this.#journal.head();
    const before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('plans', after);
    const view = this.#journal.viewAsKnown();
    const listed = await view.newest('plans', before, limit + 1);
    const kept = listed.filter((p) => p.arrival > head.plans - this.#retention.plans);
    const items = await view.getMany(kept.map((p) => p.key));
    const docs: { readonly doc: PlanDoc; readonly arrival: number }[] = [];
    for (const { key, arrival } of kept) {
      const item = items.get(textOf(key));
      if (item !== undefined) docs.push({ doc: await this.#blobs.valueOf<PlanDoc>(item), arrival });
    }
    const shown = docs.slice(0, limit).map((d) => d.doc);
    const explanations = await this.#explanationsOf(view, shown);
    return pageOf(docs, {
      list: 'plans',
      limit,
      value: ({ doc }) => ({ ...doc.plan, explanations: explanations.get(doc.plan.id) ?? [] }),
    });
  }

  /**
   * Explanations of each plan that no later plan has replaced. The newest plan holds its own; older ones are with their
   * jobs.
   */
  async #explanationsOf(view: View, plans: readonly PlanDoc[]): Promise<Map<string, readonly Explanation[]>> {
    const { plan: newest, list: current } = await newestExplained(view, this.#blobs);
    const replaced = new Set<string>(current.map((e) => e.job));
    const jobs = [...new Set(plans.flatMap((p) => p.explained).filter((job) => !replaced.has(job)))];
    const docs: ExplanationDoc[] = [
      ...current.map((is, ordinal) => ({ plan: newest, ordinal, is })),
      ...(await explanationsOfJobs(view, jobs)),
    ];
    docs.sort((a, b) => a.ordinal - b.ordinal || ascending(a.is.job, b.is.job));
    return new Map(plans.map(({ plan }) => [plan.id, docs.filter((d) => d.plan === plan.id).map((d) => d.is)]));
  }

  async explanation(job: JobId): Promise<Explanation | null> {
    const { view, list } = await readingAnew(async () => {
      const view = await this.#journal.view();
      return { view, ...(await newestExplained(view, this.#blobs)) };
    });
    const current = list.find((e) => e.job === job);
    if (current !== undefined) return current;
    const [last] = await explanationsOfJobs(view, [job]);
    return last?.is ?? null;
  }

  async ledger(of: { readonly job: JobId } | { readonly instance: InstanceId } | 'all'): Promise<readonly LedgerRow[]> {
    const view = await this.#journal.view();
    if (of !== 'all' && 'instance' in of) return ledgerOf(view, [of.instance]);
    if (of === 'all') return (await wholeLedger(view)).flat();
    const items = await view.range({ pk: jobKey(of.job).pk, ...RUNS_RANGE });
    const pointers = items.map((item) => textAt(item, 'sk')).filter((sk) => sk.startsWith(LEDGER));
    const visited = items.flatMap(runsIn).flatMap((doc) => doc.attempts.map(([, a]) => a.instance as string));
    const instances = new Set([...visited, ...pointers.map((sk) => sk.slice(LEDGER.length))]);
    const rows = await ledgerOf(view, [...instances]);
    return rows.filter((row) => row.job === of.job);
  }

  costs(by: By): Promise<readonly CostRow[]> {
    return readingAnew(async () => {
      const parts = { view: await this.#journal.view(), blobs: this.#blobs };
      return isKeptSum(by) ? keptRows(parts, by) : ledgerCosts(parts, await wholeLedger(parts.view), by);
    });
  }

  async events(after: number, limit: number): Promise<readonly EventRecord[]> {
    await this.#current();
    const head = await this.#journal.head();
    return readEvents(this.#journal.viewAsKnown(), head, { after, limit, keep: this.#retention.events });
  }
}

/**
 * Explanations of jobs that the newest plan does not explain. A short one is in the job's item, a long one has its own.
 */
async function explanationsOfJobs(view: View, jobs: readonly string[]): Promise<readonly ExplanationDoc[]> {
  const items = await view.getMany(jobs.flatMap((job) => [jobKey(job), explanationKey(job)]));
  return jobs.flatMap((job) => {
    const within = items.get(textOf(jobKey(job)));
    if (within?.['y'] !== undefined) return [bodyOf<ExplanationDoc>(within, 'y')];
    const beside = items.get(textOf(explanationKey(job)));
    return beside === undefined ? [] : [bodyOf<ExplanationDoc>(beside)];
  });
}

async function ledgerOf(view: View, instances: readonly string[]): Promise<readonly LedgerRow[]> {
  const lists = await Promise.all(
    [...instances].sort(ascending).map((id) => view.range({ pk: instanceKey(id).pk, prefix: LEDGER })),
  );
  return lists.flat().flatMap((item) => bodyOf<readonly LedgerRow[]>(item));
}

/** Rows of all settled instances that have not expired, sorted by instance id. */
async function wholeLedger(view: View): Promise<readonly (readonly LedgerRow[])[]> {
  const listed = await view.newest('ledger', Number.MAX_SAFE_INTEGER, Infinity);
  const items = [...(await view.getMany(listed.map((l) => l.key))).values()];
  const sorted = items.sort(
    (a, b) => ascending(textAt(a, 'pk'), textAt(b, 'pk')) || ascending(textAt(a, 'sk'), textAt(b, 'sk')),
  );
  const byInstance = new Map<string, LedgerRow[]>();
  for (const item of sorted) {
    const rows = bodyOf<readonly LedgerRow[]>(item);
    const known = byInstance.get(textAt(item, 'pk'));
    if (known === undefined) byInstance.set(textAt(item, 'pk'), [...rows]);
    else known.push(...rows);
  }
  return [...byInstance.values()];
}

const ascending = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Attempts in order of arrival. A moved attempt that was written again counts once. */
function byArrival(docs: readonly RunsDoc[]): Attempt[] {
  const known = new Map<string, readonly [number, Attempt]>();
  for (const entry of docs.flatMap((d) => d.attempts)) {
    const [, attempt] = entry;
    if (!known.has(attempt.id)) known.set(attempt.id, entry);
  }
  return [...known.values()].sort(([a], [b]) => a - b).map(([, attempt]) => attempt);
}

/** Task records in one item of a job's partition. */
function runsIn(item: Item): readonly RunsDoc[] {
  const sk = textAt(item, 'sk');
  if (sk.startsWith(RUNS)) return [bodyOf<RunsDoc>(item)];
  return sk === 'JOB' ? [jobDocOf(item).runs].flatMap((runs) => runs ?? []) : [];
}
