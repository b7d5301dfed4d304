import { groupId, type JobId, type PoolId } from '../../kernel/ids.ts';
import { invariant, messageOf } from '../../kernel/errors.ts';
import { gt, least, raw, seconds, ZERO_S, type EpochMs, type Usd } from '../../kernel/units.ts';
import { isEnding, type Job, type JobState, type StageProgress, type StageSpec, type Task } from '../../domain/job.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import { doneOnceS } from '../../domain/work-to-do.ts';
import { orderOf, taskAt } from '../../domain/task-order.ts';
import type { BlockedJob, PostponedGroup, Budget, Limits, PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import { setAside, type Aside } from './set-aside.ts';
import type { WorkingState } from './working-state.ts';

/** Width of progress classes: interrupted tasks within one are planned as one group. */
const KEPT_BUCKET_S = 60;
/** Ratio of classes of the longest attempt, a minute added: some twenty groups of a stage in a week of running. */
const RAN_RATIO = 1.5;

export interface SnapshotInput {
  readonly state: WorkingState;
  readonly nowMs: EpochMs;
  readonly pools: readonly PoolView[];
  /** Every pool an instance may be in, also those without a quote now. */
  readonly poolById: ReadonlyMap<PoolId, Pool>;
  /** States of jobs that others wait for; absent = unknown to the store. */
  readonly dependencies: ReadonlyMap<JobId, JobState>;
  /** Spent so far of jobs that have a budget. */
  readonly spentUsd: ReadonlyMap<JobId, Usd>;
  readonly budgets?: ReadonlyMap<JobId, Budget>;
  readonly limits: Limits;
  readonly spendingLimits?: Snapshot['spendingLimits'] & {};
  /** Why no task may start for want of room on the disk; absent: tasks may. */
  readonly startsHeld?: string;
  readonly services?: Snapshot['services'];
  /** Time to read a checkpoint, which is no progress of a resumed attempt; default 0. */
  readonly restoreS?: number;
  /** Called for a job that makes the snapshot throw; the job is left out. Absent: it throws. */
  readonly onFault?: (job: JobId, error: unknown) => void;
}

/**
 * One consistent snapshot of the working state. O(active jobs x stages + tried tasks of stages with waiting ones +
 * pools), plus the cost of `WhatRuns`.
 */
export function takeSnapshot(input: SnapshotInput): Snapshot {
  const { state, nowMs } = input;
  const tasks: Task[] = [];
  const groups: PendingGroup[] = [];
  const blocked: BlockedJob[] = [];
  const postponed: PostponedGroup[] = [];
  const jobs = new Map<JobId, Job>();
  const aside = new Map<JobId, Aside>();
  for (const job of state.activeJobs()) {
    jobs.set(job.id, job);
    if (job.held !== undefined) aside.set(job.id, { why: 'held', detail: `held: ${job.held.reason}` });
    if (isEnding(job)) {
      blocked.push({ job: job.id, stage: null, why: 'cancelling', detail: 'the job is being stopped', untilMs: null });
      continue;
    }
    if (job.held !== undefined) continue;
    if (input.startsHeld !== undefined) {
      aside.set(job.id, { why: 'disk', detail: input.startsHeld });
      continue;
    }
    const unmet = job.after.find((id) => input.dependencies.get(id) !== 'succeeded');
    if (unmet !== undefined) {
      blocked.push({ job: job.id, stage: null, why: 'dependency', detail: `waits for job ${unmet}`, untilMs: null });
      continue;
    }
    if (hasBegunAll(job)) continue;
    const { onFault } = input;
    try {
      for (const stage of job.spec.stages) {
        const waiting = state.waitingTasks(job, stage.name);
        for (const task of waiting) tasks.push(task);
        pendingOf(job, stage, { nowMs, waiting, groups, blocked, postponed });
      }
    } catch (error) {
      if (onFault === undefined) throw error;
      onFault(job.id, error);
      aside.set(job.id, { why: 'held', detail: `held: ${messageOf(error)}` });
    }
  }
  const restoreS = seconds(input.restoreS ?? 0);
  const { running, instances, parts } = state.whatRuns({ poolById: input.poolById, restoreS });
  const all: Snapshot = {
    nowMs,
    jobs,
    tasks,
    groups,
    ...(postponed.length === 0 ? {} : { postponed }),
    running,
    blocked,
    instances,
    parts,
    pools: input.pools,
    spentUsd: input.spentUsd,
    ...(input.budgets === undefined ? {} : { budgets: input.budgets }),
    limits: input.limits,
    ...(input.spendingLimits === undefined ? {} : { spendingLimits: input.spendingLimits }),
    ...(input.services === undefined ? {} : { services: input.services }),
  };
  return setAside(all, aside);
}

/** True if every task has begun and none waits to be tried again, as in most jobs. */
const hasBegunAll = ({ stages }: Job): boolean => stages.every((s) => s.nextFresh >= s.tasks && s.waiting === 0);

interface PendingContext {
  readonly nowMs: EpochMs;
  readonly waiting: readonly Task[];
  readonly groups: PendingGroup[];
  readonly blocked: BlockedJob[];
  readonly postponed: PostponedGroup[];
}

function pendingOf(job: Job, stage: StageSpec, context: PendingContext): void {
  const progress = invariant(
    job.stages.find((s) => s.name === stage.name),
    `job ${job.id} has no progress for stage ${stage.name}`,
  );
  const fresh = progress.tasks - progress.nextFresh;
  if (fresh + context.waiting.length === 0) return;
  const before = stage.dependsOn.find((name) => job.stages.some((s) => s.name === name && s.succeeded < s.tasks));
  if (before !== undefined) {
    context.blocked.push({
      job: job.id,
      stage: stage.name,
      why: 'dependency',
      detail: `stage ${stage.name} waits for stage ${before}`,
      untilMs: null,
    });
    return;
  }
  const { notBeforeMs } = progress;
  if (notBeforeMs !== undefined && gt(notBeforeMs, context.nowMs)) {
    const detail = `stage ${stage.name} is not to start before a time that was planned`;
    context.blocked.push({ job: job.id, stage: stage.name, why: 'not-before', detail, untilMs: notBeforeMs });
    const then: PendingContext = { ...context, nowMs: notBeforeMs, groups: [], blocked: [], postponed: [] };
    dueGroups(job, stage, { progress, context: then });
    for (const of of then.groups) context.postponed.push({ group: of, fromMs: notBeforeMs });
    return;
  }
  dueGroups(job, stage, { progress, context });
}

/** Groups of a stage that may start; tasks that may not yet are postponed one by one. */
function dueGroups(
  job: Job,
  stage: StageSpec,
  { progress, context }: { readonly progress: StageProgress; readonly context: PendingContext },
): void {
  const fresh = progress.tasks - progress.nextFresh;
  const due: Task[] = [];
  for (const t of context.waiting) {
    if (t.notBeforeMs !== null && gt(t.notBeforeMs, context.nowMs)) {
      context.blocked.push({
        job: job.id,
        stage: stage.name,
        ...whyNotYet(t),
        untilMs: t.notBeforeMs,
      });
      const of = { name: `later-${t.index}`, count: 1, members: { indices: [t.index] }, ...leastOf([t]) };
      if (!stage.gang) context.postponed.push({ group: group(job, stage, of), fromMs: t.notBeforeMs });
    } else due.push(t);
  }
  if (stage.gang) {
    gangGroup(job, stage, { context, due, progress });
    return;
  }
  if (fresh > 0) {
    const order = orderOf(job.id, progress);
    const members = { freshFrom: progress.nextFresh, ...(order === null ? {} : { order }) };
    context.groups.push(group(job, stage, { name: 'fresh', count: fresh, members, keptS: ZERO_S }));
  }
  for (const task of due) if (task.goesTo !== undefined) context.groups.push(movedGroup(job, stage, task));
  const staying = due.some((t) => t.goesTo !== undefined) ? due.filter((t) => t.goesTo === undefined) : due;
  for (const [name, tasks] of Map.groupBy(staying, progressOf)) {
    const indices = tasks.map((t) => t.index).sort((a, b) => a - b);
    context.groups.push(group(job, stage, { name, count: indices.length, members: { indices }, ...leastOf(tasks) }));
  }
}

const whyNotYet = ({ index, failures }: Task): Pick<BlockedJob, 'why' | 'detail'> =>
  failures === 0
    ? { why: 'not-before', detail: `task ${index} is not to start before a time that was planned` }
    : { why: 'backoff', detail: `task ${index} failed ${failures} time(s) and is tried again after a pause` };

/** Progress class of a begun task of a stage. */
function progressOf(task: Task): string {
  const kept = `kept-${Math.floor(raw(task.keptS) / KEPT_BUCKET_S)}`;
  const ranS = doneOnceS(task);
  // A later checkpoint implies as much.
  if (!gt(ranS, task.keptS)) return kept;
  return `${kept}-ran-${Math.floor(Math.log(1 + raw(ranS) / KEPT_BUCKET_S) / Math.log(RAN_RATIO))}`;
}

/** A task on the way to the target of its move: a group of its own. */
const movedGroup = (job: Job, stage: StageSpec, task: Task): PendingGroup => ({
  ...group(job, stage, {
    name: `moved-${task.index}`,
    count: 1,
    members: { indices: [task.index] },
    ...leastOf([task]),
  }),
  ...targetsOf([task]),
});

/** Targets of tasks that all have one; a gang of which some have none starts wherever all of it has room. */
function targetsOf(tasks: readonly Task[]): Pick<PendingGroup, 'goesTo'> {
  const goesTo = tasks.flatMap((t) => t.goesTo ?? []);
  return goesTo.length < tasks.length ? {} : { goesTo };
}

/** Common lower bound of the tasks. */
function leastOf(tasks: readonly Task[]): Pick<PendingGroup, 'keptS' | 'ranS'> {
  const keptS = tasks.map((t) => t.keptS).reduce((a, b) => least(a, b));
  const ranS = tasks.map(doneOnceS).reduce((a, b) => least(a, b));
  return gt(ranS, keptS) ? { keptS, ranS } : { keptS };
}

/** A gang starts whole: only when none of it runs and all of its remaining tasks are due. */
function gangGroup(
  job: Job,
  stage: StageSpec,
  gang: { readonly context: PendingContext; readonly due: readonly Task[]; readonly progress: StageProgress },
): void {
  const { tasks, nextFresh, running } = gang.progress;
  if (running > 0 || gang.due.length < gang.context.waiting.length) return;
  const due = gang.due.toSorted((a, b) => a.index - b.index);
  const indices = due.map((t) => t.index);
  const order = orderOf(job.id, gang.progress);
  for (let nth = nextFresh; nth < tasks; nth++) indices.push(taskAt(order, nth));
  const hasFresh = nextFresh < tasks;
  const done = hasFresh ? { keptS: ZERO_S } : leastOf(due);
  const of = { name: 'gang', count: indices.length, members: { indices: indices.sort((a, b) => a - b) }, ...done };
  gang.context.groups.push({ ...group(job, stage, of), ...(hasFresh ? {} : targetsOf(due)) });
}

function group(
  job: Job,
  stage: StageSpec,
  of: Pick<PendingGroup, 'count' | 'members' | 'keptS' | 'ranS'> & { readonly name: string },
): PendingGroup {
  return {
    id: groupId(`${job.id}/${stage.name}/${of.name}`),
    job: job.id,
    class: job.spec.class,
    stage,
    count: of.count,
    members: of.members,
    keptS: of.keptS,
    ...(of.ranS === undefined ? {} : { ranS: of.ranS }),
    submittedMs: job.submittedMs,
    deadlineMs: job.deadlineMs,
    need: stage.resources,
  };
}
