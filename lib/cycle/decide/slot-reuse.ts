/**
 * Slot reuse between decisions: a slot that a task leaves goes to the next task that waits for room, in the order of
 * the last decision. A decision costs O(all waiting work), a reuse costs O(ended tasks). So short tasks follow one
 * another at the pace of the world, not at that of decisions.
 * An instance that comes up begins with the tasks that the decision placed there, or bought it for.
 * Reuse never replaces a judgement:
 * - only room that tasks have left since the decision, on instances that are up and keep all their tasks;
 * - the head of the queue gets it or nobody does: a task is never overtaken because it needs more, or another pool;
 * - the appraisal must offer the group capacity of that purchase option, and a task with a deadline this very pool,
 *   while it is not guarded; work meant for spot never holds an on-demand instance;
 * - only tasks that are done within the start of an instance (as in ADR 17), or that are like one that left there;
 * - no job with a limit on money or under `placement` rules, and nothing at all beside gangs, moves, preemptions or
 *   limits of the deployment.
 * Remaining slots wait for the next decision, which is then requested at once.
 * State is in memory alone: it is made from a decision and ends with the next one. A crash loses nothing, because
 * starts are recorded first.
 */
import type { AttemptId, GroupId, InstanceId, JobId, PlanId } from '../../kernel/ids.ts';
import { effectKey, instanceOf } from '../../kernel/ids.ts';
import { invariant } from '../../kernel/errors.ts';
import { gt, isPositive, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import { isEnding, isOver, type Job, type TaskRef } from '../../domain/job.ts';
import type { Effect, Worth } from '../../domain/plan.ts';
import { type Pool, isBoughtAs } from '../../domain/pool.ts';
import { fits, minusResources, plusResources, type Resources } from '../../domain/resources.ts';
import { isStopping, type InstanceView, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { acceptableOffers } from '../../stages/plan/options.ts';
import type { Deliberation } from './deliberation.ts';
import { waitingForRoom } from '../explain/expected-start.ts';
import type { Left, Observed } from '../observe/observe.ts';
import { attemptName, type WorkingState } from '../state/working-state.ts';
import { allocationKey } from '../../domain/launch-keys.ts';
import { slowdownKey } from '../../domain/slowdown.ts';
import { orderOf, taskAt } from '../../domain/task-order.ts';

/** Tasks of a group that wait for room. */
interface Waiting {
  readonly group: PendingGroup;
  readonly worth: Worth | undefined;
  readonly offers: readonly Offer[];
  /** True if it ends before an instance bought for it would be up. */
  readonly isShort: boolean;
  /** Its job has a limit on money, or `placement` rules concern it: its starts are a decision's. */
  readonly isBarred: boolean;
  /** Tasks that may still get a slot. */
  left: number;
  /** Listed members examined so far. */
  examined: number;
}

type Start = Extract<Effect, { kind: 'start' }>;

interface Seen {
  readonly state: WorkingState;
  readonly instances: Snapshot['instances'];
  readonly nowMs: EpochMs;
}

interface Member {
  readonly task: TaskRef;
  readonly attempt: AttemptId;
}

interface Room {
  /** Left by tasks since the decision, and not given on. */
  free: Resources;
  /** Stages of those tasks. */
  readonly stages: Set<string>;
}

const stageKey = (job: Pick<Job, 'template'>, stage: string): string => `${job.template} ${stage}`;

export class SlotReuse {
  /** The decision whose order it follows. */
  readonly plan: PlanId;
  readonly #queue: readonly Waiting[];
  readonly #config: SchedulerConfig;
  readonly #waitedFor: ReadonlySet<JobId>;
  readonly #rooms = new Map<InstanceId, Room>();
  /** Tasks that are meant for instances that were not up yet. */
  readonly #meant: ReadonlyMap<InstanceId, readonly Waiting[]>;
  /** First of the queue that may have tasks left. */
  #head = 0;

  /** True if any waiting or running work has a deadline. */
  readonly hasDeadlines: boolean;

  private constructor(
    d: Deliberation,
    of: { readonly plan: PlanId; readonly config: SchedulerConfig },
    queue: Waiting[],
  ) {
    this.plan = of.plan;
    this.#config = of.config;
    this.#queue = queue;
    this.#meant = meantFor(d, of);
    this.#waitedFor = new Set([...d.snapshot.jobs.values()].flatMap((job) => job.after));
    this.hasDeadlines = [...d.snapshot.jobs.values()].some((job) => job.deadlineMs !== null);
  }

  /** Null where nothing may be given on. O(waiting groups log(waiting groups)). */
  static of(d: Deliberation, of: { readonly plan: PlanId; readonly config: SchedulerConfig }): SlotReuse | null {
    const { snapshot, allotment, reserved, forSlotReuse, untold } = d;
    const isPlain =
      allotment.preemptions.length + allotment.moves.length + reserved.length === 0 &&
      (snapshot.spendingLimits ?? []).length === 0 &&
      snapshot.groups.every((g) => !g.stage.gang && g.goesTo === undefined);
    if (!isPlain) return null;
    const queue = waitingForRoom(d, [forSlotReuse, untold]).map(({ group, tasks, runtimeS }) =>
      waitingOf(d, group, { tasks, isShort: runtimeS <= of.config.startDelayMeanS, config: of.config }),
    );
    return new SlotReuse(d, of, queue);
  }

  /** True if a decision is needed: a task failed, or something waited for work that has ended. O(ended tasks). */
  asksForDecision(left: readonly Left[], state: Pick<WorkingState, 'jobs'>): boolean {
    return left.some(({ attempt, outcome }) => {
      if (outcome !== 'succeeded') return true;
      const job = state.jobs.get(attempt.job);
      if (job === undefined) return true;
      if (isOver(job.state)) return this.#waitedFor.has(job.id);
      return job.stages.some((s) => s.name === attempt.stage && s.succeeded === s.tasks);
    });
  }

  /**
   * Reuses slots that tasks have left; each start must be recorded in the state before the next one is searched. True
   * if room is left that only a decision can give, or nothing waits for room any more. O(ended tasks + reuses), and
   * once O(queue) in all.
   */
  give({ left, cameUp }: Pick<Observed, 'left' | 'cameUp'>, seen: Seen, record: (start: Start) => void): boolean {
    for (const { attempt } of left) this.#leave(attempt, seen.state);
    let needsDecision = false;
    for (const id of cameUp) if (!this.#begin(id, seen, record)) needsDecision = true;
    for (const [id, room] of this.#rooms) {
      const view = seen.instances.get(id);
      if (view === undefined || view.instance.state !== 'ready' || view.instance.rebalance) {
        this.#rooms.delete(id);
        needsDecision = true;
        continue;
      }
      if (view.attempts.some(isStopping)) continue;
      let { free } = view;
      for (;;) {
        const next = this.#next(room, view, { ...seen, free });
        if (next === null) break;
        record(next.start);
        free = minusResources(free, next.need);
        room.free = minusResources(room.free, next.need);
      }
      if (isPositive(room.free.cpu)) needsDecision = true;
      else this.#rooms.delete(id);
    }
    return needsDecision;
  }

  /** Starts the tasks meant for an instance that is up now. False if that leaves room, or there are none. */
  #begin(id: InstanceId, seen: Seen, record: (start: Start) => void): boolean {
    const view = seen.instances.get(id);
    if (view === undefined || view.instance.state !== 'ready') return false;
    let { free } = view;
    for (const waiting of this.#meant.get(id) ?? []) {
      const { group, worth } = waiting;
      const isEndangered =
        group.deadlineMs !== null &&
        view.pool.option === 'spot' &&
        (worth === undefined || isGuarded(worth, seen.nowMs, this.#config.cyclePeriodS));
      if (waiting.isBarred || isEndangered) continue;
      while (fits(group.need, free)) {
        const job = mayStart(waiting, seen.state);
        const found = job === null ? null : this.#takeMember(waiting, job, seen);
        if (found === null) break;
        record(startOf(found, { view, group, reason: 'it was meant for this instance, which is up now' }));
        free = minusResources(free, group.need);
      }
    }
    return !isPositive(free.cpu);
  }

  #leave({ instance, resources, job, stage }: Left['attempt'], state: WorkingState): void {
    let room = this.#rooms.get(instance);
    if (room === undefined) this.#rooms.set(instance, (room = { free: resources, stages: new Set() }));
    else room.free = plusResources(room.free, resources);
    const of = state.jobs.get(job);
    if (of !== undefined) room.stages.add(stageKey(of, stage));
  }

  /** The head of the queue, if it may have the room. */
  #next(
    room: Room,
    view: InstanceView,
    seen: Seen & { readonly free: Resources },
  ): { readonly start: Start; readonly need: Resources } | null {
    const { state, nowMs, free } = seen;
    for (; this.#head < this.#queue.length; this.#head++) {
      const waiting = this.#queue[this.#head] as Waiting;
      const { group } = waiting;
      const job = mayStart(waiting, state);
      if (job === null) continue;
      if (!fits(group.need, room.free) || !fits(group.need, free)) return null;
      if (!waiting.isShort && !room.stages.has(stageKey(job, group.stage.name))) return null;
      if (!this.#suits(waiting, view.pool, nowMs)) return null;
      const found = this.#takeMember(waiting, job, seen);
      if (found === null) continue;
      const reason = `next in line when a place came free on ${view.instance.id}`;
      return { start: startOf(found, { view, group, reason }), need: group.need };
    }
    return null;
  }

  #suits({ group, offers, worth, isBarred }: Waiting, pool: Pool, nowMs: EpochMs): boolean {
    if (isBarred || brokenConstraint(group.stage.constraints, pool) !== null) return false;
    const isOnDemand = (o: Offer): boolean => isBoughtAs(o.pool, 'on-demand');
    if (pool.option === 'on-demand') return offers.length > 0 && offers.every(isOnDemand);
    if (group.deadlineMs === null) return offers.some((o) => isBoughtAs(o.pool, pool.option));
    const isOffered = offers.some((o) => o.pool === pool.id);
    return isOffered && worth !== undefined && !isGuarded(worth, nowMs, this.#config.cyclePeriodS);
  }

  /** Next waiting task of the group; null: none. */
  #takeMember(waiting: Waiting, job: Job, { state, nowMs }: Pick<Seen, 'state' | 'nowMs'>): Member | null {
    const { members, stage } = waiting.group;
    const earliestMs = job.stages.find((s) => s.name === stage.name)?.notBeforeMs;
    if (earliestMs !== undefined && gt(earliestMs, nowMs)) return null;
    const take = (index: number, number: number) => {
      const task: TaskRef = { job: job.id, stage: stage.name, index };
      waiting.left--;
      return { task, attempt: attemptName(task, number) };
    };
    if ('freshFrom' in members) {
      const progress = job.stages.find((s) => s.name === stage.name);
      if (progress === undefined || progress.nextFresh >= progress.tasks) return null;
      return take(taskAt(orderOf(job.id, progress), progress.nextFresh), 1);
    }
    while (waiting.examined < members.indices.length) {
      const index = members.indices[waiting.examined++] as number;
      const known = state.triedTask({ job: job.id, stage: stage.name, index });
      if (known?.state !== 'waiting' || (known.notBeforeMs !== null && gt(known.notBeforeMs, nowMs))) continue;
      return take(index, known.attempts + 1);
    }
    return null;
  }
}

const startOf = (
  { task, attempt }: Member,
  on: { readonly view: InstanceView; readonly group: PendingGroup; readonly reason: string },
): Start => ({
  kind: 'start',
  key: effectKey(`start/${attempt}`),
  attempt,
  task,
  instance: on.view.instance.id,
  reason: on.reason,
  ...slowdownKey(on.group.stage.preferences, on.view.pool),
});

/** Job of a waiting group, unless none of its tasks may start any more. */
function mayStart({ group, left }: Waiting, { jobs }: WorkingState): Job | null {
  const job = left === 0 ? undefined : jobs.get(group.job);
  if (job === undefined || isOver(job.state) || isEnding(job) || job.held !== undefined) return null;
  return job;
}

function waitingOf(
  d: Deliberation,
  group: PendingGroup,
  of: { readonly tasks: number; readonly isShort: boolean; readonly config: SchedulerConfig },
): Waiting {
  return {
    group,
    worth: d.worths.groups.get(group.id),
    offers: offersOf(d, group.id, of.config),
    isShort: of.isShort,
    isBarred:
      d.snapshot.budgets?.has(group.job) === true ||
      (d.neighbours?.of({ job: group.job, stage: group.stage.name }) ?? null) !== null,
    left: of.tasks,
    examined: 0,
  };
}

/** Tasks that a decision places on starting instances, or buys instances for. */
function meantFor(
  d: Deliberation,
  { plan, config }: { readonly plan: PlanId; readonly config: SchedulerConfig },
): ReadonlyMap<InstanceId, readonly Waiting[]> {
  const counts = new Map<InstanceId, Map<GroupId, number>>();
  const count = (instance: InstanceId, group: GroupId, tasks: number): void => {
    let there = counts.get(instance);
    if (there === undefined) counts.set(instance, (there = new Map<GroupId, number>()));
    there.set(group, (there.get(group) ?? 0) + tasks);
  };
  for (const { on, group } of d.placements) {
    if (d.snapshot.instances.get(on)?.instance.state !== 'ready') count(on, group, 1);
  }
  d.lots.forEach((of, i) =>
    of.forEach(({ taken }, n) => {
      const instance = instanceOf(allocationKey(plan, i), n);
      for (const { leftover, tasks } of taken) count(instance, leftover.group.id, tasks);
    }),
  );
  if (counts.size === 0) return new Map();
  const groups = new Map(d.snapshot.groups.map((g) => [g.id, g]));
  const waiting = (id: GroupId, tasks: number): Waiting =>
    waitingOf(d, invariant(groups.get(id), `group ${id} waits and is not pending`), { tasks, isShort: true, config });
  return new Map([...counts].map(([instance, of]) => [instance, [...of].map(([id, tasks]) => waiting(id, tasks))]));
}

function offersOf(d: Deliberation, group: GroupId, config: SchedulerConfig): readonly Offer[] {
  return acceptableOffers(d.offers.get(group)?.offers ?? [], config.maxLateProbability);
}
