import { compareText } from '../../../kernel/compare.ts';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId, InstanceId, JobId } from '../../../kernel/ids.ts';
import { raw } from '../../../kernel/units.ts';
import type { Instance } from '../../../domain/instance.ts';
import { isOver, type Attempt, type Job, type Task } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Explanation, Plan } from '../../../domain/plan.ts';
import type { Service } from '../../../domain/service.ts';
import type {
  ActiveState,
  Cancelling,
  Change,
  EventRecord,
  JobFilter,
  NewEvent,
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
import { number } from './codec.ts';
import { Documents } from './cache.ts';
import { Expiry } from './expiry.ts';
import { Intake } from './intake.ts';
import { Jobs } from './job-items.ts';
import { Journal, type Head } from './journal.ts';
import { jobKey } from './keys.ts';
import { Queries } from './queries.ts';
import { allServices, dropWrite, putWrite, serviceBatch, serviceNamed, versionOf } from './services.ts';
import { inParallel, Table, type Meter, type Write } from './dynamo-table.ts';
import type { View } from './view.ts';
import type { By, CostRow } from '../../../domain/costs.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';
import { expectKnown } from '../../stores/known-changes.ts';

export interface DynamoStoreOptions {
  readonly dynamodb: DynamoDBClient;
  readonly s3: S3Client;
  /** Name of the table, made from `tableDefinition` (keys.ts). */
  readonly table: string;
  /** Bucket for values too large for an item: specifications, plans, explanations, large commits. */
  readonly bucket: string;
  readonly retention?: Retention;
  /** Wall time, for expiry. */
  readonly nowMs?: () => number;
  readonly meter?: Meter;
  /** Remaining time of this process, ms. Default: without end. */
  readonly remainingMs?: () => number;
}

/** Tries of a commit. Each is computed anew after another commit came between. */
const MAX_ROUNDS = 10;
const DELETES_AT_ONCE = 16;
const SUPERSEDED_AT_ONCE = 16;

/**
 * Store of a deployment: one DynamoDB table and one bucket, used by any number of processes. Whole commits and crash
 * points: journal.ts. Items and keys: docs/aws-store.md.
 *
 * Lifecycle: made -> used -> close (nothing to release: clients belong to the caller).
 * Invariants: `takeLease`, `loadActive` and `commit` see the state of one commit. Other reads see each entity as of
 * some commit, so a commit may become visible to them piece by piece. Lists (`jobs`, `instances`, `plans`, costs) use
 * indexes, which follow within a second or so.
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
  readonly #queries: Queries;
  readonly #retention: Retention;
  readonly #nowMs: () => number;
  /** HEAD as this process left it; null if it must be read. */
  #head: Head | null = null;
  /** Queue of this process's commits and loads, which run one after another. */
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
    this.#queries = new Queries({
      blobs: this.#blobs,
      journal: this.#journal,
      jobs: this.#jobs,
      retention: this.#retention,
      current: () => this.#current(),
    });
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return this.#intake.submit(submissions);
  }

  submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>> {
    return this.#intake.submitted(keys);
  }

  /** A separate commit: the engine then computes its next one anew. */
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

  /** A separate commit, as for a request to cancel. */
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
      // Empty commits only check that the lease still holds.
      if (changes.length === 0 && round > 0) return;
      const parts = await this.#partsAt(head);
      // Unknown outcome: the cached head is not trusted until the commit is done.
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

  /** Null if another commit has superseded an object that this one reads. */
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

  /** Commits submitted jobs (arrivals.ts). */
  async #takeIn(): Promise<void> {
    // Endless loop without starvation: each conflict means that another process made progress.
    for (;;) {
      // Repeated read: another process may commit a submission between the list and its object.
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
      // Jobs are known even if deleting fails; the next read deletes leftovers.
      await inParallel(found, DELETES_AT_ONCE, async ({ key }) => {
        await this.#table.write({ key, isDeleted: true }).catch(() => undefined);
      });
      await this.#supersede(found.flatMap(objectsOf));
      return;
    }
  }

  /** Newest state, with all submitted jobs. */
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
      // Items in the table may be of a later commit.
      const after = documents.view.reads === 0 ? before : await this.#journal.head();
      this.#head = after;
      if (after.commits === before.commits) return state;
    }
  }

  job(id: JobId): Promise<Job | null> {
    return this.#queries.job(id);
  }

  jobs(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    return this.#queries.jobs(filter, limit, after);
  }

  findJobs(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    return this.#queries.findJobs(refs);
  }

  tasks(job: JobId): Promise<readonly Task[]> {
    return this.#queries.tasks(job);
  }

  attempts(job: JobId): Promise<readonly Attempt[]> {
    return this.#queries.attempts(job);
  }

  attemptsOn(instance: InstanceId): Promise<readonly Attempt[]> {
    return this.#queries.attemptsOn(instance);
  }

  attempt(id: AttemptId): Promise<Attempt | null> {
    return this.#queries.attempt(id);
  }

  instances(live: boolean | null, limit: number, after: string | null): Promise<Page<Instance>> {
    return this.#queries.instances(live, limit, after);
  }

  plans(limit: number, after: string | null): Promise<Page<Plan>> {
    return this.#queries.plans(limit, after);
  }

  explanation(job: JobId): Promise<Explanation | null> {
    return this.#queries.explanation(job);
  }

  ledger(of: { readonly job: JobId } | { readonly instance: InstanceId } | 'all'): Promise<readonly LedgerRow[]> {
    return this.#queries.ledger(of);
  }

  costs(by: By): Promise<readonly CostRow[]> {
    return this.#queries.costs(by);
  }

  events(after: number, limit: number): Promise<readonly EventRecord[]> {
    return this.#queries.events(after, limit);
  }

  services(): Promise<readonly Service[]> {
    return readingAnew(async () => allServices(await this.#journal.view()));
  }

  service(name: string): Promise<Service | null> {
    return readingAnew(async () => serviceNamed(await this.#journal.view(), name));
  }

  putService(service: Service, events: readonly NewEvent[]): Promise<boolean> {
    return this.#changeService(service.name, service.version - 1, { write: putWrite(service), events });
  }

  dropService({ name, version }: Pick<Service, 'name' | 'version'>, events: readonly NewEvent[]): Promise<boolean> {
    return this.#changeService(name, version, { write: dropWrite(name), events });
  }

  /** A separate commit, as for a request to cancel. False: the stored version is another. */
  #changeService(
    name: string,
    version: number,
    { write, events }: { readonly write: Write; readonly events: readonly NewEvent[] },
  ): Promise<boolean> {
    return this.#inTurn(async () => {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const head = await this.#journal.head();
        if ((await versionOf(await this.#journal.view(), name)) !== version) return false;
        if ((await this.#journal.commit(head, serviceBatch(write, events, head))).status === 'done') return true;
      }
      throw othersKeepChanging();
    });
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

/** True if a cycle would have nothing to do. */
const isNothingLeft = ({ jobs, tasks, attempts, instances, openEffects }: ActiveState): boolean =>
  [jobs, tasks, attempts, instances, openEffects].every((list) => list.length === 0);

/** True if the log lacks a changed job: it may have been submitted just now. */
async function concernsUnknownJobs({ documents }: Parts, changes: readonly Change[]): Promise<boolean> {
  const keys = changes.flatMap((c) => (c.put === 'job' ? [jobKey(c.value.id)] : []));
  await documents.load(keys);
  return keys.some((key) => documents.job(key).body === null);
}

const othersKeepChanging = (): EbbError =>
  new EbbError('too-many-requests', {
    what: 'other processes keep changing the same records; nothing was written',
    next: 'try again in some seconds',
  });
