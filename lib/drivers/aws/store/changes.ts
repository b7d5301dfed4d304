import { unreachable } from '../../../kernel/errors.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import type { Attempt, Job, Task, TaskRef } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Plan } from '../../../domain/plan.ts';
import type { Change, EffectRecord, EventRecord, Retention } from '../../../ports/store.ts';
import { ownName, type Blobs } from './blobs.ts';
import { body, number, text, textAt } from './codec.ts';
import {
  hasOpen,
  isFinal,
  isLiveInstance,
  isLiveJob,
  isSettled,
  type ActiveDoc,
  type Doc,
  type ExplainedDoc,
  type InstanceDoc,
  type JobDoc,
  type RunsDoc,
  type VisitsDoc,
} from './documents.ts';
import { costWrites, type Correction } from './cost-days.ts';
import { EffectList } from './effect-list.ts';
import { eventWrites, forgottenEvents } from './event-items.ts';
import type { Expiry } from './expiry.ts';
import {
  jobWrites,
  listedJobWrites,
  nameWithin,
  newJobWrites,
  runsWrites,
  type DocWrites,
  type NewJob,
} from './job-writes.ts';
import { ledgerWrites } from './ledger-writes.ts';
import { planWrites } from './plan-writes.ts';
import { ActiveList } from './active-list.ts';
import type { Documents, Written } from './cache.ts';
import type { Batch, Head } from './journal.ts';
import {
  attemptKey,
  instanceKey,
  itemOfPartition,
  jobKey,
  jobsKey,
  MEMORY_PREFIX,
  memoryKey,
  runsKey,
  textOf,
  visitsKey,
  type Key,
} from './keys.ts';
import type { Write } from './dynamo-table.ts';
import { submittedEvent } from '../../stores/job-events.ts';

export interface Parts {
  readonly blobs: Blobs;
  readonly documents: Documents;
  readonly retention: Retention;
  readonly expiry: Expiry;
}

/** Commit that is ready to be written, with the documents to cache and the objects to drop once it holds. */
export interface Prepared {
  readonly batch: Batch;
  readonly written: Written;
  /** Superseded objects. */
  readonly dropped: readonly string[];
}

/**
 * Turns changes into writes, based on the state of `head`. Reads missing documents; writes only large values to the
 * bucket.
 */
export async function prepare(parts: Parts, head: Head, changes: readonly Change[]): Promise<Prepared> {
  const work = new Preparation(parts, head);
  await parts.documents.load(changes.flatMap(keysOf));
  await parts.documents.load(changes.flatMap((change) => runsKeyOf(parts.documents, change) ?? []));
  for (const change of changes) await work.take(change);
  return work.finish();
}

/** Turns submitted jobs into writes. Known jobs are ignored. */
export async function prepareArrivals(parts: Parts, head: Head, jobs: readonly Job[]): Promise<Prepared> {
  const work = new Preparation(parts, head);
  await parts.documents.load(jobs.map((job) => jobKey(job.id)));
  for (const job of jobs) work.arrive(job);
  return work.finish();
}

function keysOf(change: Change): Key[] {
  switch (change.put) {
    case 'job':
      return [jobKey(change.value.id)];
    case 'task':
    case 'attempt':
      return [jobKey(change.value.job)];
    case 'instance':
      return [instanceKey(change.value.id)];
    case 'cursor':
      return [instanceKey(change.instance)];
    default:
      return [];
  }
}

/** Key of a task's records, unless they are in the job's own item. */
function runsKeyOf(documents: Documents, change: Change): Key | null {
  if (change.put !== 'task' && change.put !== 'attempt') return null;
  const { job, stage, index } = change.value;
  return documents.job(jobKey(job)).runs === null ? runsKey(job, stage, index) : null;
}

class Preparation {
  readonly #parts: Parts;
  readonly #head: Head;
  #arrivals: number;
  #plans: number;
  readonly #touched = new Map<string, { readonly key: Key; doc: Doc; readonly before: Doc }>();
  readonly #newJobs = new Map<string, NewJob>();
  readonly #visits = new Map<string, { readonly attempt: string; readonly runs: Key }[]>();
  readonly #writes = new Map<string, Write>();
  readonly #events: Omit<EventRecord, 'sequence'>[] = [];
  readonly #ledgers = new Map<string, readonly LedgerRow[]>();
  readonly #memory = new Map<string, string>();
  readonly #dropped: string[] = [];
  readonly #cursors = new Map<string, number>();
  readonly #corrections: Correction[] = [];
  #effects: EffectList | null = null;
  #explained: ExplainedDoc | null = null;

  constructor(parts: Parts, head: Head) {
    this.#parts = parts;
    this.#head = head;
    this.#arrivals = head.arrivals;
    this.#plans = head.plans;
  }

  async take(change: Change): Promise<void> {
    switch (change.put) {
      case 'job':
        return this.#putJob(change.value);
      case 'task':
        return this.#putTask(change.value);
      case 'attempt':
        return this.#putAttempt(change.value);
      case 'instance':
        return this.#putInstance(change.value);
      case 'cursor':
        this.#cursors.set(instanceKey(change.instance).pk, change.sequence);
        return;
      case 'plan':
        return this.#putPlan(change.value);
      case 'effect':
        return this.#putEffect(change.value);
      case 'ledger':
        this.#ledgers.set(change.instance, change.value);
        return;
      case 'event':
        this.#events.push(change.value);
        return;
      case 'memory':
        this.#memory.set(change.key, change.value);
        return;
      default:
        return unreachable(change, 'store commit');
    }
  }

  /** Document as this commit has it so far. */
  #doc<D extends Doc>(key: Key, read: (key: Key) => D): D {
    return (this.#touched.get(textOf(key))?.doc as D | undefined) ?? read(key);
  }

  readonly #job = (key: Key): JobDoc => this.#doc(key, (k) => this.#parts.documents.job(k));
  readonly #runs = (key: Key): RunsDoc => this.#doc(key, (k) => this.#parts.documents.runs(k));
  readonly #instance = (key: Key): InstanceDoc => this.#doc(key, (k) => this.#parts.documents.instance(k));

  #put<D extends Doc>(key: Key, before: D, doc: D): void {
    const known = this.#touched.get(textOf(key));
    if (known === undefined) this.#touched.set(textOf(key), { key, doc, before });
    else known.doc = doc;
  }

  /** Only the body is written: the specification and a cancel request never change. */
  #putJob(job: Job): void {
    const key = jobKey(job.id);
    const doc = this.#job(key);
    const { spec: _, cancelledBy: __, cancelRequested, ...rest } = job;
    if (doc.body === null) this.#newJobs.set(job.id, { job, isSubmitted: false });
    this.#put(key, doc, { ...doc, body: rest, cancelRequested: doc.cancelRequested || cancelRequested });
  }

  /** Adds a submitted job. */
  arrive(job: Job): void {
    const key = jobKey(job.id);
    const doc = this.#job(key);
    if (doc.body !== null) return;
    const { spec: _, cancelledBy: __, cancelRequested, ...rest } = job;
    this.#newJobs.set(job.id, { job, isSubmitted: true });
    this.#events.push(submittedEvent(job));
    this.#put(key, doc, { ...doc, body: rest, cancelRequested });
  }

  #putTask(task: Task): void {
    const doc = this.#runsOf(task);
    this.#putRuns(task, { ...doc, tasks: { ...doc.tasks, [nameWithin(this.#job(jobKey(task.job)), task)]: task } });
  }

  #putAttempt(attempt: Attempt): void {
    const doc = this.#runsOf(attempt);
    const known = doc.attempts.find(([, a]) => a.id === attempt.id);
    const arrival = known?.[0] ?? ++this.#arrivals;
    const attempts = [...doc.attempts.filter(([, a]) => a.id !== attempt.id), [arrival, attempt] as const];
    this.#putRuns(attempt, { ...doc, attempts });
    if (known !== undefined) return;
    const key = jobKey(attempt.job);
    const runs = this.#job(key).runs === null ? runsKey(attempt.job, attempt.stage, attempt.index) : key;
    const visits = this.#visits.get(attempt.instance);
    if (visits === undefined) this.#visits.set(attempt.instance, [{ attempt: attempt.id, runs }]);
    else visits.push({ attempt: attempt.id, runs });
    if (attempt.id.startsWith(`${attempt.job}.`)) return;
    this.#write({ key: attemptKey(attempt.id), set: { b: body(runs), ...this.#parts.expiry.beside } });
  }

  #runsOf({ job, stage, index }: TaskRef): RunsDoc {
    return this.#job(jobKey(job)).runs ?? this.#runs(runsKey(job, stage, index));
  }

  #putRuns({ job, stage, index }: TaskRef, doc: RunsDoc): void {
    const ofJob = jobKey(job);
    const before = this.#job(ofJob);
    if (before.runs !== null) {
      this.#put(ofJob, before, { ...before, runs: doc });
      return;
    }
    const key = runsKey(job, stage, index);
    this.#put(key, this.#runs(key), doc);
    const { [key.sk]: _, ...others } = before.open;
    const { any, attempt } = hasOpen(doc);
    this.#put(ofJob, before, { ...before, open: any ? { ...others, [key.sk]: attempt } : others });
  }

  #putInstance(instance: Instance): void {
    const key = instanceKey(instance.id);
    const before = this.#instance(key);
    this.#put(key, before, { arrival: before.arrival ?? ++this.#arrivals, instance });
  }

  async #putPlan(plan: Plan): Promise<void> {
    const active = await this.#parts.documents.active();
    const live = new Set([...active.values()].flatMap((doc) => Object.keys(doc)));
    const { writes, dropped, explained, isNew } = await planWrites(
      { ...this.#parts, view: this.#parts.documents.view },
      plan,
      {
        commits: this.#head.commits,
        plans: this.#plans,
        former: this.#explained ?? (await this.#parts.documents.explained()),
        pending: this.#writes,
        isLive: (job) => live.has(jobKey(job).pk),
        expiry: this.#parts.expiry,
      },
    );
    if (isNew) this.#plans += 1;
    for (const write of writes) this.#write(write);
    this.#dropped.push(...dropped);
    this.#explained = explained;
  }

  async #putEffect(effect: EffectRecord): Promise<void> {
    this.#effects ??= new EffectList(await this.#parts.documents.effects(), this.#head.commits);
    this.#effects.put(effect, () => ++this.#arrivals);
  }

  /** One write per item: changes of several attributes are joined. */
  #write(write: Write): void {
    const before = this.#writes.get(textOf(write.key));
    const isMore = before !== undefined && before.isDeleted !== true && write.isDeleted !== true;
    this.#writes.set(textOf(write.key), isMore ? joined(before, write) : write);
  }

  async finish(): Promise<Prepared> {
    for (const [instance, rows] of this.#ledgers) {
      const visits = this.#visits.get(instance) ?? [];
      const { writes, correction } = await ledgerWrites(this.#parts.documents.view, {
        instance,
        rows,
        visits,
        arrival: () => ++this.#arrivals,
        expiry: this.#parts.expiry,
      });
      for (const write of writes) this.#write(write);
      this.#corrections.push(correction);
    }
    await this.#writeCosts();
    await this.#writeMemory();
    for (const write of this.#effects?.writes() ?? []) this.#write(write);
    const active = await this.#writeActive();
    for (const [instance, visits] of this.#visits) {
      const key = visitsKey(instance, this.#head.commits);
      this.#write({ key, set: { b: body(visits satisfies VisitsDoc), ...this.#parts.expiry.beside } });
    }
    await this.#writeEvents();
    await this.#writeNewJobs();
    for (const { key, doc, before } of this.#touched.values()) this.#writeDoc(key, doc, before);
    await this.#expire();
    return {
      batch: {
        writes: [...this.#writes.values()],
        head: {
          arrivals: this.#arrivals,
          plans: this.#plans,
          jobs: this.#head.jobs + this.#newJobs.size,
          events: this.#head.events + this.#events.length,
        },
      },
      written: {
        docs: new Map([...this.#touched].map(([key, { doc }]) => [key, doc])),
        effects: this.#effects?.open ?? null,
        active,
        explained: this.#explained,
        memory: new Map([...this.#memory].map(([key, value]) => [memoryKey(key).sk, { key, value }])),
      },
      dropped: this.#dropped,
    };
  }

  async #writeCosts(): Promise<void> {
    const { documents, blobs, expiry } = this.#parts;
    const at = { day: expiry.day, commits: this.#head.commits };
    const { writes, dropped } = await costWrites({ view: documents.view, blobs }, at, this.#corrections);
    for (const write of writes) this.#write(write);
    this.#dropped.push(...dropped);
  }

  /** Sets the expiry of work that became final, and of everything beside it. */
  async #expire(): Promise<void> {
    const { expiry } = this.#parts;
    if (!expiry.isOn) return;
    for (const { key, doc, before } of [...this.#touched.values()]) {
      if ('tasks' in doc) continue;
      if ('instance' in doc) {
        if (isSettled(doc)) this.#write({ key, set: expiry.over });
      } else if (isFinal(doc) && !isFinal(before as JobDoc)) {
        this.#write({ key, set: expiry.over });
        await this.#expireBeside(key, doc);
      }
    }
  }

  /** Expires other items of a job. A small job usually has none. */
  async #expireBeside({ pk }: Key, { arrival, body: job, spec, runs }: JobDoc): Promise<void> {
    const { expiry, documents } = this.#parts;
    if (spec === null || runs === null || runs.spills > 0) {
      const written = [...this.#writes.values()].filter((w) => w.key.pk === pk && w.isDeleted !== true);
      const stored = await documents.view.range({ pk });
      const sks = new Set([...written.map((w) => w.key.sk), ...stored.map((item) => textAt(item, 'sk'))]);
      for (const sk of sks) this.#write({ key: { pk, sk }, set: expiry.over });
    }
    if (arrival === null || !expiry.isLongListed(job)) return;
    const listed = jobsKey(arrival);
    const item = this.#writes.has(textOf(listed)) ? undefined : await documents.view.get(listed);
    if (item?.['b'] !== undefined) this.#write({ key: listed, set: { b: item['b'], ...expiry.listed } });
  }

  async #writeEvents(): Promise<void> {
    if (this.#events.length === 0) return;
    const { documents, retention } = this.#parts;
    const first = this.#head.events + 1;
    for (const write of eventWrites(first, this.#events)) this.#write(write);
    for (const write of await forgottenEvents(documents.view, first, retention.events)) this.#write(write);
  }

  async #writeNewJobs(): Promise<void> {
    const { blobs, documents, expiry } = this.#parts;
    let arrival = this.#head.jobs;
    for (const each of this.#newJobs.values()) {
      arrival += 1;
      const key = jobKey(each.job.id);
      const doc = this.#touched.get(textOf(key))?.doc as JobDoc | undefined;
      if (doc !== undefined) this.#keep(key, await newJobWrites({ blobs, expiry }, each, { doc, arrival }));
    }
    const jobs = [...this.#newJobs.values()].map((n) => n.job);
    for (const write of await listedJobWrites(documents.view, jobs, { former: this.#head.jobs, expiry })) {
      this.#write(write);
    }
  }

  #writeDoc(key: Key, of: Doc, before: Doc): void {
    if ('tasks' in of) this.#keep(key, runsWrites(key, of));
    else if ('open' in of) this.#keep(key, jobWrites(key, of, before as JobDoc));
    else
      this.#write({
        key,
        set: { b: body(of), ...(of.arrival === null ? {} : { l: text('instances'), a: number(of.arrival) }) },
      });
  }

  #keep(key: Key, { doc, writes }: DocWrites<Doc>): void {
    const touched = this.#touched.get(textOf(key));
    if (touched !== undefined) touched.doc = doc;
    for (const write of writes) this.#write(write);
  }

  /** Updates `ACTIVE`; null if it does not change. */
  async #writeActive(): Promise<ReadonlyMap<string, ActiveDoc> | null> {
    const list = new ActiveList(await this.#parts.documents.active());
    for (const { key, doc } of this.#touched.values()) {
      if (!('tasks' in doc)) list.set(key.pk, 'open' in doc ? isLiveJob(doc) : isLiveInstance(doc));
    }
    for (const [partition, cursor] of this.#cursors) {
      const { instance } = this.#instance(itemOfPartition(partition));
      if (instance === null || isLive(instance)) list.place(partition, cursor);
    }
    for (const write of list.writes()) this.#write(write);
    return list.isChanged ? list.items : null;
  }

  async #writeMemory(): Promise<void> {
    for (const [key, value] of this.#memory) {
      const at = memoryKey(key);
      const held = await this.#parts.blobs.held(
        { key, value },
        ownName(`${MEMORY_PREFIX}${at.sk.slice(-64)}-${this.#head.commits}`),
      );
      this.#write({ key: at, ...held });
      // Former object: a large value usually had one before.
      const former = held.set['s3'] === undefined ? undefined : await this.#parts.documents.view.get(at);
      if (former?.['s3'] !== undefined) this.#dropped.push(textAt(former, 's3'));
    }
  }
}

const joined = (before: Write, write: Write): Write => {
  const set = { ...before.set, ...write.set };
  const remove = [...(before.remove ?? []), ...(write.remove ?? [])].filter((name) => set[name] === undefined);
  return { key: write.key, set, remove, once: { ...before.once, ...write.once } };
};
