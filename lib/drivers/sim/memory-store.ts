import { compareText } from '../../kernel/compare.ts';
import type { AttemptId, InstanceId, JobId, PlanId } from '../../kernel/ids.ts';
import { EbbError, unreachable } from '../../kernel/errors.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job, type Task } from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { Explanation, Plan } from '../../domain/plan.ts';
import type { Service } from '../../domain/service.ts';
import type {
  ActiveState,
  Cancelling,
  Change,
  EffectRecord,
  EventRecord,
  JobFilter,
  NewEvent,
  OthersChanges,
  Page,
  Retention,
  Store,
  Submission,
  SubmitOutcome,
  Submitted,
} from '../../ports/store.ts';
import { TaskRows } from '../../cycle/state/indexed-rows.ts';
import { Arrivals, Index, RowLists } from './memory-state.ts';
import {
  AGED_OUT,
  type By,
  COST_KEYS,
  type CostRow,
  costsBy,
  CostSums,
  isKeptSum,
  KEPT_SUMS,
} from '../../domain/costs.ts';
import { DEFAULT_RETENTION } from '../stores/retention.ts';
import { expectKnown } from '../stores/known-changes.ts';
import { cancelEvent, submittedEvent } from '../stores/job-events.ts';
import { decodeCursor, pageOf } from '../stores/paging.ts';
import { DAY_MS } from '../../kernel/units.ts';

/** Called for each stored value; must not change the store before the storing call has returned. */
export interface StoreWatcher {
  readonly event?: (event: EventRecord) => void;
  readonly job?: (job: Job) => void;
  readonly instance?: (instance: Instance) => void;
}

const isOpen = (t: Task): boolean => t.state === 'waiting' || t.state === 'running';

/**
 * The store of simulations and tests: the semantics of every other store, nothing survives the process. Values are kept
 * as given and must not be changed afterwards. Every method completes before it returns, so nothing is seen half-done.
 */
export class MemoryStore implements Store {
  readonly #retention: Retention;
  readonly #watcher: StoreWatcher;
  readonly #nowMs: () => number;
  readonly #jobs = new Arrivals<Job>((j) => !isOver(j.state));
  readonly #tasks = new TaskRows();
  readonly #attempts = new Arrivals<Attempt>((a) => a.state !== 'ended');
  readonly #instances = new Arrivals<Instance>(isLive);
  readonly #attemptsOf = new RowLists<Attempt>();
  readonly #attemptsOn = new RowLists<Attempt>();
  readonly #jobsNamed = new Index<JobId>();
  /** Jobs that were not over when somebody asked for their end. */
  readonly #asked = new Set<JobId>();
  readonly #idempotency = new Map<string, { readonly digest: string; readonly job: JobId; readonly atMs: number }>();
  /** Finished jobs by the time of their last put, in that order. */
  readonly #finals = new Map<JobId, number>();
  readonly #settled = new Map<InstanceId, number>();
  /** Sums of aged-out ledgers. */
  readonly #agedCosts: Readonly<Record<By, CostSums>> = {
    job: new CostSums(),
    owner: new CostSums(),
    pool: new CostSums(),
    template: new CostSums(),
    caller: new CostSums(),
  };
  /** In order of arrival. */
  readonly #plans = new Map<PlanId, { readonly plan: Plan; readonly arrival: number }>();
  readonly #explanations = new Map<
    JobId,
    { readonly plan: PlanId; readonly ordinal: number; readonly is: Explanation }
  >();
  /** Effects without an outcome. The outcomes of others are never asked for here. */
  readonly #openEffects = new Map<string, EffectRecord>();
  readonly #ledger = new Map<InstanceId, readonly LedgerRow[]>();
  readonly #ledgerOf = new Index<InstanceId>();
  #events: EventRecord[] = [];
  readonly #cursors = new Map<InstanceId, number>();
  readonly #memory = new Map<string, string>();
  readonly #services = new Map<string, Service>();
  #sequence = 0;
  #planArrivals = 0;
  #token = 0;

  /** `nowMs`: wall time. */
  constructor(retention: Retention = DEFAULT_RETENTION, watcher: StoreWatcher = {}, nowMs: () => number = () => 0) {
    this.#retention = retention;
    this.#watcher = watcher;
    this.#nowMs = nowMs;
  }

  async submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    this.#refuseTakenIds(submissions);
    const outcomes = submissions.map((s) => this.#submit(s));
    this.#forget();
    return outcomes;
  }

  /** Before anything is stored, so that a refused call leaves nothing behind. */
  #refuseTakenIds(submissions: readonly Submission[]): void {
    const ids = new Set<string>();
    this.#ageOut();
    const keys = new Set(this.#idempotency.keys());
    for (const { job, idempotency } of submissions) {
      if (idempotency !== null && keys.has(idempotency.key)) continue;
      if (idempotency !== null) keys.add(idempotency.key);
      if (ids.has(job.id) || this.#jobs.get(job.id) !== undefined) {
        throw new EbbError('conflict', {
          what: 'a job of this id exists already',
          got: job.id,
          next: 'submit it again: a new id is drawn',
        });
      }
      ids.add(job.id);
    }
  }

  #submit({ job, idempotency }: Submission): SubmitOutcome {
    if (idempotency !== null) {
      const known = this.#submitted(idempotency.key);
      if (known !== null) {
        return known.digest === idempotency.digest
          ? { status: 'repeated', job: known.job }
          : { status: 'conflict', key: idempotency.key };
      }
      this.#idempotency.set(idempotency.key, { digest: idempotency.digest, job: job.id, atMs: this.#nowMs() });
    }
    this.#putJob(job);
    this.#addEvent(submittedEvent(job));
    return { status: 'created', job };
  }

  async submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>> {
    const found = new Map<string, Submitted>();
    for (const key of keys) {
      const known = this.#submitted(key);
      if (known !== null) found.set(key, known);
    }
    return found;
  }

  #submitted(key: string): Submitted | null {
    const known = this.#idempotency.get(key);
    const job = known === undefined ? undefined : this.#jobs.get(known.job);
    return known === undefined || job === undefined ? null : { digest: known.digest, job };
  }

  async requestCancel(id: JobId, by?: Cancelling): Promise<boolean> {
    const job = this.#jobs.get(id);
    if (job === undefined || isOver(job.state)) return false;
    const isFirst = by !== undefined && job.cancelledBy === undefined;
    this.#jobs.put(id, { ...job, cancelRequested: true, ...(isFirst ? { cancelledBy: by.caller } : {}) });
    if (isFirst) this.#addEvent(cancelEvent(job, by));
    this.#asked.add(id);
    return true;
  }

  async requestRelease(id: JobId): Promise<boolean> {
    const job = this.#jobs.get(id);
    if (job?.state !== 'held' || job.held === undefined) return false;
    this.#jobs.put(id, { ...job, releasedHoldMs: job.held.sinceMs });
    this.#asked.add(id);
    return true;
  }

  async services(): Promise<readonly Service[]> {
    return [...this.#services.values()].sort((a, b) => compareText(a.name, b.name));
  }

  async service(name: string): Promise<Service | null> {
    return this.#services.get(name) ?? null;
  }

  async putService(service: Service, events: readonly NewEvent[]): Promise<boolean> {
    if ((this.#services.get(service.name)?.version ?? 0) !== service.version - 1) return false;
    this.#services.set(service.name, service);
    for (const event of events) this.#addEvent(event);
    return true;
  }

  async dropService(
    { name, version }: Pick<Service, 'name' | 'version'>,
    events: readonly NewEvent[],
  ): Promise<boolean> {
    if (this.#services.get(name)?.version !== version) return false;
    this.#services.delete(name);
    for (const event of events) this.#addEvent(event);
    return true;
  }

  async takeLease(_holder: string): Promise<number> {
    return ++this.#token;
  }

  async commit(token: number, changes: readonly Change[]): Promise<void> {
    // All or nothing: the only fault that applying could meet is looked for first.
    expectKnown(changes);
    if (token !== this.#token) {
      throw new EbbError('fenced', {
        what: 'another engine has taken over; nothing was written',
        got: `token ${token}`,
        allowed: `token ${this.#token}`,
        next: 'stop this engine',
      });
    }
    for (const change of changes) this.#apply(change);
    this.#forget();
  }

  #apply(change: Change): void {
    switch (change.put) {
      case 'job':
        this.#putJob(change.value);
        break;
      case 'task':
        this.#tasks.load(change.value);
        break;
      case 'attempt': {
        // An attempt never changes its job or instance: both follow from its id.
        const row = this.#attempts.put(change.value.id, change.value);
        if (row === null) break;
        this.#attemptsOf.add(change.value.job, row);
        this.#attemptsOn.add(change.value.instance, row);
        break;
      }
      case 'instance':
        this.#instances.put(change.value.id, change.value);
        if (this.#ages && change.value.state === 'ended' && change.value.costUsd !== null)
          this.#settled.set(change.value.id, this.#nowMs());
        this.#watcher.instance?.(change.value);
        break;
      case 'plan':
        this.#putPlan(change.value);
        break;
      case 'effect':
        if (change.value.outcome === null) this.#openEffects.set(change.value.key, change.value);
        else this.#openEffects.delete(change.value.key);
        break;
      case 'ledger':
        this.#ledger.set(change.instance, change.value);
        for (const row of change.value) if (row.job !== null) this.#ledgerOf.add(row.job, change.instance);
        break;
      case 'event':
        this.#addEvent(change.value);
        break;
      case 'cursor':
        this.#cursors.set(change.instance, change.sequence);
        break;
      case 'memory':
        this.#memory.set(change.key, change.value);
        break;
      default:
        unreachable(change, 'store commit');
    }
  }

  /** The specification stays as submitted, and a cancel request stays, whatever copy the engine puts. */
  #putJob(job: Job): void {
    const known = this.#jobs.get(job.id);
    if (known === undefined) {
      this.#jobs.put(job.id, job);
      this.#jobsNamed.add(job.spec.name, job.id);
    } else {
      const cancelRequested = known.cancelRequested || job.cancelRequested;
      const cancelledBy = known.cancelledBy === undefined ? {} : { cancelledBy: known.cancelledBy };
      const { releasedHoldMs = job.releasedHoldMs } = known;
      const released = releasedHoldMs === undefined ? {} : { releasedHoldMs };
      this.#jobs.put(job.id, { ...job, spec: known.spec, cancelRequested, ...cancelledBy, ...released });
    }
    if (this.#ages && isOver(job.state)) this.#finals.set(job.id, this.#nowMs());
    this.#watcher.job?.(job);
  }

  #addEvent(event: Omit<EventRecord, 'sequence'>): void {
    const record = { ...event, sequence: ++this.#sequence };
    this.#events.push(record);
    this.#watcher.event?.(record);
  }

  #putPlan(plan: Plan): void {
    const arrival = this.#plans.get(plan.id)?.arrival ?? ++this.#planArrivals;
    this.#plans.set(plan.id, { plan, arrival });
    plan.explanations.forEach((is, ordinal) => this.#explanations.set(is.job, { plan: plan.id, ordinal, is }));
  }

  #forget(): void {
    this.#ageOut();
    for (const id of this.#plans.keys()) {
      if (this.#plans.size <= this.#retention.plans) break;
      this.#plans.delete(id);
    }
    // Twice as many are let stand before the array is cut, so that a commit does not copy it each time.
    if (this.#events.length > 2 * this.#retention.events) this.#events = this.#events.slice(-this.#retention.events);
  }

  get #ages(): boolean {
    return this.#retention.historyDays !== null;
  }

  #ageOut(): void {
    const { historyDays } = this.#retention;
    if (historyDays === null) return;
    const cutMs = this.#nowMs() - historyDays * DAY_MS;
    for (const [key, { atMs }] of this.#idempotency) if (atMs <= cutMs) this.#idempotency.delete(key);
    for (const [id, atMs] of this.#finals) if (atMs <= cutMs) this.#ageOutJob(id);
    for (const [id, atMs] of this.#settled) if (atMs <= cutMs) this.#ageOutInstance(id);
  }

  #ageOutJob(id: JobId): void {
    const attempts = this.#attemptsOf.values(id);
    if (attempts.some((a) => a.state !== 'ended')) return;
    for (const attempt of attempts) {
      this.#attempts.forget(attempt.id);
      this.#attemptsOn.forgotten(attempt.instance);
    }
    this.#attemptsOf.forget(id);
    this.forgetJob(id);
    this.#finals.delete(id);
  }

  #ageOutInstance(id: InstanceId): void {
    const rows = this.#ledger.get(id) ?? [];
    for (const by of KEPT_SUMS) this.#agedCosts[by].addInstance(rows, by);
    const all = costsBy([rows], 'pool').total(AGED_OUT);
    if (rows.length > 0) for (const by of COST_KEYS) if (!isKeptSum(by)) this.#agedCosts[by].add(all);
    for (const row of rows) if (row.job !== null) this.#ledgerOf.remove(row.job, id);
    this.#ledger.delete(id);
    this.#cursors.delete(id);
    this.#instances.forget(id);
    this.#settled.delete(id);
  }

  /**
   * Forgets an instance and its attempts without a trace. For a driver that bounds its memory and has kept its figures.
   */
  forgetInstance(id: InstanceId): void {
    for (const attempt of this.#attemptsOn.values(id)) {
      this.#attempts.forget(attempt.id);
      this.#attemptsOf.forgotten(attempt.job);
    }
    this.#attemptsOn.forget(id);
    for (const row of this.#ledger.get(id) ?? []) if (row.job !== null) this.#ledgerOf.remove(row.job, id);
    this.#ledger.delete(id);
    this.#cursors.delete(id);
    this.#instances.forget(id);
  }

  /** Forgets a job without a trace; the cost of its attempts belongs to the instances. */
  forgetJob(id: JobId): void {
    const name = this.#jobs.get(id)?.spec.name;
    if (name !== undefined) this.#jobsNamed.remove(name, id);
    this.#tasks.deleteJob(id);
    this.#explanations.delete(id);
    this.#jobs.forget(id);
  }

  async loadActive(): Promise<ActiveState> {
    const jobs = this.#jobs.open();
    return {
      jobs,
      tasks: jobs.flatMap(({ id }) => this.#tasks.ofJob(id).filter(isOpen)),
      attempts: this.#attempts.open(),
      instances: this.#instances.open(),
      openEffects: [...this.#openEffects.values()],
      cursors: new Map(this.#cursors),
    };
  }

  /** O(new jobs and cancel requests that are open). */
  async changedByOthers(known: { has(job: JobId): boolean }): Promise<OthersChanges> {
    const jobs: Job[] = [];
    // Known jobs came before unknown ones.
    for (const job of this.#jobs.newestOpen()) {
      if (known.has(job.id)) break;
      jobs.push(job);
    }
    jobs.reverse();
    for (const id of this.#asked) {
      const job = this.#jobs.get(id);
      if (job === undefined || isOver(job.state)) this.#asked.delete(id);
      else if (known.has(id)) jobs.push(job);
    }
    return { jobs, openEffects: [...this.#openEffects.values()], cursors: this.#cursors };
  }

  async job(id: JobId): Promise<Job | null> {
    return this.#jobs.get(id) ?? null;
  }

  async jobs(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    const { states, owner, name, label } = filter;
    const wanted = (job: Job): boolean =>
      (states === undefined || states.includes(job.state)) &&
      (owner === undefined || job.spec.owner === owner) &&
      (name === undefined || job.spec.name === name) &&
      (label === undefined ||
        (Object.hasOwn(job.spec.labels, label.key) && job.spec.labels[label.key] === label.value));
    const before = after === null ? Infinity : decodeCursor('jobs', after);
    return pageOf(this.#jobs.newest(wanted, limit + 1, before), { list: 'jobs', limit, value: (row) => row.value });
  }

  async findJobs(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    const found = new Map<string, Job>();
    for (const ref of refs) {
      const job = this.#jobs.get(ref) ?? this.#jobs.get([...this.#jobsNamed.get(ref)].at(-1) ?? '');
      if (job !== undefined) found.set(ref, job);
    }
    return found;
  }

  async tasks(job: JobId): Promise<readonly Task[]> {
    return this.#tasks.ofJob(job).sort((a, b) => compareText(a.stage, b.stage) || a.index - b.index);
  }

  async attempts(job: JobId): Promise<readonly Attempt[]> {
    return this.#attemptsOf.values(job);
  }

  /** True if any attempt of the job is known. O(1). */
  hasAttempts(job: JobId): boolean {
    return this.#attemptsOf.has(job);
  }

  async attemptsOn(instance: InstanceId): Promise<readonly Attempt[]> {
    return this.#attemptsOn.values(instance);
  }

  async attempt(id: AttemptId): Promise<Attempt | null> {
    return this.#attempts.get(id) ?? null;
  }

  async instances(live: boolean | null, limit: number, after: string | null): Promise<Page<Instance>> {
    const before = after === null ? Infinity : decodeCursor('instances', after);
    const rows = this.#instances.newest((i) => live === null || isLive(i) === live, limit + 1, before);
    return pageOf(rows, { list: 'instances', limit, value: (row) => row.value });
  }

  async plans(limit: number, after: string | null): Promise<Page<Plan>> {
    const before = after === null ? Infinity : decodeCursor('plans', after);
    const rows = [...this.#plans.values()].reverse().filter((p) => p.arrival < before);
    const value = ({ plan }: (typeof rows)[number]): Plan => ({
      ...plan,
      explanations: [...this.#explanations.values()]
        .filter((e) => e.plan === plan.id)
        .sort((a, b) => a.ordinal - b.ordinal || compareText(a.is.job, b.is.job))
        .map((e) => e.is),
    });
    return pageOf(rows.slice(0, limit + 1), { list: 'plans', limit, value });
  }

  async explanation(job: JobId): Promise<Explanation | null> {
    return this.#explanations.get(job)?.is ?? null;
  }

  async ledger(of: { readonly job: JobId } | { readonly instance: InstanceId } | 'all'): Promise<readonly LedgerRow[]> {
    if (of !== 'all' && 'instance' in of) return this.#ledger.get(of.instance) ?? [];
    const instances = of === 'all' ? this.#ledger.keys() : this.#ledgerOf.get(of.job);
    const rows = [...instances].sort(compareText).flatMap((id) => this.#ledger.get(id) ?? []);
    return of === 'all' ? rows : rows.filter((row) => row.job === of.job);
  }

  async costs(by: By): Promise<readonly CostRow[]> {
    const sums = costsBy(this.#ledger.values(), by);
    for (const row of this.#agedCosts[by].rows()) sums.add(row);
    return sums.rows();
  }

  async events(after: number, limit: number): Promise<readonly EventRecord[]> {
    const from = Math.max(after, this.#sequence - this.#retention.events);
    const first = this.#events[0]?.sequence ?? 0;
    const start = Math.max(0, from + 1 - first);
    return this.#events.slice(start, start + limit);
  }

  async memory(prefix: string): Promise<ReadonlyMap<string, string>> {
    return new Map([...this.#memory].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => compareText(a, b)));
  }

  async close(): Promise<void> {
    // Nothing to let go of.
  }
}
