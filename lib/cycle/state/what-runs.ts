import type { AttemptId, InstanceId, JobId, PoolId } from '../../kernel/ids.ts';
import { invariant } from '../../kernel/errors.ts';
import { ZERO_S, add, isPositive, type Seconds } from '../../kernel/units.ts';
import { isLive, takesTasks, type Instance } from '../../domain/instance.ts';
import { hasLost, type Attempt, type Job, type StageSpec, type Task } from '../../domain/job.ts';
import type { Pool } from '../../domain/pool.ts';
import { takeFrom, type Filling } from '../../domain/resources.ts';
import { Alike, distinctOf } from './alike.ts';
import {
  isAtRisk,
  isIdle,
  isStopping,
  SnapshotParts,
  type InstanceParts,
  type InstanceView,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import { workDoneIn } from '../../domain/slowdown.ts';

type ByKey<K, V> = Pick<ReadonlyMap<K, V>, 'get'>;

/** Facts of a task that its running attempts know. */
type OfTask = Pick<Task, 'ranS' | 'ownStops' | 'attempts' | 'claimed' | 'failures'>;

/** Source rows of the running tasks. */
export interface RunningRows {
  readonly jobs: ByKey<JobId, Job>;
  readonly attempts: ByKey<AttemptId, Attempt>;
  readonly instances: ByKey<InstanceId, Instance>;
  /** Task of a live attempt. */
  readonly taskOf: (attempt: Attempt) => OfTask | undefined;
}

/** Running tasks, as a snapshot has them. */
export type Running = Required<Pick<Snapshot, 'running' | 'instances' | 'parts'>>;

/** The same for all of an engine's life. */
export interface RunningTerms {
  /** Every pool an instance may be in, also those without a quote now. */
  readonly poolById: ReadonlyMap<PoolId, Pool>;
  /** Time to read a checkpoint, which is no progress of a resumed attempt. */
  readonly restoreS: Seconds;
}

/**
 * Running tasks, and live instances with their tasks. They are by far the largest part of a snapshot and change little
 * from cycle to cycle, so they are kept, and only changed ones are made anew.
 * Correct because rows never change but are replaced, and every replacement is told (`changedAttempt`,
 * `changedInstance`); because nothing in a running task or a view depends on the time (domain/snapshot.ts); because a
 * job's specification and deadline never change; and because the facts of a running task change only when an attempt
 * of it begins or ends, which its other live attempts are told of. Order: both maps keep the order of arrival of
 * attempts and instances, as in the rows. Invariant: after `now` all hold exactly the live ones. Memory: O(live).
 */
export class WhatRuns {
  readonly #running = new Map<AttemptId, RunningTask>();
  /** Stopping ones among them, and those that an interruption may make late. */
  readonly #stopping = new Map<AttemptId, RunningTask>();
  readonly #atRisk = new Map<AttemptId, RunningTask>();
  readonly #views = new Map<InstanceId, InstanceView>();
  /** Views of instances that take tasks, of those that do not, and of empty ones. */
  readonly #takingTasks = new Map<PoolId, Map<InstanceId, InstanceView>>();
  readonly #leaving = new Map<InstanceId, InstanceView>();
  readonly #idle = new Map<InstanceId, InstanceView>();
  /** Views of the last snapshot, which share `#views`. */
  #given: Views | null = null;
  /** With their instances. */
  readonly #changedAttempts = new Map<AttemptId, InstanceId>();
  readonly #changedInstances = new Set<InstanceId>();
  readonly #alike = new Alike();

  changedAttempt({ id, instance }: Pick<Attempt, 'id' | 'instance'>): void {
    this.#changedAttempts.set(id, instance);
  }

  changedInstance(id: InstanceId): void {
    this.#changedInstances.add(id);
  }

  /** O(changes x tasks on the same instances), plus copies of lists: a snapshot never changes. */
  now(rows: RunningRows, terms: RunningTerms): Running {
    this.#given?.part();
    const changed = this.#takeAttempts(rows, terms);
    for (const id of changed.keys()) this.#changedInstances.add(id);
    for (const id of this.#changedInstances) {
      const instance = rows.instances.get(id);
      if (instance === undefined || !isLive(instance)) this.#removeView(id);
      else this.#putView(viewOf(instance, changed.get(id) ?? this.#on(id), terms));
    }
    this.#changedInstances.clear();
    const running = [...this.#running.values()];
    const instances = new Views(this.#views);
    this.#given = instances;
    const parts = new SnapshotParts(
      { running, instances },
      {
        running: { stopping: [...this.#stopping.values()], atRisk: [...this.#atRisk.values()] },
        instances: this.#instanceParts(),
      },
    );
    return { running, instances, parts };
  }

  #instanceParts(): InstanceParts {
    const takingTasks = new Map<PoolId, readonly InstanceView[]>();
    this.#takingTasks.forEach((there, pool) => {
      if (there.size > 0) takingTasks.set(pool, [...there.values()]);
    });
    return { takingTasks, leaving: [...this.#leaving.values()], idle: [...this.#idle.values()] };
  }

  /** Takes over changed attempts. Returns the tasks of their instances, in the order of arrival. */
  #takeAttempts(rows: RunningRows, terms: RunningTerms): ReadonlyMap<InstanceId, readonly RunningTask[]> {
    const stageOf = stagesOf(rows.jobs);
    const changed = new Map<InstanceId, RunningTask[]>();
    for (const [id, on] of this.#changedAttempts) {
      let there = changed.get(on);
      if (there === undefined) changed.set(on, (there = [...this.#on(on)]));
      const before = this.#running.get(id);
      const attempt = rows.attempts.get(id);
      if (attempt === undefined || attempt.state === 'ended') {
        this.#remove(id);
        replace(there, before, null);
      } else {
        const instance = rows.instances.get(on);
        const of = { ...stageOf(attempt), task: rows.taskOf(attempt) };
        const running = this.#alike.of(runningTask(of, attempt, terms));
        this.#put(running, instance && terms.poolById.get(instance.pool));
        replace(there, before, running);
      }
    }
    this.#changedAttempts.clear();
    return changed;
  }

  #on(instance: InstanceId): readonly RunningTask[] {
    return this.#views.get(instance)?.attempts ?? [];
  }

  #remove(id: AttemptId): void {
    this.#running.delete(id);
    this.#stopping.delete(id);
    this.#atRisk.delete(id);
  }

  #removeView(id: InstanceId): void {
    const view = this.#views.get(id);
    if (view === undefined) return;
    this.#views.delete(id);
    this.#takingTasks.get(view.pool.id)?.delete(id);
    this.#leaving.delete(id);
    this.#idle.delete(id);
  }

  #putView(view: InstanceView): void {
    const { instance, pool } = view;
    this.#views.set(instance.id, view);
    const takes = takesTasks(instance);
    keep(this.#takingTasksIn(pool.id), { id: instance.id, is: view, if: takes });
    keep(this.#leaving, { id: instance.id, is: view, if: !takes });
    keep(this.#idle, { id: instance.id, is: view, if: isIdle(view) });
  }

  #takingTasksIn(pool: PoolId): Map<InstanceId, InstanceView> {
    let there = this.#takingTasks.get(pool);
    if (there === undefined) this.#takingTasks.set(pool, (there = new Map<InstanceId, InstanceView>()));
    return there;
  }

  #put(running: RunningTask, on: Pool | undefined): void {
    const { id } = running.attempt;
    this.#running.set(id, running);
    keep(this.#stopping, { id, is: running, if: isStopping(running) });
    keep(this.#atRisk, { id, is: running, if: isAtRisk(running, on) });
  }
}

/**
 * Views of a snapshot: a list, and an index shared with its maker until the next change. A later lookup, which is rare,
 * builds an index of its own from the list.
 */
class Views {
  readonly #list: readonly InstanceView[];
  #byId: ReadonlyMap<InstanceId, InstanceView> | null;

  constructor(byId: ReadonlyMap<InstanceId, InstanceView>) {
    this.#list = [...byId.values()];
    this.#byId = byId;
  }

  get(id: InstanceId): InstanceView | undefined {
    this.#byId ??= new Map(this.#list.map((view) => [view.instance.id, view]));
    return this.#byId.get(id);
  }

  get size(): number {
    return this.#list.length;
  }

  values(): ArrayIterator<InstanceView> {
    return this.#list.values();
  }

  /** Ends the sharing, because the maker changes the index. */
  part(): void {
    this.#byId = null;
  }
}

/** Puts a row into a part of its table, or takes it out where it does not belong there any more. */
function keep<K, V>(part: Map<K, V>, row: { readonly id: K; readonly is: V; readonly if: boolean }): void {
  if (row.if) part.set(row.id, row.is);
  else part.delete(row.id);
}

/** Replaces an attempt in a list, appends a new one, removes an ended one. */
function replace(there: RunningTask[], before: RunningTask | undefined, after: RunningTask | null): void {
  const at = before === undefined ? -1 : there.indexOf(before);
  if (after === null) {
    if (at !== -1) there.splice(at, 1);
  } else if (at === -1) there.push(after);
  else there[at] = after;
}

function viewOf(instance: Instance, attempts: readonly RunningTask[], { poolById }: RunningTerms): InstanceView {
  const pool = invariant(poolById.get(instance.pool), `instance ${instance.id} is in an unknown pool ${instance.pool}`);
  const free: Filling = { ...pool.type.capacity };
  for (const { attempt } of attempts) takeFrom(free, attempt.resources);
  return { instance, pool, free, attempts, distinct: distinctOf(attempts) };
}

interface StageOf {
  readonly job: Job;
  readonly stage: StageSpec;
}

/** Job and stage of an attempt. Attempts of one stage follow one another, so the last answer mostly serves. */
function stagesOf(jobs: ByKey<JobId, Job>): (attempt: Attempt) => StageOf {
  let last: StageOf | null = null;
  return (attempt) => {
    if (last !== null && last.job.id === attempt.job && last.stage.name === attempt.stage) return last;
    const job = jobs.get(attempt.job);
    const stage = job?.spec.stages.find((s) => s.name === attempt.stage);
    last = {
      job: invariant(job, `attempt ${attempt.id} of a job that is not active`),
      stage: invariant(stage, `attempt ${attempt.id} of a stage that does not exist`),
    };
    return last;
  };
}

function runningTask(
  { job, stage, task }: StageOf & { readonly task: OfTask | undefined },
  attempt: Attempt,
  { restoreS }: RunningTerms,
): RunningTask {
  return {
    // An attempt that cannot succeed any more needs no decision: it stops.
    attempt: hasLost(attempt) ? { ...attempt, state: 'stopping' } : attempt,
    class: job.spec.class,
    stage,
    deadlineMs: job.deadlineMs,
    // Otherwise work would seem further on while it runs than when it waits again, and would be moved back and forth.
    readS: isPositive(attempt.resumedFromS) ? restoreS : ZERO_S,
    savedS: stage.checkpoint === null ? ZERO_S : add(attempt.resumedFromS, workDoneIn(attempt, attempt.keptS)),
    ...(task?.ranS === undefined ? {} : { ranS: task.ranS }),
    ...(task?.ownStops === undefined ? {} : { ownStops: task.ownStops }),
    ...(task === undefined || task.attempts <= attempt.number ? {} : { attempts: task.attempts }),
    ...(task !== undefined && task.failures > stage.retries ? { isLastTry: true } : {}),
    ...(task?.claimed === undefined ? {} : { claimed: task.claimed }),
  };
}
