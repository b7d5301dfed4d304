import type { AttemptId, GroupId, JobId, InstanceId, PoolId } from '../kernel/ids.ts';
import { add, between, least, most, sub, ZERO_S, type EpochMs, type Seconds, type Usd } from '../kernel/units.ts';
import type { Attempt, Job, JobClass, OwnStops, StageSpec, Task } from './job.ts';
import { takesTasks, type Instance } from './instance.ts';
import type { Pool, PoolView } from './pool.ts';
import type { Resources } from './resources.ts';
import type { RunningTimes } from './running-times.ts';

/** Tasks of one stage that are alike to every policy: same needs, same progress. The unit that plans are made of. */
export interface PendingGroup {
  readonly id: GroupId;
  readonly job: JobId;
  readonly class: JobClass;
  readonly stage: StageSpec;
  /** How many tasks; >= 1. */
  readonly count: number;
  /** Which ones: never-tried tasks are the range from `freshFrom`, tried ones are listed. One of the two is empty. */
  readonly members: { readonly freshFrom: number } | { readonly indices: readonly number[] };
  /** Work that a checkpoint keeps for each of them. */
  readonly keptS: Seconds;
  /** Each of them ran longer than that before, kept or not (work-to-do.ts). Absent: what is kept. */
  readonly ranS?: Seconds;
  /** Target of the move for which its one task was stopped; absent where the task goes wherever there is room. */
  readonly goesTo?: InstanceId;
  readonly submittedMs: EpochMs;
  /** The job's deadline; null for best-effort. */
  readonly deadlineMs: EpochMs | null;

  readonly need: Resources;
}

/**
 * An attempt that holds capacity, with what policies may know of it. Nothing of it changes with the time alone: how far
 * it is at an instant is asked with `workDoneS` and `workKeptS`, so that it is the same from cycle to cycle until its
 * attempt changes.
 */
export interface RunningTask {
  readonly attempt: Attempt;
  readonly class: JobClass;
  readonly stage: StageSpec;
  readonly deadlineMs: EpochMs | null;
  /** Of its running time what goes into reading its checkpoint, which is no progress. */
  readonly readS: Seconds;
  /** Work, of all that was ever done, that a checkpoint holds. */
  readonly savedS: Seconds;
  /**
   * Its task ran longer than that in an attempt before, which was lost (work-to-do.ts). Absent: nothing beyond what it
   * resumed from.
   */
  readonly ranS?: Seconds;
  /** Stops of its task so far that we decided. Absent: none. */
  readonly ownStops?: OwnStops;
  /**
   * Another of its stage, perhaps over by now, that is as far at any time: what is left of both is worked out once
   * (lib/cycle/state/alike.ts). Absent: it is like nothing but itself.
   */
  readonly like?: RunningTask;
}

/** Work done in all by then: resumed + this attempt's running time, less the reading of the checkpoint. */
export function workDoneS({ attempt, readS }: Pick<RunningTask, 'attempt' | 'readS'>, nowMs: EpochMs): Seconds {
  const { startedMs, resumedFromS } = attempt;
  const ranS = startedMs === null ? ZERO_S : most(ZERO_S, between(startedMs, nowMs));
  return add(resumedFromS, most(ZERO_S, sub(ranS, readS)));
}

/** Of which a checkpoint holds. */
export const workKeptS = (running: Pick<RunningTask, 'attempt' | 'readS' | 'savedS'>, nowMs: EpochMs): Seconds =>
  least(workDoneS(running, nowMs), running.savedS);

/** A live instance with what is free on it. */
export interface InstanceView {
  readonly instance: Instance;
  readonly pool: Pool;
  /** Capacity less the needs of its attempts. */
  readonly free: Resources;
  readonly attempts: readonly RunningTask[];
  /** What `attempts` are like, mostly each once: all that asking them how far they are can tell. Absent: themselves. */
  readonly distinct?: readonly RunningTask[];
}

/** A job that is waiting for something other than capacity. */
export interface BlockedJob {
  readonly job: JobId;
  readonly stage: string | null;
  readonly why: 'dependency' | 'budget' | 'backoff' | 'not-before' | 'cancelling';
  readonly detail: string;
  readonly untilMs: EpochMs | null;
}

export interface Limits {
  /** Most vCPUs running at once over all pools (EC2: the vCPU quota; locally: what the machine can carry). */
  readonly vcpus: number;
  /** How a person raises it, as the end of a sentence. Absent: the driver does not say. */
  readonly raisedBy?: string;
}

/** Money of a job with a limit (`maxCost`), US dollars. */
export interface Budget {
  readonly limitUsd: number;
  /** Billed and accrued, start-up and idle time included. */
  readonly spentUsd: number;
  /** The most that live instances may still charge to the job before they can be given back. */
  readonly reservedUsd: number;
  /** Expected cost of instances bought for the job that it has not come to yet, beyond what is reserved. */
  readonly heldUsd: number;
}

export type Period = 'day' | 'month';

/** A limit on what the whole deployment spends, US dollars. */
export interface SpendingLimit {
  readonly period: Period;
  readonly limitUsd: number;
  /** In this period, on instances that have ended. */
  readonly settledUsd: number;
  /** The same with what has accrued on live instances. */
  readonly spentUsd: number;
  /** What live instances are expected to cost yet within the period. */
  readonly committedUsd: number;
  /** End of the period. */
  readonly untilMs: EpochMs;
  /** Whether people were told that it is reached. */
  readonly isReached: boolean;
}

/** A job that this decision leaves out. Its running tasks stay where they are; none of its tasks starts. */
export interface SetAside {
  readonly job: Job;
  /**
   * held: the job is at fault. undecided: it is decided on in a later cycle. disk: there is no room for what tasks
   * write.
   */
  readonly why: 'held' | 'undecided' | 'disk';
  /** One sentence. */
  readonly detail: string;
}

/** One consistent picture; the only input of the pure stages besides forecasts and configuration. */
export interface Snapshot {
  readonly nowMs: EpochMs;
  /** Jobs that are not over. */
  readonly jobs: ReadonlyMap<JobId, Job>;
  /** Jobs that are left out of `jobs`. Absent: none. */
  readonly setAside?: readonly SetAside[];
  /** Tried tasks that wait, of those jobs that may start something. */
  readonly tasks: readonly Task[];
  readonly groups: readonly PendingGroup[];
  readonly running: readonly RunningTask[];
  readonly blocked: readonly BlockedJob[];
  /** In the order in which they came. */
  readonly instances: Pick<ReadonlyMap<InstanceId, InstanceView>, 'get' | 'values' | 'size'>;
  readonly pools: readonly PoolView[];
  /** Spent so far of jobs with a limit, accrued to now. */
  readonly spentUsd: ReadonlyMap<JobId, Usd>;
  /** Money of jobs with a limit; absent: no job has one. */
  readonly budgets?: ReadonlyMap<JobId, Budget>;
  readonly limits: Limits;
  /** Limits of the whole deployment; absent: it has none. */
  readonly spendingLimits?: readonly SpendingLimit[];
  /** Absent, or of something else than what runs here: parts are looked for whenever they are asked for. */
  readonly parts?: SnapshotParts;
}

/** Parts of what runs that are asked for in each cycle, in no order. */
export interface RunningParts {
  readonly stopping: readonly RunningTask[];
  /** What runs before a deadline on capacity that may be taken away. */
  readonly atRisk: readonly RunningTask[];
}

/** Parts of what is rented that are asked for in each cycle. */
export interface InstanceParts {
  /** Those that may be given a task, by pool. In no order. */
  readonly takingTasks: ReadonlyMap<PoolId, readonly InstanceView[]>;
  /** The others: going away, or recommended to be left. */
  readonly leaving: readonly InstanceView[];
  /** What nothing runs on. */
  readonly idle: readonly InstanceView[];
}

type Parted = Pick<Snapshot, 'running' | 'instances'>;

/**
 * Parts of one picture, each found when it is first asked for: O(running tasks) or O(instances). Known from the
 * beginning to whoever keeps what runs by difference.
 */
export class SnapshotParts {
  readonly #of: Parted;
  #byJob: ReadonlyMap<JobId, readonly RunningTask[]> | null = null;
  #running: RunningParts | null;
  #instances: InstanceParts | null;

  constructor(of: Parted, known: { readonly running?: RunningParts; readonly instances?: InstanceParts } = {}) {
    // Not the snapshot itself, which holds this.
    this.#of = { running: of.running, instances: of.instances };
    this.#running = known.running ?? null;
    this.#instances = known.instances ?? null;
  }

  /** False for a snapshot of which something else runs than in the one that this was made of. */
  isOf({ running, instances }: Parted): boolean {
    return this.#of.running === running && this.#of.instances === instances;
  }

  get byJob(): ReadonlyMap<JobId, readonly RunningTask[]> {
    return (this.#byJob ??= Map.groupBy(this.#of.running, (r) => r.attempt.job));
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

/** The same snapshot, of which each part is looked for once at most. */
export const withParts = (snapshot: Snapshot): Snapshot =>
  snapshot.parts?.isOf(snapshot) === true ? snapshot : { ...snapshot, parts: new SnapshotParts(snapshot) };

/** What runs of each job, in the snapshot's order. */
export const runningByJob = (of: WithParts): ReadonlyMap<JobId, readonly RunningTask[]> => partsOf(of).byJob;

export const runningParts = (of: WithParts): RunningParts => partsOf(of).running;

export const instanceParts = (of: WithParts): InstanceParts => partsOf(of).instances;

export const isIdle = ({ attempts }: InstanceView): boolean => attempts.length === 0;

export const isStopping = ({ attempt }: RunningTask): boolean => attempt.state === 'stopping';
export const isAtRisk = ({ attempt, deadlineMs }: RunningTask, on: Pool | undefined): boolean =>
  deadlineMs !== null && attempt.state === 'running' && on?.option === 'spot';

/** Of these attempts those that run, by id. O(running tasks), of which only these are put into the map. */
export function runningNamed(snapshot: Snapshot, ids: Iterable<AttemptId>): ReadonlyMap<AttemptId, RunningTask> {
  const wanted = new Set(ids);
  const found = new Map<AttemptId, RunningTask>();
  if (wanted.size > 0) for (const r of snapshot.running) if (wanted.has(r.attempt.id)) found.set(r.attempt.id, r);
  return found;
}

/**
 * Running times of what has succeeded of a stage that waits or runs; null while nothing has, and of a stage of one
 * task, which has no siblings. Tasks that an earlier version finished are not among them. O(stages of the job),
 * whatever the number of tasks.
 */
export const finishedTimes = (
  { jobs }: Pick<Snapshot, 'jobs'>,
  of: { readonly job: JobId; readonly stage: string },
): RunningTimes | null => jobs.get(of.job)?.stages.find((s) => s.name === of.stage)?.times ?? null;

/** The task of a group that is the nth, counted from 0. */
export const memberOf = ({ members }: Pick<PendingGroup, 'members'>, nth: number): number | undefined =>
  'indices' in members ? members.indices[nth] : members.freshFrom + nth;

/** The tasks of a group, first to last. */
export function membersOf(
  g: { readonly members: PendingGroup['members']; readonly count: number },
  from = 0,
  to = g.count,
): number[] {
  const { members } = g;
  if ('indices' in members) return members.indices.slice(from, to);
  return Array.from({ length: to - from }, (_, i) => members.freshFrom + from + i);
}
