import { unreachable } from '../../../kernel/errors.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import type { Attempt, Job, Task, TaskRef } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Plan } from '../../../domain/plan.ts';
import type { Change, EffectRecord, EventRecord, Retention } from '../../../ports/store.ts';
import { ownName, type Blobs } from './blobs.ts';
import { body, bodyOf, encode, flag, number, text, textAt } from './codec.ts';
import {
  hasOpen,
  isFinal,
  isLiveInstance,
  isLiveJob,
  isOpenAttempt,
  isSettled,
  jobAttributes,
  newJobAttributes,
  newJobDoc,
  type ActiveDoc,
  type Doc,
  type ExplainedDoc,
  type InstanceDoc,
  type JobDoc,
  type JobsDoc,
  type ListedJob,
  type RunsDoc,
  type VisitsDoc,
} from './documents.ts';
import { costWrites, type Correction } from './cost-days.ts';
import { EffectList } from './effect-list.ts';
import { eventWrites, forgottenEvents } from './event-items.ts';
import type { Expiry } from './expiry.ts';
import { ledgerWrites } from './ledger-writes.ts';
import { planWrites } from './plan-writes.ts';
import { ActiveList } from './active-list.ts';
import type { Documents, Written } from './cache.ts';
import type { Batch, Head } from './journal.ts';
import {
  attemptKey,
  innerRunsKey,
  instanceKey,
  itemOfPartition,
  jobKey,
  jobsKey,
  MEMORY_PREFIX,
  memoryKey,
  namedKey,
  runsKey,
  specKey,
  SPECS_PREFIX,
  spillKey,
  textOf,
  visitsKey,
  type Key,
} from './keys.ts';
import type { Write } from './dynamo-table.ts';
import { submittedEvent } from '../../stores/job-events.ts';

/** A `RUN#` item beyond this gives its ended attempts away: a change would cost more than the item is worth. */
const SPILL_BYTES = 24_576;
/** The same for those within a job's own item. */
const SPILL_WITHIN_BYTES = 4_096;

export interface Parts {
  readonly blobs: Blobs;
  readonly documents: Documents;
  readonly retention: Retention;
  readonly expiry: Expiry;
}

/** A commit ready to be written, and what to remember and to throw away once it holds. */
export interface Prepared {
  readonly batch: Batch;
  readonly written: Written;
  /** Objects that nothing names any more. */
  readonly dropped: readonly string[];
}

/**
 * Turns changes into writes, computed from the state that `head` is of. Reads what it lacks; writes only large values
 * to the bucket.
 */
export async function prepare(parts: Parts, head: Head, changes: readonly Change[]): Promise<Prepared> {
  const work = new Preparation(parts, head);
  await parts.documents.load(changes.flatMap(keysOf));
  await parts.documents.load(changes.flatMap((change) => runsKeyOf(parts.documents, change) ?? []));
  for (const change of changes) await work.take(change);
  return work.finish();
}

/** Turns jobs that were submitted into writes. Those that are there already count for nothing. */
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

/** Where records of a task are, when that is not its job's own item. */
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
  readonly #newJobs = new Map<string, { readonly job: Job; readonly isSubmitted: boolean }>();
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

  /** The document as this commit leaves it so far. */
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

  /** The specification stays as submitted: only the body is written. A cancel request stays as well. */
  #putJob(job: Job): void {
    const key = jobKey(job.id);
    const doc = this.#job(key);
    const { spec: _, cancelledBy: __, cancelRequested, ...rest } = job;
    if (doc.body === null) this.#newJobs.set(job.id, { job, isSubmitted: false });
    this.#put(key, doc, { ...doc, body: rest, cancelRequested: doc.cancelRequested || cancelRequested });
  }

  /** A job that was submitted. */
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

  /** One write for each item: what concerns several of its attributes comes together. */
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

  /** What has become final goes by itself some day, with all that lies beside it. */
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

  /** Of a small job all that there is lies in its own item, as a rule. */
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
    const { blobs } = this.#parts;
    let arrival = this.#head.jobs;
    for (const { job, isSubmitted } of this.#newJobs.values()) {
      arrival += 1;
      const key = jobKey(job.id);
      const touched = this.#touched.get(textOf(key));
      if (touched === undefined) continue;
      const { open, body: now, cancelRequested } = touched.doc as JobDoc;
      // Of one that nobody submitted, records of its tasks lie beside it already.
      const isKnown = !isSubmitted || Object.keys(open).length > 0;
      const doc: JobDoc = { ...newJobDoc(job, arrival, isKnown), open, body: now, cancelRequested };
      touched.doc = doc;
      this.#write({ key, set: newJobAttributes(job, doc) });
      if (doc.spec === null)
        this.#write({ key: specKey(job.id), ...(await blobs.held(job.spec, `${SPECS_PREFIX}${job.id}`)) });
      this.#write({ key: namedKey(job.spec.name), set: { job: text(job.id), ...this.#parts.expiry.beside } });
    }
    await this.#listJobs();
  }

  async #listJobs(): Promise<void> {
    const lists = new Map<string, { readonly key: Key; readonly list: ListedJob[] }>();
    let arrival = this.#head.jobs;
    for (const { job } of this.#newJobs.values()) {
      arrival += 1;
      const key = jobsKey(arrival);
      let list = lists.get(key.sk)?.list;
      if (list === undefined) {
        // Of the item that is begun those before this commit are there.
        const item = await this.#parts.documents.view.get(key);
        list = item === undefined ? [] : [...bodyOf<JobsDoc>(item)];
        lists.set(key.sk, { key, list });
      }
      list.push({ id: job.id, owner: job.spec.owner, name: job.spec.name });
    }
    for (const { key, list } of lists.values()) {
      this.#write({ key, set: { b: body(list satisfies JobsDoc), ...this.#parts.expiry.listed } });
    }
  }

  #writeDoc(key: Key, of: Doc, before: Doc): void {
    if ('tasks' in of) {
      this.#writeRuns(key, of);
    } else if ('open' in of) {
      const doc = this.#ofOneItem(key, of);
      const { set, remove } = jobAttributes(doc);
      const isNewlyCancelled = doc.cancelRequested && !(before as JobDoc).cancelRequested;
      const isSame = !isNewlyCancelled && JSON.stringify(doc) === JSON.stringify(before);
      if (!isSame) {
        this.#write({
          key,
          set: { ...set, ...(isNewlyCancelled ? { c: flag(true) } : {}) },
          ...(remove === undefined ? {} : { remove }),
        });
      }
    } else {
      this.#write({
        key,
        set: {
          b: body(of),
          ...(of.arrival === null ? {} : { l: text('instances'), a: number(of.arrival) }),
        },
      });
    }
  }

  /** The job without those of its attempts for which its item is too small. */
  #ofOneItem(key: Key, doc: JobDoc): JobDoc {
    const { runs } = doc;
    const kept = runs === null ? null : this.#spilled(innerRunsKey(key.pk.slice(2)), runs, SPILL_WITHIN_BYTES);
    if (kept === runs) return doc;
    const less: JobDoc = { ...doc, runs: kept };
    const touched = this.#touched.get(textOf(key));
    if (touched !== undefined) touched.doc = less;
    return less;
  }

  #writeRuns(key: Key, doc: RunsDoc): void {
    const kept = this.#spilled(key, doc, SPILL_BYTES);
    this.#write({ key, set: { b: body(kept) } });
    const touched = this.#touched.get(textOf(key));
    if (touched !== undefined) touched.doc = kept;
  }

  /** What stays of records that have become too many; ended attempts are moved out. */
  #spilled(key: Key, doc: RunsDoc, limitBytes: number): RunsDoc {
    const ended = doc.attempts.filter(([, a]) => !isOpenAttempt(a));
    if (ended.length === 0 || encode(doc).length <= limitBytes) return doc;
    const spilled: RunsDoc = { tasks: {}, attempts: ended, spills: 0 };
    this.#write({ key: spillKey(key, doc.spills), set: { b: body(spilled) } });
    return {
      tasks: doc.tasks,
      attempts: doc.attempts.filter(([, a]) => isOpenAttempt(a)),
      spills: doc.spills + 1,
    };
  }

  /** Brings `ACTIVE` up to date with what this commit does; null where it stays as it is. */
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
      // A value that needs an object had one before, as a rule.
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

/** Names a task among the records that lie together: of a small job those of all its stages do. */
const nameWithin = ({ runs }: JobDoc, { stage, index }: TaskRef): string =>
  runs === null ? String(index) : `${stage}/${index}`;
