import { unreachable } from '../../kernel/errors.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import type { Attempt, Job, Task, TaskRef } from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { Plan } from '../../domain/plan.ts';
import type { Change, EffectRecord, EventRecord } from '../../ports/store.ts';
import type { Retention } from '../../ports/store-retention.ts';
import type { Blobs } from './blobs.ts';
import { body, bodyOf, encode, flag, number, text, textAt } from './codec.ts';
import {
  hasOpen,
  indexed,
  isLiveInstance,
  isLiveJob,
  isOpenAttempt,
  jobAttributes,
  newJobAttributes,
  newJobDoc,
  type ActiveDoc,
  type Doc,
  type EffectsDoc,
  type ExplainedDoc,
  type ExplanationDoc,
  type InstanceDoc,
  type JobDoc,
  type PlanDoc,
  type RunsDoc,
  type VisitsDoc,
} from './documents.ts';
import { eventWrites, forgottenEvents } from './events.ts';
import { ActiveList } from './active-list.ts';
import { isKept, type Documents, type Entry, type OpenEffects, type Written } from './cache.ts';
import type { Batch, Head } from './journal.ts';
import {
  attemptKey,
  COUNTER,
  effectsKey,
  EXPLAINED,
  explanationKey,
  innerRunsKey,
  instanceKey,
  itemOfPartition,
  jobKey,
  LEDGER,
  ledgerKey,
  ledgerOfJobKey,
  memoryKey,
  namedKey,
  newKey,
  planKey,
  runsKey,
  specKey,
  spillKey,
  textOf,
  VISITS,
  visitsKey,
  type Key,
} from './keys.ts';
import type { Table, Write } from './table.ts';

/** Effects in one item: rewritten when one of them is confirmed, so not too many. */
const EFFECTS_PER_ITEM = 64;
/** Rows of an instance's ledger in one item, some 40 bytes each. */
const LEDGER_ROWS_PER_ITEM = 500;
/** A `RUN#` item beyond this gives its ended attempts away: a change would cost more than the item is worth. */
const SPILL_BYTES = 24_576;
/** The same for those within a job's own item. */
const SPILL_WITHIN_BYTES = 4_096;
/** Plans forgotten at once at most. */
const FORGET_AT_ONCE = 10;

export interface Parts {
  readonly table: Table;
  readonly blobs: Blobs;
  readonly documents: Documents;
  readonly retention: Retention;
}

/** A commit ready to be written, and what to remember and to throw away once it holds. */
export interface Prepared {
  readonly batch: Batch;
  readonly written: Written;
  /** Objects that nothing names any more. */
  readonly dropped: readonly string[];
  /** Entries that are of no use any more: what they say is in `ACTIVE`, or over. */
  readonly takenIn: readonly Entry[];
}

/** Turns changes into writes, computed from the state that `head` is of. Reads what it lacks; writes only large values to the bucket. */
export async function prepare(parts: Parts, head: Head, changes: readonly Change[]): Promise<Prepared> {
  const work = new Preparation(parts, head);
  await parts.documents.load(changes.flatMap(keysOf));
  await parts.documents.load(changes.flatMap((change) => runsKeyOf(parts.documents, change) ?? []));
  for (const change of changes) await work.take(change);
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
  readonly #newJobs = new Map<string, Job>();
  readonly #visits = new Map<string, { readonly attempt: string; readonly runs: Key }[]>();
  readonly #writes = new Map<string, Write>();
  readonly #events: Omit<EventRecord, 'sequence'>[] = [];
  readonly #ledgers = new Map<string, readonly LedgerRow[]>();
  readonly #memory = new Map<string, string>();
  readonly #dropped: string[] = [];
  readonly #cursors = new Map<string, number>();
  #effects: { items: Map<string, EffectsDoc>; itemOf: Map<string, string>; changed: Set<string>; part: number } | null =
    null;
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
    const { spec: _, cancelRequested, ...rest } = job;
    if (doc.body === null) this.#newJobs.set(job.id, job);
    this.#put(key, doc, { ...doc, body: rest, cancelRequested: doc.cancelRequested || cancelRequested });
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
    if (!attempt.id.startsWith(`${attempt.job}.`)) this.#write({ key: attemptKey(attempt.id), set: { b: body(runs) } });
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
    if (before.cursor !== undefined && before.cursor !== null) {
      // As version 1 kept it: from now on it lies with the others, unless this commit has a newer one.
      if (!this.#cursors.has(key.pk)) this.#cursors.set(key.pk, before.cursor);
    }
    this.#put(key, before, { arrival: before.arrival ?? ++this.#arrivals, instance });
  }

  /** Explanations of the newest plan lie together; those of jobs that it does not explain any more move to their jobs. */
  async #putPlan({ explanations, ...plan }: Plan): Promise<void> {
    const { table, blobs, documents } = this.#parts;
    const key = planKey(plan.id);
    const pending = this.#writes.get(textOf(key));
    const known = pending === undefined ? await table.get(key) : undefined;
    const arrival = pending?.once?.['a'] ?? known?.['a'] ?? number(++this.#plans);
    const former = this.#explained ?? (await documents.explained());
    const now = new Set<string>(explanations.map((e) => e.job));
    former.list.forEach((is, ordinal) => {
      if (!now.has(is.job)) this.#putExplanation({ plan: former.plan, ordinal, is });
    });
    const earlier = known === undefined ? [] : (await blobs.valueOf<PlanDoc>(known)).explained;
    const ofFormer = former.plan === plan.id ? former.list.map((e) => e.job as string) : [];
    const doc: PlanDoc = { plan, explained: [...new Set([...earlier, ...ofFormer, ...now])] };
    const name = (what: string): string => `plans/${plan.id}/${what}-${this.#head.commits}`;
    const held = await blobs.held(doc, name('plan'));
    this.#write({ key, ...held, once: { l: text('plans'), a: arrival } });
    const explained = await blobs.held({ plan: plan.id, list: explanations }, name('explained'));
    this.#write({ key: EXPLAINED, ...explained });
    if (former.object !== null) this.#dropped.push(former.object);
    this.#explained = { plan: plan.id, list: explanations, object: explained.set?.['s3']?.S ?? null };
    await this.#forgetPlans();
  }

  #putExplanation(doc: ExplanationDoc): void {
    this.#write({ key: explanationKey(doc.is.job), set: { b: body(doc) } });
  }

  /** Plans beyond the newest. Numbers of plans have no gaps, so what is too old is known by its number. */
  async #forgetPlans(): Promise<void> {
    const tooOld = this.#plans - this.#parts.retention.plans;
    if (tooOld <= 0) return;
    const { table } = this.#parts;
    const listed = (await table.newest({ list: 'plans' }, tooOld + 1, FORGET_AT_ONCE)).map((p) => p.key);
    const old = listed.filter((key) => !this.#writes.has(textOf(key)));
    for (const item of (await table.getMany(old)).values())
      if (item['s3'] !== undefined) this.#dropped.push(textAt(item, 's3'));
    for (const key of old) this.#write({ key, isDeleted: true });
  }

  async #putEffect(effect: EffectRecord): Promise<void> {
    if (this.#effects === null) {
      const { items, itemOf } = await this.#parts.documents.effects();
      this.#effects = { items: new Map(items), itemOf: new Map(itemOf), changed: new Set(), part: 0 };
    }
    const { items, itemOf, changed } = this.#effects;
    const at = itemOf.get(effect.key);
    if (at !== undefined) {
      const entries = items.get(at) ?? [];
      items.set(
        at,
        effect.outcome === null
          ? entries.map(([n, e]) => (e.key === effect.key ? [n, effect] : [n, e]))
          : entries.filter(([, e]) => e.key !== effect.key),
      );
      if (effect.outcome !== null) itemOf.delete(effect.key);
      changed.add(at);
    } else if (effect.outcome === null) {
      let { sk } = effectsKey(this.#head.commits, this.#effects.part);
      if ((items.get(sk)?.length ?? 0) >= EFFECTS_PER_ITEM) {
        ({ sk } = effectsKey(this.#head.commits, ++this.#effects.part));
      }
      items.set(sk, [...(items.get(sk) ?? []), [++this.#arrivals, effect]]);
      itemOf.set(effect.key, sk);
      changed.add(sk);
    }
  }

  #write(write: Write): void {
    this.#writes.set(textOf(write.key), write);
  }

  async finish(): Promise<Prepared> {
    await this.#writeLedgers();
    await this.#writeMemory();
    const effects = this.#writeEffects();
    const membership = await this.#writeActive();
    for (const [instance, visits] of this.#visits) {
      this.#write({ key: visitsKey(instance, this.#head.commits), set: { b: body(visits satisfies VisitsDoc) } });
    }
    const deciding = await this.#numbered();
    for (const { key, doc, before } of this.#touched.values()) this.#writeDoc(key, doc, before);
    for (const write of deciding) this.#writes.delete(textOf(write.key));
    const writes = [...this.#writes.values()];
    return {
      batch: {
        deciding,
        writes,
        touched: [...[...deciding, ...writes].map((w) => w.key).filter(isKept), ...membership.cancelled],
        head: { arrivals: this.#arrivals, plans: this.#plans },
      },
      written: {
        docs: new Map([...this.#touched].map(([key, { doc }]) => [key, doc])),
        effects,
        active: membership.active,
        explained: this.#explained,
        memory: new Map([...this.#memory].map(([key, value]) => [memoryKey(key).sk, { key, value }])),
      },
      dropped: this.#dropped,
      takenIn: membership.takenIn,
    };
  }

  /** Events and jobs that nobody submitted take numbers that submissions take, too: others may contend for their keys. */
  async #numbered(): Promise<Write[]> {
    const count = this.#events.length + this.#newJobs.size;
    if (count === 0) return [];
    const item = await this.#parts.table.add(COUNTER, 'n', count);
    const first = Number(item['n']?.N ?? 0) - count + 1;
    const deciding = eventWrites(first, this.#events, count);
    const { table, retention } = this.#parts;
    for (const write of await forgottenEvents(table, first, retention.events)) this.#write(write);
    let arrival = first + this.#events.length;
    for (const job of this.#newJobs.values()) {
      const key = jobKey(job.id);
      const touched = this.#touched.get(textOf(key));
      if (touched === undefined) continue;
      const { open, body: now, cancelRequested } = touched.doc as JobDoc;
      // Nobody submitted it, so records of its tasks lie beside it.
      const doc: JobDoc = { ...newJobDoc(job, arrival, true), open, body: now, cancelRequested };
      touched.doc = doc;
      const { set, remove } = jobAttributes(doc);
      deciding.push({
        key,
        set: { ...newJobAttributes(job, doc), ...set },
        ...(remove === undefined ? {} : { remove }),
        condition: { expression: 'attribute_not_exists(st)' },
      });
      for (const write of await besideJob(this.#parts.blobs, job, doc)) this.#write(write);
      arrival += 1;
    }
    return deciding;
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

  /** Brings `ACTIVE` up to date with what this commit does, and with what came in since the last one. */
  async #writeActive(): Promise<{
    readonly active: ReadonlyMap<string, ActiveDoc> | null;
    readonly takenIn: readonly Entry[];
    readonly cancelled: readonly Key[];
  }> {
    const { documents } = this.#parts;
    const takenIn = documents.news.filter((entry) => this.#isSettled(entry));
    const list = new ActiveList(await documents.active());
    for (const { key, doc } of this.#touched.values()) {
      if ('tasks' in doc) continue;
      // Not loaded, and yet announced: it is known now.
      if ('open' in doc && !list.has(key.pk) && !takenIn.some((e) => e.partition === key.pk)) {
        takenIn.push({ key: newKey(key.pk.slice(2)), partition: key.pk, isCancelled: false, arrival: doc.arrival });
      }
      list.set(key.pk, 'open' in doc ? isLiveJob(doc) : isLiveInstance(doc));
    }
    for (const { partition } of takenIn) {
      const key = itemOfPartition(partition);
      const isThere = key.sk === 'INSTANCE' || this.#job(key).body !== null;
      if (isThere && !this.#touched.has(textOf(key))) list.set(partition, !documents.isOver(partition));
    }
    for (const [partition, cursor] of this.#cursors) {
      const key: Key = itemOfPartition(partition);
      const { instance } = this.#instance(key);
      if (instance === null || isLive(instance)) list.place(partition, cursor);
    }
    for (const write of list.writes()) this.#write(write);
    return {
      active: list.isChanged ? list.items : null,
      takenIn,
      cancelled: takenIn.filter((e) => e.isCancelled).map((e) => itemOfPartition(e.partition)),
    };
  }

  /** Whether it is known what became of what an entry announces: a job may be on its way. */
  #isSettled({ partition, arrival }: Entry): boolean {
    const key = itemOfPartition(partition);
    if (key.sk === 'INSTANCE') return true;
    const { body, givenUp = 0 } = this.#job(key);
    return body !== null || (arrival !== null && givenUp >= arrival);
  }

  #writeEffects(): OpenEffects | null {
    if (this.#effects === null) return null;
    const { items, changed } = this.#effects;
    for (const sk of changed) {
      const key = { ...effectsKey(0, 0), sk };
      const entries = items.get(sk) ?? [];
      if (entries.length > 0) this.#write({ key, set: { b: body(entries) } });
      else {
        this.#write({ key, isDeleted: true });
        items.delete(sk);
      }
    }
    return { items, itemOf: indexed(items) };
  }

  /** Rows of an instance replace those before; each job with a row among them points to the instance. */
  async #writeLedgers(): Promise<void> {
    for (const [instance, rows] of this.#ledgers) {
      const { pk } = instanceKey(instance);
      const former = await this.#parts.table.range({ pk, prefix: LEDGER });
      const jobsOf = (list: readonly LedgerRow[]): Set<string> => new Set(list.flatMap((r) => r.job ?? []));
      const jobs = jobsOf(rows);
      for (const item of former) {
        this.#write({ key: { pk, sk: textAt(item, 'sk') }, isDeleted: true });
        for (const job of jobsOf(bodyOf<readonly LedgerRow[]>(item))) {
          if (!jobs.has(job)) this.#write({ key: ledgerOfJobKey(job, instance), isDeleted: true });
        }
      }
      for (let part = 0; part * LEDGER_ROWS_PER_ITEM < rows.length; part++) {
        const some = rows.slice(part * LEDGER_ROWS_PER_ITEM, (part + 1) * LEDGER_ROWS_PER_ITEM);
        this.#write({
          key: ledgerKey(instance, part),
          set: { b: body(some), l: text('ledger'), a: number(++this.#arrivals) },
        });
      }
      // A job's attempts say on which instances they were; only what they do not say is written down.
      const visitors = await this.#visitorsOf(instance, jobs);
      for (const job of jobs) {
        if (!visitors.has(job)) this.#write({ key: ledgerOfJobKey(job, instance), set: {} });
      }
    }
  }

  /** Jobs that have attempts on the instance. */
  async #visitorsOf(instance: string, jobs: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const now = this.#visits.get(instance) ?? [];
    const found = new Set(now.map(({ runs }) => runs.pk.slice(2)));
    if ([...jobs].every((job) => found.has(job))) return found;
    const items = await this.#parts.table.range({ pk: instanceKey(instance).pk, prefix: VISITS });
    for (const { runs } of items.flatMap((item) => bodyOf<VisitsDoc>(item))) found.add(runs.pk.slice(2));
    return found;
  }

  async #writeMemory(): Promise<void> {
    for (const [key, value] of this.#memory) {
      const at = memoryKey(key);
      const held = await this.#parts.blobs.held({ key, value }, `memory/${at.sk.slice(-64)}-${this.#head.commits}`);
      this.#write({ key: at, ...held });
      // A value that needs an object had one before, as a rule.
      const former = held.set?.['s3'] === undefined ? undefined : await this.#parts.table.get(at);
      if (former?.['s3'] !== undefined) this.#dropped.push(textAt(former, 's3'));
    }
  }
}

/** What lies beside a job's own item from its first moment and never changes. */
export async function besideJob(blobs: Blobs, job: Job, doc: JobDoc): Promise<Write[]> {
  const named: Write = { key: namedKey(job.spec.name, doc.arrival ?? 0), set: { job: text(job.id) } };
  if (doc.spec !== null) return [named];
  return [{ key: specKey(job.id), ...(await blobs.held(job.spec, `specs/${job.id}`)) }, named];
}

/** Names a task among the records that lie together: of a small job those of all its stages do. */
const nameWithin = ({ runs }: JobDoc, { stage, index }: TaskRef): string =>
  runs === null ? String(index) : `${stage}/${index}`;
