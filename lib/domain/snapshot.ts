import type { AttemptId, GroupId, JobId, InstanceId, PoolId } from '../kernel/ids.ts';
import {
  add,
  between,
  least,
  most,
  raw,
  sub,
  ZERO_S,
  ZERO_USD,
  type EpochMs,
  type Seconds,
  type Usd,
} from '../kernel/units.ts';
import type { Attempt, Job, JobClass, OwnStops, StageSpec, Task } from './job.ts';
import { takesTasks, type Instance } from './instance.ts';
import type { Pool, PoolView } from './pool.ts';
import type { Resources } from './resources.ts';
import type { RunningTimes } from './running-times.ts';
import type { ServiceNeed } from './service.ts';
import { workDoneIn } from './slowdown.ts';
import { taskAt, type TaskOrder } from './task-order.ts';

/** Tasks of one stage that no policy can tell apart: same needs, same progress. Plans are made of groups. */
export interface PendingGroup {
  readonly id: GroupId;
  readonly job: JobId;
  readonly class: JobClass;
  readonly stage: StageSpec;
  /** Number of tasks; >= 1. */
  readonly count: number;
  /**
   * Its tasks: those never tried are the ones that begin as number `freshFrom` and later, in the order of their indices
   * or in `order`; of tried ones the indices are listed.
   */
  readonly members: FreshMembers | { readonly indices: readonly number[] };
  /** Work of each task that its checkpoint holds. */
  readonly keptS: Seconds;
  /** Lower bound of each task's running time, from earlier attempts, saved or not (work-to-do.ts). Absent: `keptS`. */
  readonly ranS?: Seconds;
  /** Targets of the move for which its tasks were stopped, one per task (`memberOf`); absent: no targets. */
  readonly goesTo?: readonly InstanceId[];
  readonly submittedMs: EpochMs;
  /** The job's deadline; null for best-effort. */
  readonly deadlineMs: EpochMs | null;

  readonly need: Resources;
}

export interface FreshMembers {
  readonly freshFrom: number;
  readonly order?: TaskOrder;
}

/**
 * An attempt that holds capacity, as policies see it. It does not change with time alone, so that the record stays the
 * same from cycle to cycle: progress at an instant is computed by `workDoneS` and `workKeptS`.
 */
export interface RunningTask {
  readonly attempt: Attempt;
  readonly class: JobClass;
  readonly stage: StageSpec;
  readonly deadlineMs: EpochMs | null;
  /** Part of its running time for reading its checkpoint, which is no progress. */
  readonly readS: Seconds;
  /** Work of all attempts that a checkpoint holds. */
  readonly savedS: Seconds;
  /**
   * Lower bound of its task's running time, from an earlier attempt that was lost (work-to-do.ts). Absent: the work it
   * resumed from.
   */
  readonly ranS?: Seconds;
  /** Stops of its task so far by our own decision. Absent: none. */
  readonly ownStops?: OwnStops;
  /** Attempts of its task so far, where copies began after it. Absent: it is the last. */
  readonly attempts?: number;
  /** True: an attempt beside it has used up the retries of its task, which fails unless this one succeeds. */
  readonly isLastTry?: true;
  /** Claim of its round's outputs: a copy could not succeed. Absent: none is known. */
  readonly claimed?: NonNullable<Task['claimed']>;
  /**
   * An attempt of the same stage, perhaps ended, with equal progress at any time: remaining work is computed once for
   * both (lib/cycle/state/alike.ts). Absent: none.
   */
  readonly like?: RunningTask;
}

/**
 * Work done in all by then: resumed + this attempt's running time, less the reading of the checkpoint, at its pace. An
 * attempt that leaves for a move makes no progress.
 */
export function workDoneS({ attempt, readS }: Pick<RunningTask, 'attempt' | 'readS'>, nowMs: EpochMs): Seconds {
  const { startedMs, resumedFromS, leaving } = attempt;
  const untilMs = leaving === undefined ? nowMs : least(nowMs, leaving.sinceMs);
  const ranS = startedMs === null ? ZERO_S : most(ZERO_S, between(startedMs, untilMs));
  return add(resumedFromS, workDoneIn(attempt, most(ZERO_S, sub(ranS, readS))));
}

/** Part of `workDoneS` that a checkpoint holds. */
export const workKeptS = (running: Pick<RunningTask, 'attempt' | 'readS' | 'savedS'>, nowMs: EpochMs): Seconds =>
  least(workDoneS(running, nowMs), running.savedS);

/** A live instance with its free resources. */
export interface InstanceView {
  readonly instance: Instance;
  readonly pool: Pool;
  /** Capacity less the needs of its attempts. */
  readonly free: Resources;
  readonly attempts: readonly RunningTask[];
  /** One of each group of alike `attempts`, for questions about progress alone. Absent: `attempts` themselves. */
  readonly distinct?: readonly RunningTask[];
}

/** A job that is waiting for something other than capacity. */
export interface BlockedJob {
  readonly job: JobId;
  readonly stage: string | null;
  readonly why: 'dependency' | 'budget' | 'backoff' | 'not-before' | 'cancelling' | 'placement';
  /** Tasks that wait for it. Absent: all that wait of the stage, or of the job. */
  readonly tasks?: number;
  readonly detail: string;
  readonly untilMs: EpochMs | null;
}

export interface Limits {
  /** Most vCPUs running at once over all pools (EC2: the vCPU quota; locally: the machine's capacity). */
  readonly vcpus: number;
  /** Way to raise it, as the end of a sentence. Absent: the driver does not say. */
  readonly raisedBy?: string;
}

/** Money of a job with a limit (`maxCost`), US dollars. */
export interface Budget {
  readonly limitUsd: number;
  /** Billed and accrued, start-up and idle time included. */
  readonly spentUsd: number;
  /** The most that live instances may still charge to the job before they can be given back. */
  readonly reservedUsd: number;
  /** Expected future cost of instances bought for the job, beyond the reserved amount. */
  readonly heldUsd: number;
}

/** Limit of a job and its spending so far, US dollars; null without a limit. */
export function limitOf(
  { jobs, spentUsd }: Pick<Snapshot, 'jobs' | 'spentUsd'>,
  id: JobId,
): Pick<Budget, 'limitUsd' | 'spentUsd'> | null {
  const limit = jobs.get(id)?.spec.maxCostUsd ?? null;
  return limit === null ? null : { limitUsd: raw(limit), spentUsd: raw(spentUsd.get(id) ?? ZERO_USD) };
}

export type Period = 'day' | 'month';

/** A limit on what the whole deployment spends, US dollars. */
export interface SpendingLimit {
  readonly period: Period;
  readonly limitUsd: number;
  /** Cost of ended instances in this period. */
  readonly settledUsd: number;
  /** The same, with the accrued cost of live instances. */
  readonly spentUsd: number;
  /** Expected cost of live instances in the rest of the period. */
  readonly committedUsd: number;
  /** End of the period. */
  readonly untilMs: EpochMs;
  /** True if people have been told that it is reached. */
  readonly isReached: boolean;
}

/** A job that this decision leaves out. Its running tasks stay; none of its tasks starts. */
export interface SetAside {
  readonly job: Job;
  /** held: the job is at fault. undecided: a later cycle decides on it. disk: there is no room for its files. */
  readonly why: 'held' | 'undecided' | 'disk';
  /** One sentence. */
  readonly detail: string;
}

/** Tasks that wait for a time: an earliest start, or the end of a back-off. */
export interface PostponedGroup {
  /** The tasks as they would wait then. */
  readonly group: PendingGroup;
  readonly fromMs: EpochMs;
}

/** One consistent picture of the world; the only input of the pure stages besides forecasts and configuration. */
export interface Snapshot {
  readonly nowMs: EpochMs;
  /** Jobs that are not over. */
  readonly jobs: ReadonlyMap<JobId, Job>;
  /** Jobs left out of `jobs`. Absent: none. */
  readonly setAside?: readonly SetAside[];
  /** Waiting tasks with earlier attempts, of jobs that may start something. */
  readonly tasks: readonly Task[];
  readonly groups: readonly PendingGroup[];
  /** What waits for a time, not among `groups`. Absent: nothing. */
  readonly postponed?: readonly PostponedGroup[];
  readonly running: readonly RunningTask[];
  readonly blocked: readonly BlockedJob[];
  /** In the order of arrival. */
  readonly instances: Pick<ReadonlyMap<InstanceId, InstanceView>, 'get' | 'values' | 'size'>;
  readonly pools: readonly PoolView[];
  /** Spent so far of jobs with a limit, accrued to now. */
  readonly spentUsd: ReadonlyMap<JobId, Usd>;
  /** Money of jobs with a limit; absent: no job has one. */
  readonly budgets?: ReadonlyMap<JobId, Budget>;
  readonly limits: Limits;
  /** Services of which replicas wait or run, by name. Absent: none. */
  readonly services?: ReadonlyMap<string, ServiceNeed>;
  /** Limits of the whole deployment; absent: none. */
  readonly spendingLimits?: readonly SpendingLimit[];
  /** Parts found already. Absent, or of another snapshot: parts are searched when asked for. */
  readonly parts?: SnapshotParts;
}

/** Parts of the running tasks that each cycle asks for, unordered. */
export interface RunningParts {
  readonly stopping: readonly RunningTask[];
  /** Tasks with a deadline that run on interruptible capacity. */
  readonly atRisk: readonly RunningTask[];
}

/** Parts of the live instances that each cycle asks for. */
export interface InstanceParts {
  /** Instances that may take a task, by pool, unordered. */
  readonly takingTasks: ReadonlyMap<PoolId, readonly InstanceView[]>;
  /** The others: going away, or recommended to be left. */
  readonly leaving: readonly InstanceView[];
  /** Instances without attempts. */
  readonly idle: readonly InstanceView[];
}

type Parted = Pick<Snapshot, 'running' | 'instances'>;

/**
 * Parts of one snapshot, each found on first use: O(running tasks) or O(instances). A keeper of running tasks by
 * difference hands them in from the beginning.
 */
export class SnapshotParts {
  readonly #of: Parted;
  #byJob: ReadonlyMap<JobId, readonly RunningTask[]> | null = null;
  #copied: ReadonlyMap<string, readonly RunningTask[]> | null = null;
  #running: RunningParts | null;
  #instances: InstanceParts | null;

  constructor(of: Parted, known: { readonly running?: RunningParts; readonly instances?: InstanceParts } = {}) {
    // Not the snapshot itself, which holds this.
    this.#of = { running: of.running, instances: of.instances };
    this.#running = known.running ?? null;
    this.#instances = known.instances ?? null;
  }

  /** False for a snapshot with other running tasks or instances than the one this was made of. */
  isOf({ running, instances }: Parted): boolean {
    return this.#of.running === running && this.#of.instances === instances;
  }

  get byJob(): ReadonlyMap<JobId, readonly RunningTask[]> {
    return (this.#byJob ??= Map.groupBy(this.#of.running, (r) => r.attempt.job));
  }

  /** Live attempts of tasks that have had a copy, by task, each list in the snapshot's order. */
  get copied(): ReadonlyMap<string, readonly RunningTask[]> {
    return (this.#copied ??= Map.groupBy(this.#of.running.filter(hasHadCopy), (r) => taskOf(r.attempt)));
  }

  get running(): RunningParts {
    return (this.#running ??= runningPartsOf(this.#of));
  }

  get instances(): InstanceParts {
    return (this.#instances ??= instancePartsOf(this.#of));
  }
}

const runningPartsOf = ({ running, instances }: Parted): RunningParts => ({
  stopping: running.filter(isStopping),
  atRisk: running.filter((r) => isAtRisk(r, instances.get(r.attempt.instance)?.pool)),
});

function instancePartsOf({ instances }: Parted): InstanceParts {
  const views = [...instances.values()];
  return {
    takingTasks: Map.groupBy(
      views.filter((v) => takesTasks(v.instance)),
      (v) => v.pool.id,
    ),
    leaving: views.filter((v) => !takesTasks(v.instance)),
    idle: views.filter(isIdle),
  };
}

type WithParts = Pick<Snapshot, 'running' | 'instances' | 'parts'>;

const partsOf = (of: WithParts): SnapshotParts => (of.parts?.isOf(of) === true ? of.parts : new SnapshotParts(of));

/** The same snapshot, with each part searched at most once. */
export const withParts = (snapshot: Snapshot): Snapshot =>
  snapshot.parts?.isOf(snapshot) === true ? snapshot : { ...snapshot, parts: new SnapshotParts(snapshot) };

/** Running tasks of each job, in the snapshot's order. */
export const runningByJob = (of: WithParts): ReadonlyMap<JobId, readonly RunningTask[]> => partsOf(of).byJob;

/** Of several live attempts of a task each has had a copy or is one. */
const hasHadCopy = ({ attempt, attempts }: RunningTask): boolean =>
  attempt.round !== undefined || attempts !== undefined;

const taskOf = ({ job, stage, index }: Attempt): string => `${job}/${stage}/${index}`;

/**
 * Other attempts of its task that hold capacity, those that stop among them. O(attempts of the task), after O(running
 * tasks) once per snapshot where a task has had a copy.
 */
export function liveBeside(of: WithParts, running: RunningTask): readonly RunningTask[] {
  if (!hasHadCopy(running)) return [];
  const { attempt } = running;
  return (partsOf(of).copied.get(taskOf(attempt)) ?? []).filter((r) => r.attempt.id !== attempt.id);
}

export const runningParts = (of: WithParts): RunningParts => partsOf(of).running;

export const instanceParts = (of: WithParts): InstanceParts => partsOf(of).instances;

export const isIdle = ({ attempts }: InstanceView): boolean => attempts.length === 0;

export const isStopping = ({ attempt }: RunningTask): boolean => attempt.state === 'stopping';
export const isAtRisk = ({ attempt, deadlineMs }: RunningTask, on: Pool | undefined): boolean =>
  deadlineMs !== null && attempt.state === 'running' && on?.option === 'spot';

/** The running ones of these attempts, by id. O(running tasks), but the map holds these alone. */
export function runningNamed(snapshot: Snapshot, ids: Iterable<AttemptId>): ReadonlyMap<AttemptId, RunningTask> {
  const wanted = new Set(ids);
  const found = new Map<AttemptId, RunningTask>();
  if (wanted.size > 0) for (const r of snapshot.running) if (wanted.has(r.attempt.id)) found.set(r.attempt.id, r);
  return found;
}

/**
 * Running times of a stage's successful tasks; null while there is none, and for a stage of one task, which has no
 * siblings. Tasks finished by an earlier version are not counted. O(stages of the job), whatever the number of tasks.
 */
export const finishedTimes = (
  { jobs }: Pick<Snapshot, 'jobs'>,
  of: { readonly job: JobId; readonly stage: string },
): RunningTimes | null => jobs.get(of.job)?.stages.find((s) => s.name === of.stage)?.times ?? null;

/** The task of a group that is the nth, counted from 0. */
export const memberOf = ({ members }: Pick<PendingGroup, 'members'>, nth: number): number | undefined =>
  'indices' in members ? members.indices[nth] : taskAt(members.order ?? null, members.freshFrom + nth);

/** The tasks of a group, first to last. */
export function membersOf(
  g: { readonly members: PendingGroup['members']; readonly count: number },
  from = 0,
  to = g.count,
): number[] {
  const { members } = g;
  if ('indices' in members) return members.indices.slice(from, to);
  const { freshFrom, order = null } = members;
  return Array.from({ length: to - from }, (_, i) => taskAt(order, freshFrom + from + i));
}
