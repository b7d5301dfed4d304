import { unreachable } from '../../kernel/errors.ts';
import type { Attempt, Job, Task } from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { Plan } from '../../domain/plan.ts';
import type { Change, EffectRecord, EventRecord } from '../../ports/store.ts';
import type { Retention } from '../../ports/store-retention.ts';
import type { Blobs } from './blobs.ts';
import { body, bodyOf, encode, bytes, flag, number, text, textAt } from './codec.ts';
import {
  hasOpen,
  indexed,
  isLiveInstance,
  isLiveJob,
  isOpenAttempt,
  jobAttributes,
  newJobAttributes,
  type Doc,
  type Documents,
  type EffectsDoc,
  type ExplainedDoc,
  type ExplanationDoc,
  type InstanceDoc,
  type JobDoc,
  type OpenEffects,
  type PlanDoc,
  type RunsDoc,
  type VisitsDoc,
} from './documents.ts';
import { eventWrites, forgottenEvents } from './events.ts';
import type { Batch, Head } from './journal.ts';
import {
  attemptKey,
  COUNTER,
  effectsKey,
  EXPLAINED,
  explanationKey,
  instanceKey,
  jobKey,
  LEDGER,
  ledgerKey,
  ledgerOfJobKey,
  liveKey,
  memoryKey,
  namedKey,
  planKey,
  runsKey,
  specKey,
  spillKey,
  textOf,
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
  readonly written: Parameters<Documents['accept']>[1];
  /** Objects that nothing names any more. */
  readonly dropped: readonly string[];
}

/** Turns changes into writes, computed from the state that `head` is of. Reads what it lacks; writes only large values to the bucket. */
export async function prepare(parts: Parts, head: Head, changes: readonly Change[]): Promise<Prepared> {
  const work = new Preparation(parts, head);
  await parts.documents.load(changes.flatMap(keysOf));
  for (const change of changes) await work.take(change);
  return work.finish();
}

function keysOf(change: Change): Key[] {
  switch (change.put) {
    case 'job':
      return [jobKey(change.value.id)];
    case 'task':
    case 'attempt': {
      const { job, stage, index } = change.value;
      return [jobKey(job), runsKey(job, stage, index)];
    }
    case 'instance':
      return [instanceKey(change.value.id)];
    case 'cursor':
      return [instanceKey(change.instance)];
    default:
      return [];
  }
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
        return this.#putInstance(change.value.id, { instance: change.value });
      case 'cursor':
        return this.#putInstance(change.instance, { cursor: change.sequence });
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
    const key = runsKey(task.job, task.stage, task.index);
    const doc = this.#runs(key);
    this.#putRuns(key, task.job, { ...doc, tasks: { ...doc.tasks, [task.index]: task } });
  }

  #putAttempt(attempt: Attempt): void {
    const key = runsKey(attempt.job, attempt.stage, attempt.index);
    const doc = this.#runs(key);
    const known = doc.attempts.find(([, a]) => a.id === attempt.id);
    const arrival = known?.[0] ?? ++this.#arrivals;
    const attempts = [...doc.attempts.filter(([, a]) => a.id !== attempt.id), [arrival, attempt] as const];
    this.#putRuns(key, attempt.job, { ...doc, attempts });
    if (known !== undefined) return;
    const visits = this.#visits.get(attempt.instance);
    if (visits === undefined) this.#visits.set(attempt.instance, [{ attempt: attempt.id, runs: key }]);
    else visits.push({ attempt: attempt.id, runs: key });
    if (!attempt.id.startsWith(`${attempt.job}.`)) this.#write({ key: attemptKey(attempt.id), set: { b: body(key) } });
  }

  #putRuns(key: Key, job: string, doc: RunsDoc): void {
    this.#put(key, this.#runs(key), doc);
    const { [key.sk]: _, ...others } = this.#job(jobKey(job)).open;
    const { any, attempt } = hasOpen(doc);
    const before = this.#job(jobKey(job));
    this.#put(jobKey(job), before, { ...before, open: any ? { ...others, [key.sk]: attempt } : others });
  }

  #putInstance(id: string, change: Partial<InstanceDoc>): void {
    const key = instanceKey(id);
    const before = this.#instance(key);
    const arrival = before.arrival ?? (change.instance === undefined ? null : ++this.#arrivals);
    this.#put(key, before, { ...before, ...change, arrival });
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
    for (const [instance, visits] of this.#visits) {
      this.#write({ key: visitsKey(instance, this.#head.commits), set: { b: body(visits satisfies VisitsDoc) } });
    }
    const deciding = await this.#numbered();
    for (const { key, doc, before } of this.#touched.values()) this.#writeDoc(key, doc, before);
    for (const write of deciding) this.#writes.delete(textOf(write.key));
    return {
      batch: {
        deciding,
        writes: [...this.#writes.values()],
        head: { arrivals: this.#arrivals, plans: this.#plans },
      },
      written: {
        docs: new Map([...this.#touched].map(([key, { doc }]) => [key, doc])),
        effects,
        explained: this.#explained,
      },
      dropped: this.#dropped,
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
      const doc: JobDoc = { ...(touched.doc as JobDoc), arrival };
      touched.doc = doc;
      const { set, remove } = jobAttributes(doc);
      deciding.push({
        key,
        set: { ...newJobAttributes(job, arrival), ...set, c: flag(doc.cancelRequested) },
        ...(remove === undefined ? {} : { remove }),
        condition: { expression: 'attribute_not_exists(st)' },
      });
      for (const write of await specWrites(this.#parts.blobs, job, arrival)) this.#write(write);
      arrival += 1;
    }
    return deciding;
  }

  #writeDoc(key: Key, doc: Doc, before: Doc): void {
    if ('tasks' in doc) {
      this.#writeRuns(key, doc);
    } else if ('open' in doc) {
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
      this.#writeLive(key, isLiveJob(before as JobDoc), isLiveJob(doc));
    } else {
      this.#write({
        key,
        set: {
          b: body(doc),
          ...(doc.arrival === null ? {} : { l: text('instances'), a: number(doc.arrival) }),
        },
      });
      this.#writeLive(key, isLiveInstance(before as InstanceDoc), isLiveInstance(doc));
    }
  }

  #writeRuns(key: Key, doc: RunsDoc): void {
    const content = encode(doc);
    const ended = doc.attempts.filter(([, a]) => !isOpenAttempt(a));
    if (content.length <= SPILL_BYTES || ended.length === 0) {
      this.#write({ key, set: { b: bytes(content) } });
      return;
    }
    const kept: RunsDoc = {
      tasks: doc.tasks,
      attempts: doc.attempts.filter(([, a]) => isOpenAttempt(a)),
      spills: doc.spills + 1,
    };
    const spilled: RunsDoc = { tasks: {}, attempts: ended, spills: 0 };
    this.#write({ key: spillKey(key, doc.spills), set: { b: body(spilled) } });
    this.#write({ key, set: { b: body(kept) } });
    const touched = this.#touched.get(textOf(key));
    if (touched !== undefined) touched.doc = kept;
  }

  #writeLive(key: Key, was: boolean, is: boolean): void {
    if (was && !is) this.#write({ key: liveKey(key), isDeleted: true });
    if (!was && is) this.#write({ key: liveKey(key), set: {} });
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
      for (const job of jobs) this.#write({ key: ledgerOfJobKey(job, instance), set: {} });
    }
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
export async function specWrites(blobs: Blobs, job: Job, arrival: number): Promise<Write[]> {
  return [
    { key: specKey(job.id), ...(await blobs.held(job.spec, `specs/${job.id}`)) },
    { key: namedKey(job.spec.name, arrival), set: { job: text(job.id) } },
  ];
}
