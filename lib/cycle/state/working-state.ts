import { attemptId, type AttemptId, type InstanceId, type JobId } from '../../kernel/ids.ts';
import { EbbError, invariant } from '../../kernel/errors.ts';
import { ZERO_S, type EpochMs, type Seconds } from '../../kernel/units.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import {
  hasLost,
  isOver,
  type Attempt,
  type Job,
  type StageProgress,
  type Task,
  type TaskRef,
} from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { Plan } from '../../domain/plan.ts';
import { withTime } from '../../domain/running-times.ts';
import { orderOf, placeOf } from '../../domain/task-order.ts';
import type { ActiveState, Change, EffectRecord, OthersChanges } from '../../ports/store.ts';
import { Rows, TaskRows } from './indexed-rows.ts';
import { WhatRuns, type Running, type RunningTerms } from './what-runs.ts';

export const taskKey = (t: TaskRef): string => `${t.job}/${t.stage}/${t.index}`;
export const attemptName = (t: TaskRef, number: number): AttemptId =>
  attemptId(`${t.job}.${t.stage}.${t.index}.${number}`);

const NO_ATTEMPTS: readonly Attempt[] = [];

/**
 * The active state of a use case. Every put replaces an immutable value and records it; `takeChanges()` returns the
 * changes to commit, one per entity however often it was put. Reads see earlier puts. Committed state may serve the
 * next use case too (`refresh`); its memory is bounded by the active entities.
 */
export class WorkingState {
  readonly jobs = new Rows<JobId, Job>();
  readonly #tasks = new TaskRows();
  readonly attempts = new Rows<AttemptId, Attempt>();
  readonly instances = new Rows<InstanceId, Instance>();
  #openEffects: readonly EffectRecord[];
  #cursors: ReadonlyMap<InstanceId, number>;
  /** Cursors updated by puts; null if not needed. */
  #followed: Map<InstanceId, number> | null = null;
  /** Changes of the other types, by key. */
  readonly #touched = new Map<Change['put'], Map<string, Change>>();
  readonly #appended: Change[] = [];
  /** Active jobs with attempts beside originals: in all others no attempt has a rival. */
  readonly #withCopies = new Set<JobId>();
  /** Attempts by instance, in the order of `attempts`; made on first use. */
  #attemptsOn: Map<InstanceId, Set<AttemptId>> | null = null;
  /** Told of each row that is put. */
  readonly #whatRuns = new WhatRuns();
  /** Attempts that cannot succeed any more and have not been asked to stop. */
  readonly #lost = new Set<AttemptId>();
  /** Entities that ended since the last `refresh`: a load would leave them out. */
  #over = nothingOver();

  constructor(active: ActiveState) {
    for (const j of active.jobs) this.jobs.load(j.id, j);
    for (const t of active.tasks) this.#tasks.load(t);
    for (const i of active.instances) {
      this.instances.load(i.id, i);
      this.#whatRuns.changedInstance(i.id);
    }
    for (const a of active.attempts) {
      this.attempts.load(a.id, a);
      this.#whatRuns.changedAttempt(a);
      this.#noteLost(a);
      this.#noteCopy(a);
    }
    this.#openEffects = active.openEffects;
    this.#cursors = active.cursors;
  }

  /** As of the load, or of the last `refresh`. */
  get openEffects(): readonly EffectRecord[] {
    return this.#openEffects;
  }

  get cursors(): ReadonlyMap<InstanceId, number> {
    return this.#followed ?? this.#cursors;
  }

  /** From now on, until the next `refresh`, `cursors` includes puts: for several observations in one use case. */
  followCursors(): void {
    this.#followed ??= new Map(this.#cursors);
  }

  /** Instances that ended since the load, or the last `refresh`. */
  get endedInstances(): readonly InstanceId[] {
    return this.#over.instances;
  }

  /**
   * Makes the committed state equal to a new load: ended entities are left out, writes of others are taken in. The
   * engine keeps nothing else between cycles. Correct because nobody else writes tasks, attempts and instances while
   * the lease is held (a commit under an older one fails), and because each put was committed: after a fault the engine
   * loads anew. O(ended entities and changes of others), where a load costs O(active entities).
   */
  refresh({ jobs, openEffects, cursors }: OthersChanges): void {
    if (this.changed) throw new EbbError('internal', { what: 'a refresh with changes that are not committed' });
    const { attempts, instances, tasks, jobs: endedJobs } = this.#over;
    this.#over = nothingOver();
    for (const id of attempts) this.#dropAttempt(id);
    for (const id of instances) {
      this.instances.delete(id);
      this.#attemptsOn?.delete(id);
    }
    for (const task of tasks) this.#tasks.delete(task);
    for (const id of endedJobs) {
      this.jobs.delete(id);
      this.#tasks.deleteJob(id);
      this.#withCopies.delete(id);
    }
    for (const job of jobs) this.jobs.load(job.id, job);
    this.#openEffects = openEffects;
    this.#cursors = cursors;
    this.#followed = null;
  }

  #dropAttempt(id: AttemptId): void {
    const attempt = this.attempts.get(id);
    this.attempts.delete(id);
    if (attempt === undefined || this.#attemptsOn === null) return;
    const there = this.#attemptsOn.get(attempt.instance);
    if (there?.delete(id) === true && there.size === 0) this.#attemptsOn.delete(attempt.instance);
  }

  putJob(value: Job): void {
    this.jobs.put(value.id, value);
    if (isOver(value.state)) this.#over.jobs.push(value.id);
  }

  putAttempt(value: Attempt): void {
    const isNew = this.attempts.put(value.id, value);
    if (isNew && this.#attemptsOn !== null) addTo(this.#attemptsOn, value.instance, value.id);
    this.#whatRuns.changedAttempt(value);
    this.#noteLost(value);
    this.#noteCopy(value);
    if (!isLiveAttempt(value)) this.#over.attempts.push(value.id);
  }

  #noteCopy({ job, role }: Attempt): void {
    if (role !== undefined) this.#withCopies.add(job);
  }

  #noteLost(attempt: Attempt): void {
    if (!hasLost(attempt)) return;
    const { id, state } = attempt;
    if (state === 'stopping' || state === 'ended') this.#lost.delete(id);
    else this.#lost.add(id);
  }

  /** Attempts that cannot succeed any more and have not been asked to stop. O(their number). */
  lostAttempts(): Attempt[] {
    return valuesOf(this.#lost, this.attempts);
  }

  /** Other attempts of the task that live and may still succeed. O(1) in jobs without copies. */
  rivalsOf(of: Pick<Attempt, 'id' | keyof TaskRef>, attempts: number): readonly Attempt[] {
    return this.#withCopies.has(of.job) ? this.besides(of, attempts) : NO_ATTEMPTS;
  }

  /** The same for an attempt that may become the first copy of its job. O(attempts of the task so far). */
  besides({ id, ...of }: Pick<Attempt, 'id' | keyof TaskRef>, attempts: number): readonly Attempt[] {
    const others: Attempt[] = [];
    for (let number = 1; number <= attempts; number++) {
      const other = this.attempts.get(attemptName(of, number));
      if (other !== undefined && other.id !== id && isLiveAttempt(other) && other.supersededBy === undefined)
        others.push(other);
    }
    return others;
  }

  /** Counts superseded attempts of a stage that have not ended. */
  countSuperseded(ref: TaskRef, more: number): void {
    this.#count(ref, ({ superseded = 0, ...s }) =>
      superseded + more === 0 ? s : { ...s, superseded: superseded + more },
    );
  }

  putInstance(value: Instance): void {
    this.instances.put(value.id, value);
    this.#whatRuns.changedInstance(value.id);
    if (!isLive(value)) this.#over.instances.push(value.id);
  }

  putEffect(value: EffectRecord): void {
    this.#touch(value.key, { put: 'effect', value });
  }

  putCursor(instance: InstanceId, sequence: number): void {
    this.#followed?.set(instance, sequence);
    this.#touch(instance, { put: 'cursor', instance, sequence });
  }

  putMemory(key: string, value: string): void {
    this.#touch(key, { put: 'memory', key, value });
  }

  putPlan(value: Plan): void {
    this.#appended.push({ put: 'plan', value });
  }

  putLedger(instance: InstanceId, value: readonly LedgerRow[]): void {
    this.#touch(instance, { put: 'ledger', instance, value });
  }

  event(type: string, at: EpochMs, what: { job?: JobId; text: string; data?: Record<string, unknown> }): void {
    this.#appended.push({
      put: 'event',
      value: { atMs: at, type, job: what.job ?? null, text: what.text, data: what.data ?? {} },
    });
  }

  /** Moves a tried task to another state, and its stage's counters with it. */
  moveTask(task: Task, to: Task): void {
    this.#storeTask(to);
    if (task.state === to.state) return;
    this.#count(to, (s) => ({ ...s, [task.state]: s[task.state] - 1, [to.state]: s[to.state] + 1 }));
  }

  /** Moves a task to its success, and counts its running time among its siblings'. */
  succeedTask(task: Task, runtimeS: Seconds): void {
    const { claimed: _, departed: __, ...rest } = task;
    this.#storeTask({ ...rest, state: 'succeeded', keptS: runtimeS });
    this.#count(task, (s) => ({
      ...s,
      [task.state]: s[task.state] - 1,
      succeeded: s.succeeded + 1,
      ...(s.tasks > 1 ? { times: withTime(s.times, runtimeS) } : {}),
    }));
  }

  /** From now on the tasks of a stage get no copies. */
  forbidCopies(ref: Pick<TaskRef, 'job' | 'stage'>, why: string): void {
    this.#count(ref, (s) => ({ ...s, noCopies: why }));
  }

  /** Earliest start of a stage's tasks; null: any time. */
  putEarliest(ref: Pick<TaskRef, 'job' | 'stage'>, notBeforeMs: EpochMs | null): void {
    this.#count(ref, ({ notBeforeMs: _, ...s }) => (notBeforeMs === null ? s : { ...s, notBeforeMs }));
  }

  /** Changes a tried task without moving it between states. */
  updateTask(to: Task): void {
    this.#storeTask(to);
    this.#tellAttempts(to);
  }

  /** Live attempts of a task that runs are seen anew: what is known of it has changed. O(its attempts). */
  #tellAttempts(task: Task): void {
    for (let number = 1; task.state === 'running' && number <= task.attempts; number++) {
      const attempt = this.attempts.get(attemptName(task, number));
      if (attempt !== undefined && isLiveAttempt(attempt)) this.#whatRuns.changedAttempt(attempt);
    }
  }

  /**
   * Takes the next never-tried task of a stage, or a waiting one, into `running`. Returns it with its attempt counted.
   * If the first of a stage is a pilot, its tasks begin in a random order from then on.
   */
  beginTask(ref: TaskRef, isPilot = false): Task {
    const known = this.#tasks.get(ref);
    if (known !== undefined) {
      const { goesTo: _, departed: __, ...stays } = known;
      const begun: Task = { ...stays, state: 'running', attempts: known.attempts + 1, notBeforeMs: null };
      this.moveTask(known, begun);
      if (known.state === 'running') this.#tellAttempts(begun);
      return begun;
    }
    const { job, stage, index } = ref;
    const tried = { state: 'running', attempts: 1, failures: 0, keptS: ZERO_S, notBeforeMs: null } as const;
    const fresh: Task = { job, stage, index, ...tried };
    this.#storeTask(fresh);
    this.#count(ref, (s) => {
      const after: StageProgress = isPilot && s.nextFresh === 0 ? { ...s, isDrawn: true } : s;
      const begun = placeOf(orderOf(job, after), index) + 1;
      return { ...after, nextFresh: Math.max(s.nextFresh, begun), running: s.running + 1 };
    });
    return fresh;
  }

  task(ref: TaskRef): Task {
    return invariant(this.#tasks.get(ref), `task ${taskKey(ref)} has an attempt but no record`);
  }

  /** Null for one that was never tried, or is over and let go. */
  triedTask(ref: TaskRef): Task | null {
    return this.#tasks.get(ref) ?? null;
  }

  stage(ref: TaskRef): StageProgress {
    const job = invariant(this.jobs.get(ref.job), `job ${ref.job} of a task is not active`);
    return invariant(
      job.stages.find((s) => s.name === ref.stage),
      `job ${ref.job} has no stage ${ref.stage}`,
    );
  }

  /** Changes since the last call, to be committed. */
  takeChanges(): readonly Change[] {
    const changes: Change[] = [];
    for (const value of this.jobs.takePut()) changes.push({ put: 'job', value });
    for (const value of this.#tasks.takePut()) changes.push({ put: 'task', value });
    for (const value of this.instances.takePut()) changes.push({ put: 'instance', value });
    for (const value of this.attempts.takePut()) changes.push({ put: 'attempt', value });
    for (const of of this.#touched.values()) of.forEach((change) => changes.push(change));
    for (const change of this.#appended) changes.push(change);
    this.#touched.clear();
    this.#appended.length = 0;
    return changes;
  }

  get changed(): boolean {
    const { jobs, attempts, instances } = this;
    const put = jobs.countPut + this.#tasks.countPut + attempts.countPut + instances.countPut;
    return put + this.#touched.size + this.#appended.length > 0;
  }

  activeJobs(): Job[] {
    return chosen(this.jobs, (j) => !isOver(j.state));
  }

  /** Instances and attempts that have not ended. */
  get live(): number {
    let live = 0;
    this.instances.forEach((i) => (live += Number(isLive(i))));
    this.attempts.forEach((a) => (live += Number(isLiveAttempt(a))));
    return live;
  }

  /** True if nothing is left to decide: every job has ended or is merely held, and no instance lives. */
  get isIdle(): boolean {
    for (const j of this.jobs.values()) if (!isOver(j.state) && !waitsForPerson(j)) return false;
    for (const i of this.instances.values()) if (isLive(i)) return false;
    return true;
  }

  /**
   * Waiting tasks of a stage with earlier attempts, in the order of their first ones. O(tried tasks), O(1) if the job
   * counts none.
   */
  waitingTasks({ id, stages }: Pick<Job, 'id' | 'stages'>, stage: string): Task[] {
    const counted = stages.some((s) => s.name === stage && s.waiting > 0);
    return counted ? this.#tasks.ofStage(id, stage).filter((t) => t.state === 'waiting') : [];
  }

  /** Every attempt known on an instance, ended ones included. O(its attempts), after O(attempts) once. */
  attemptsOn(instance: InstanceId): Attempt[] {
    if (this.#attemptsOn === null) {
      this.#attemptsOn = new Map();
      for (const a of this.attempts.values()) addTo(this.#attemptsOn, a.instance, a.id);
    }
    return valuesOf(this.#attemptsOn.get(instance), this.attempts);
  }

  /** Running tasks, and live instances with theirs. `terms` are the same at each call. */
  whatRuns(terms: RunningTerms): Running {
    const { jobs, attempts, instances } = this;
    const taskOf = (attempt: Attempt): Task | undefined => this.#tasks.get(attempt);
    return this.#whatRuns.now({ jobs, attempts, instances, taskOf }, terms);
  }

  /** Tried tasks of a job. O(its tasks). */
  tasksOf(job: JobId): Task[] {
    return this.#tasks.ofJob(job);
  }

  #touch(key: string, change: Change): void {
    const of = this.#touched.get(change.put);
    if (of === undefined) this.#touched.set(change.put, new Map([[key, change]]));
    else of.set(key, change);
  }

  #storeTask(value: Task): void {
    this.#tasks.put(value);
    if (value.state !== 'waiting' && value.state !== 'running') this.#over.tasks.push(value);
  }

  #count(ref: Pick<TaskRef, 'job' | 'stage'>, change: (s: StageProgress) => StageProgress): void {
    const job = invariant(this.jobs.get(ref.job), `job ${ref.job} of a task is not active`);
    this.putJob({ ...job, stages: job.stages.map((s) => (s.name === ref.stage ? change(s) : s)) });
  }
}

interface Over {
  readonly jobs: JobId[];
  readonly tasks: TaskRef[];
  readonly attempts: AttemptId[];
  readonly instances: InstanceId[];
}

const nothingOver = (): Over => ({ jobs: [], tasks: [], attempts: [], instances: [] });

/**
 * True for a held job that waits for a person, who wakes the engine. A job that is to be stopped waits for the engine.
 */
const waitsForPerson = (j: Job): boolean => j.state === 'held' && !j.cancelRequested && j.stateReason === null;

const isLiveAttempt = (a: Attempt): boolean => a.state !== 'ended';

function chosen<T>(of: Rows<unknown, T>, wanted: (value: T) => boolean): T[] {
  const found: T[] = [];
  of.forEach((value) => {
    if (wanted(value)) found.push(value);
  });
  return found;
}

function addTo<K, V>(index: Map<K, Set<V>>, key: K, value: V): void {
  const known = index.get(key);
  if (known === undefined) index.set(key, new Set([value]));
  else known.add(value);
}

function valuesOf<K, V>(keys: ReadonlySet<K> | undefined, values: Rows<K, V>): V[] {
  const found: V[] = [];
  keys?.forEach((key) => found.push(values.get(key) as V));
  return found;
}
