import { compareText } from '../../../kernel/compare.ts';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId, InstanceId, JobId } from '../../../kernel/ids.ts';
import { raw } from '../../../kernel/units.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import { isOver, type Attempt, type Job, type Task } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Explanation, Plan } from '../../../domain/plan.ts';
import type {
  ActiveState,
  Cancelling,
  Change,
  EventRecord,
  JobFilter,
  Page,
  Retention,
  Store,
  Submission,
  SubmitOutcome,
  Submitted,
} from '../../../ports/store.ts';
import { ActiveLoader } from './active.ts';
import { Blobs, ObjectMissing, readingAnew } from './blobs.ts';
import { prepare, prepareArrivals, type Parts, type Prepared } from './changes.ts';
import { arrivals, objectsOf } from './arrivals.ts';
import { cancelBatch } from './cancel.ts';
import { bodyOf, number, textAt, type Item } from './codec.ts';
import { activePartitions, Documents } from './cache.ts';
import { jobDocOf, newestExplained } from './documents.ts';
import { keptRows, ledgerCosts } from './cost-days.ts';
import { Expiry } from './expiry.ts';
import type { ExplanationDoc, InstanceDoc, PlanDoc, RunsDoc, VisitsDoc } from './documents.ts';
import { readEvents } from './event-items.ts';
import { Intake } from './intake.ts';
import { Jobs } from './job-items.ts';
import { Journal, type Head } from './journal.ts';
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
import { inParallel, Table, type Meter } from './dynamo-table.ts';
import type { View } from './view.ts';
import { type By, type CostRow, isKeptSum } from '../../../domain/costs.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';
import { expectKnown } from '../../stores/known-changes.ts';
import { decodeCursor, pageOf } from '../../stores/paging.ts';

export interface DynamoStoreOptions {
  readonly dynamodb: DynamoDBClient;
  readonly s3: S3Client;
  /** Made from `tableDefinition` (keys.ts). */
  readonly table: string;
  /** For what is too large for an item: specifications, plans, explanations, staged commits. */
  readonly bucket: string;
  readonly retention?: Retention;
  /** Wall time, for expiry. */
  readonly nowMs?: () => number;
  readonly meter?: Meter;
  /** How long this process may still take, ms. Default: without end. */
  readonly remainingMs?: () => number;
}

/** Times that a commit is computed anew because another one came between. */
const MAX_ROUNDS = 10;
const DELETES_AT_ONCE = 16;
const SUPERSEDED_AT_ONCE = 16;
/** Instances looked at together while a page is filled. */
const INSTANCES_AT_ONCE = 50;

/**
 * The store of a deployment: one DynamoDB table and one bucket, opened by any number of processes. How commits of any
 * size stay whole, and what a crash leaves at which point: journal.ts. What lies where: docs/aws-store.md.
 *
 * Lifecycle: made -> used -> close (nothing to let go of: the clients are the caller's). Invariants: what `takeLease`,
 * `loadActive` and `commit` see is the state of one commit; other reads see each entity as some commit left it, and a
 * commit too large for one transaction may become visible to them piece by piece. Lists (`jobs`, `instances`, `plans`,
 * costs) are found through indexes, which follow within a second or so.
 * Errors: `too-many-requests`, `aws.unavailable` (repeat), `aws.refused` (a person must act), `store.newer`.
 */
export class DynamoStore implements Store {
  readonly #table: Table;
  readonly #blobs: Blobs;
  readonly #journal: Journal;
  readonly #documents: Documents;
  readonly #jobs: Jobs;
  readonly #intake: Intake;
  readonly #active: ActiveLoader;
  readonly #retention: Retention;
  readonly #nowMs: () => number;
  /** HEAD as this process left it; null when it must be read. */
  #head: Head | null = null;
  /** Commits and loads of one process follow one another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: DynamoStoreOptions) {
    const { dynamodb, s3, table, bucket, meter, remainingMs, nowMs = Date.now } = options;
    this.#nowMs = nowMs;
    this.#table = new Table({
      client: dynamodb,
      name: table,
      nowMs,
      ...(meter === undefined ? {} : { meter }),
      ...(remainingMs === undefined ? {} : { remainingMs }),
    });
    this.#blobs = new Blobs({ client: s3, bucket, meter });
    this.#journal = new Journal(this.#table, this.#blobs, nowMs);
    this.#documents = new Documents(this.#table, this.#blobs);
    this.#jobs = new Jobs(this.#blobs, this.#journal);
    this.#intake = new Intake({
      table: this.#table,
      blobs: this.#blobs,
      jobs: this.#jobs,
      takeIn: () => this.#inTurn(() => this.#takeIn()),
      nowMs,
      expiry: () => this.#expiry(),
    });
    this.#active = new ActiveLoader(this.#blobs);
    this.#retention = options.retention ?? DEFAULT_RETENTION;
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return this.#intake.submit(submissions);
  }

  submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>> {
    return this.#intake.submitted(keys);
  }

  /** A commit of its own: the engine computes anew what it was about to commit. */
  requestCancel(job: JobId, by?: Cancelling): Promise<boolean> {
    return this.#inTurn(async () => {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        await this.#takeIn();
        const head = await this.#journal.head();
        const now = await this.#jobs.get(job);
        if (now === null || isOver(now.state)) return false;
        if (now.cancelRequested && (by === undefined || now.cancelledBy !== undefined)) return true;
        if ((await this.#journal.commit(head, cancelBatch(now, head, by))).status === 'done') return true;
      }
      throw othersKeepChanging();
    });
  }

  /** A commit of its own, as a request to cancel. */
  requestRelease(job: JobId): Promise<boolean> {
    return this.#inTurn(async () => {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        await this.#takeIn();
        const head = await this.#journal.head();
        const now = await this.#jobs.get(job);
        if (now?.held === undefined) return false;
        const { sinceMs } = now.held;
        if (now.releasedHoldMs === sinceMs) return true;
        const writes = [{ key: jobKey(job), set: { rh: number(raw(sinceMs)) } }];
        if ((await this.#journal.commit(head, { writes, head })).status === 'done') return true;
      }
      throw othersKeepChanging();
    });
  }

  takeLease(holder: string): Promise<number> {
    return this.#inTurn(async () => {
      this.#head = null;
      this.#head = await this.#journal.takeLease(holder);
      return this.#head.token;
    });
  }

  commit(token: number, changes: readonly Change[]): Promise<void> {
    return this.#inTurn(() => this.#commit(token, changes));
  }

  async #commit(token: number, changes: readonly Change[]): Promise<void> {
    expectKnown(changes);
    let isAllTakenIn = false;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const head = await this.#headFor(token);
      // A commit of nothing only asks whether the lease still holds.
      if (changes.length === 0 && round > 0) return;
      const parts = await this.#partsAt(head);
      // Until it is known how it ends, nothing that is kept of the head is to be trusted.
      this.#head = null;
      if (!isAllTakenIn && (await concernsUnknownJobs(parts, changes))) {
        isAllTakenIn = true;
        await this.#takeIn();
        continue;
      }
      const prepared = await this.#prepared(parts, head, changes);
      if (prepared !== null && (await this.#isCommitted(head, prepared))) return;
    }
    throw othersKeepChanging();
  }

  /** Null where another commit has superseded an object that this one is computed from. */
  async #prepared(parts: Parts, head: Head, changes: readonly Change[]): Promise<Prepared | null> {
    try {
      return await prepare(parts, head, changes);
    } catch (error) {
      if (!(error instanceof ObjectMissing)) throw error;
      parts.documents.forget();
      const { commits } = await this.#journal.head();
      if (commits !== head.commits) return null;
      throw error;
    }
  }

  async #partsAt(head: Head): Promise<Parts> {
    const documents = await this.#documents.at(this.#journal, head.commits);
    return { blobs: this.#blobs, documents, retention: this.#retention, expiry: this.#expiry() };
  }

  async #supersede(names: readonly string[]): Promise<void> {
    await inParallel(names, SUPERSEDED_AT_ONCE, (name) => this.#blobs.supersede(name));
  }

  #expiry(): Expiry {
    return new Expiry(this.#retention.historyDays, this.#nowMs());
  }

  async #isCommitted(head: Head, { batch, written, dropped }: Prepared): Promise<boolean> {
    const outcome = await this.#journal.commit(head, batch);
    if (outcome.status !== 'done') return false;
    this.#documents.accept(outcome.head.commits, written, batch.writes);
    this.#head = outcome.head;
    await this.#supersede(dropped);
    return true;
  }

  /** Makes jobs of what was submitted (arrivals.ts). */
  async #takeIn(): Promise<void> {
    // Whenever others come between, one of them has got on.
    for (;;) {
      // Another process may take one in between the list and its object: then the list is read anew.
      const found = await readingAnew(() => arrivals(this.#table, this.#blobs));
      if (found.length === 0) return;
      const head = await this.#journal.head();
      const prepared = await prepareArrivals(
        await this.#partsAt(head),
        head,
        found.flatMap((arrival) => arrival.jobs),
      );
      this.#head = null;
      const isNothingNew = prepared.batch.writes.length === 0;
      if (!isNothingNew && !(await this.#isCommitted(head, prepared))) continue;
      // They are known now, whether or not this works: what stays is found to be known by the next look.
      await inParallel(found, DELETES_AT_ONCE, async ({ key }) => {
        await this.#table.write({ key, isDeleted: true }).catch(() => undefined);
      });
      await this.#supersede(found.flatMap(objectsOf));
      return;
    }
  }

  /** The state with all that was submitted. */
  async #current(): Promise<View> {
    await this.#inTurn(() => this.#takeIn());
    return this.#journal.view();
  }

  async #headFor(token: number): Promise<Head> {
    const head = this.#head?.token === token ? this.#head : await this.#journal.head();
    if (head.token === token) return head;
    throw new EbbError('fenced', {
      what: 'another engine has taken over; nothing was written',
      got: `token ${token}`,
      allowed: `token ${head.token}`,
      next: 'stop this engine',
    });
  }

  loadActive(of: 'all' | 'known' = 'all'): Promise<ActiveState> {
    return this.#inTurn(async () => {
      if (of === 'all') await this.#takeIn();
      const state = await readingAnew(() => this.#loaded());
      if (isNothingLeft(state)) await this.#journal.settle();
      return state;
    });
  }

  async #loaded(): Promise<ActiveState> {
    for (;;) {
      const before = await this.#journal.head();
      const documents = await this.#documents.at(this.#journal, before.commits);
      const state = await this.#active.load(documents);
      // What was read of the table may be of a later commit.
      const after = documents.view.reads === 0 ? before : await this.#journal.head();
      this.#head = after;
      if (after.commits === before.commits) return state;
    }
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
    return tasks.sort((a, b) => compareText(a.stage, b.stage) || a.index - b.index);
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

  /** Where it may be: attempts are named `job.stage.index.number`; others have an item that says where they are. */
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

  /** The items at these keys, and what was moved out of them. */
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

  /** Per plan, those that no later plan has replaced: the newest plan's own, and those that moved to their jobs. */
  async #explanationsOf(view: View, plans: readonly PlanDoc[]): Promise<Map<string, readonly Explanation[]>> {
    const { plan: newest, list: current } = await newestExplained(view, this.#blobs);
    const replaced = new Set<string>(current.map((e) => e.job));
    const jobs = [...new Set(plans.flatMap((p) => p.explained).filter((job) => !replaced.has(job)))];
    const docs: ExplanationDoc[] = [
      ...current.map((is, ordinal) => ({ plan: newest, ordinal, is })),
      ...(await explanationsOfJobs(view, jobs)),
    ];
    docs.sort((a, b) => a.ordinal - b.ordinal || compareText(a.is.job, b.is.job));
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

  memory(prefix: string): Promise<ReadonlyMap<string, string>> {
    return this.#inTurn(async () => {
      const found = await readingAnew(async () => {
        const { commits } = await this.#journal.head();
        return (await this.#documents.at(this.#journal, commits)).memory(prefix);
      });
      const rows = [...found].sort((a, b) => compareText(a.key, b.key));
      return new Map(rows.map((row) => [row.key, row.value]));
    });
  }

  async close(): Promise<void> {
    await this.#last;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Nothing is left that a cycle would have to do with. */
const isNothingLeft = ({ jobs, tasks, attempts, instances, openEffects }: ActiveState): boolean =>
  [jobs, tasks, attempts, instances, openEffects].every((list) => list.length === 0);

/**
 * The last explanations of jobs that the newest plan does not explain: in their own items, or beside them where they
 * are long.
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
    [...instances].sort(compareText).map((id) => view.range({ pk: instanceKey(id).pk, prefix: LEDGER })),
  );
  return lists.flat().flatMap((item) => bodyOf<readonly LedgerRow[]>(item));
}

/** Rows of each instance, instances in order of their ids: of all that were settled and have not aged out. */
async function wholeLedger(view: View): Promise<readonly (readonly LedgerRow[])[]> {
  const listed = await view.newest('ledger', Number.MAX_SAFE_INTEGER, Infinity);
  const items = [...(await view.getMany(listed.map((l) => l.key))).values()];
  const sorted = items.sort(
    (a, b) => compareText(textAt(a, 'pk'), textAt(b, 'pk')) || compareText(textAt(a, 'sk'), textAt(b, 'sk')),
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

/** Attempts in order of arrival; one that was moved out of its item and written again counts once. */
function byArrival(docs: readonly RunsDoc[]): Attempt[] {
  const known = new Map<string, readonly [number, Attempt]>();
  for (const entry of docs.flatMap((d) => d.attempts)) {
    const [, attempt] = entry;
    if (!known.has(attempt.id)) known.set(attempt.id, entry);
  }
  return [...known.values()].sort(([a], [b]) => a - b).map(([, attempt]) => attempt);
}

/** A job that the log does not know of may have been submitted. */
async function concernsUnknownJobs({ documents }: Parts, changes: readonly Change[]): Promise<boolean> {
  const keys = changes.flatMap((c) => (c.put === 'job' ? [jobKey(c.value.id)] : []));
  await documents.load(keys);
  return keys.some((key) => documents.job(key).body === null);
}

const othersKeepChanging = (): EbbError =>
  new EbbError('too-many-requests', {
    what: 'others keep changing what this is about; nothing was written',
    next: 'try again in some seconds',
  });

/** Records of tasks that an item of a job's partition holds. */
function runsIn(item: Item): readonly RunsDoc[] {
  const sk = textAt(item, 'sk');
  if (sk.startsWith(RUNS)) return [bodyOf<RunsDoc>(item)];
  return sk === 'JOB' ? [jobDocOf(item).runs].flatMap((runs) => runs ?? []) : [];
}
