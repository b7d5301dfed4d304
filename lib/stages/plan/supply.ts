/**
 * The supply of a cycle's plan: where tasks can run, by slot.
 *
 *  - `room_<pool>`: free room on the instances of a pool that take tasks, as a resource vector (mCPU, MiB, GPUs, MiB),
 *    summed over the instances; tasks that are expected to end give their room back from the slot after. What fits on
 *    the instances one by one bounds each option besides (`fitting`), so that fragments are not taken for a whole. What
 *    stops counts as free once it may be: else the next plan would stop more work for the same task.
 *  - `quota`: vCPUs that new instances may have, all pools together: the limit less those of live instances. Instances
 *    are whole machines while the plan counts tasks, so a task draws vCPUs(type) / tasks that fit on one: exact for
 *    groups that fill their machines, and optimistic only for the remainder of a group that nobody shares a machine
 *    with. What is bought beyond the quota is refused by the market and waits one cycle.
 *  - `budget_<job>`: USD that the job may still spend (non-renewable).
 *
 * Instances stay in `room` over the whole window; one with nothing but preemptible work can be given up as a whole,
 * which returns its vCPUs to the quota (problem.ts).
 */

import type { JobId, PoolId } from '../../kernel/ids.ts';
import { isLive } from '../../domain/instance.ts';
import {
  KINDS,
  RESOURCE_KINDS,
  addInto,
  countFits,
  dominantShare,
  plusResources,
  type Resources,
} from '../../domain/resources.ts';
import { instanceParts, type InstanceView, limitOf, type RunningTask } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { meanLeftS } from '../../policy/work-left.ts';
import { mayBePreempted, preemptible, slotsLeft, slotsUntilFree, type Preemptible } from './preempt.ts';
import type { Partition } from './strl/supply.ts';
import { milliCpuOf, usdPerHourOf } from '../../domain/pool.ts';

/** Live instances of a pool that take tasks. */
export interface Room {
  /** Added up when first asked for, O(attempts of the room). */
  readonly partition: () => Partition;
  /** Live instances in the order of their ids. */
  readonly views: () => readonly InstanceView[];
  /** Number of instances. */
  readonly count: number;
  /** True if an instance stays in later slots anyhow: an empty one is released before, unless its hour is paid. */
  readonly stays: () => boolean;
  /** Free resources per instance, unordered. */
  readonly free: (position: number) => Resources;
  /** The same with preemptible work counted as free; summed on first use. */
  readonly afterPreemption: (position: number) => Resources;
}

export interface Capacity {
  readonly slots: number;
  readonly rooms: ReadonlyMap<PoolId, Room>;
  readonly quota: Partition;
  /** mCPU that new instances may have now; never negative. */
  readonly headroomMilliCpu: number;
  readonly limitMilliCpu: number;
  /** Attempts that may be stopped, by instance: appraised when first asked for, O(attempts). */
  readonly preemptible: () => ReadonlyMap<string, readonly Preemptible[]>;
}

export const QUOTA = 'quota';
export const roomOf = (pool: PoolId): string => `room_${pool}`;
export const budgetOf = (job: JobId): string => `budget_${job}`;

/** `reservedMilliCpu`: need of this cycle's moves to on-demand; they come first. */
export function capacityOf(input: PlanInput, reservedMilliCpu: number): Capacity {
  const { snapshot, config } = input;
  const { takingTasks, leaving } = instanceParts(snapshot);
  const rooms = new Map<PoolId, Room>();
  let taking = 0;
  for (const [pool, there] of [...takingTasks].sort(([a], [b]) => (a < b ? -1 : 1))) {
    rooms.set(pool, roomIn(pool, there, input));
    taking += (there[0] === undefined ? 0 : milliCpuOf(there[0].pool)) * there.length;
  }
  let live = taking;
  // Instances that are warned or being released are gone by the next slot.
  let staying = taking;
  for (const view of leaving) {
    if (!isLive(view.instance)) continue;
    live += milliCpuOf(view.pool);
    if (view.instance.state !== 'warned' && view.instance.state !== 'releasing') staying += milliCpuOf(view.pool);
  }
  const limitMilliCpu = snapshot.limits.vcpus * 1000;
  const left = (used: number): number => Math.max(0, limitMilliCpu - used - reservedMilliCpu);
  let appraised: Map<string, readonly Preemptible[]> | null = null;
  return {
    slots: config.lookAheadSlots,
    rooms,
    quota: {
      id: QUOTA,
      renewable: true,
      kinds: ['cpu'],
      capacity: Array.from({ length: config.lookAheadSlots }, (_, slot) => [left(slot === 0 ? live : staying)]),
    },
    headroomMilliCpu: left(live),
    limitMilliCpu,
    preemptible: () =>
      (appraised ??= new Map(
        [...takingTasks.values()]
          .flat()
          .sort(byId)
          .map((view) => [
            view.instance.id,
            view.attempts.flatMap((running) => preemptible(running, view, input) ?? []),
          ]),
      )),
  };
}

function roomIn(pool: PoolId, there: readonly InstanceView[], input: PlanInput): Room {
  let sorted: readonly InstanceView[] | null = null;
  let partition: Partition | null = null;
  const afterPreemption: Resources[] = [];
  return {
    views: () => (sorted ??= [...there].sort(byId)),
    partition: () => (partition ??= roomPartition(pool, there, input)),
    count: there.length,
    stays: () => input.config.billing === 'per-hour' || there.some((view) => view.attempts.length > 0),
    free: (position) => (there[position] as InstanceView).free,
    afterPreemption: (position) =>
      (afterPreemption[position] ??= withPreemption(there[position] as InstanceView, input)),
  };
}

const byId = (a: InstanceView, b: InstanceView): number => (a.instance.id < b.instance.id ? -1 : 1);

const withPreemption = (view: InstanceView, input: PlanInput): Resources =>
  view.attempts.reduce(
    (free, r) => (mayBePreempted(r, input) || isBeingFreed(r, input) ? plusResources(free, r.attempt.resources) : free),
    view.free,
  );

/** True if it stops, and not for a move: what moves leaves an instance that may be given back. */
const isStopped = ({ attempt }: RunningTask): boolean =>
  attempt.state === 'stopping' && attempt.goesTo === undefined && attempt.leaving === undefined;

/** True if it stops, and its place is free within this slot. */
const isBeingFreed = (running: RunningTask, { config }: PlanInput): boolean =>
  isStopped(running) && slotsUntilFree(config) === 0;

/**
 * Sums of fractions differ in their last digits with the order of the summands, which is to leave no trace in a plan.
 */
const withoutRounding = (sum: number): number => Math.round(sum * 1e6) / 1e6;

function roomPartition(pool: PoolId, views: readonly InstanceView[], input: PlanInput): Partition {
  const { lookAheadSlots, slotS } = input.config;
  const free = new Float64Array(lookAheadSlots * KINDS);
  const add = (from: number, given: Resources): void => {
    for (let at = from * KINDS; at < free.length; at += KINDS) addInto(free, at, given);
  };
  for (const view of views) {
    add(0, view.free);
    for (const r of view.attempts) {
      if (isStopped(r)) add(slotsUntilFree(input.config), r.attempt.resources);
      // Ending work returns its room in a later slot, at the earliest in the next one.
      else if (lookAheadSlots > 1) add(slotsLeft(meanLeftS(r, input), slotS), r.attempt.resources);
    }
  }
  const capacity = Array.from({ length: lookAheadSlots }, (_, slot) =>
    Array.from(free.subarray(slot * KINDS, (slot + 1) * KINDS), withoutRounding),
  );
  return { id: roomOf(pool), renewable: true, kinds: RESOURCE_KINDS, capacity };
}

/**
 * Number of tasks that fit on a room's instances one by one, with preemptible work counted as free; at most `most`.
 * Answers are kept for each `need` object.
 */
export type Fitting = (need: Resources, room: Room, most: number) => number;

/**
 * Scans instances only until enough tasks fit, and continues from there for larger requests. Preemptible work is summed
 * only if too few fit beside it. So with much room, or much preemptible work, a few instances answer; without any, all
 * are scanned, once for each distinct need.
 */
export function fittings(): Fitting {
  const known = new Map<Room, Map<Resources, Fits>>();
  return (need, room, most) => {
    let of = known.get(room);
    if (of === undefined) known.set(room, (of = new Map<Resources, Fits>()));
    let counted = of.get(need);
    if (counted === undefined) of.set(need, (counted = { beside: { fit: 0, seen: 0 }, instead: { fit: 0, seen: 0 } }));
    const { beside, instead } = counted;
    while (beside.fit < most && beside.seen < room.count) beside.fit += countFits(need, room.free(beside.seen++));
    if (beside.fit >= most) return most;
    while (instead.fit < most && instead.seen < room.count)
      instead.fit += countFits(need, room.afterPreemption(instead.seen++));
    return Math.min(instead.fit, most);
  };
}

/** Fits beside running work, and in place of preemptible work. */
interface Fits {
  readonly beside: Counted;
  readonly instead: Counted;
}
/** Fits on the instances scanned so far. */
interface Counted {
  fit: number;
  seen: number;
}

/** Expected cost (USD) of a job's running work until its end, at the present price. O(pools + attempts). */
function committedUsd(input: PlanInput): ReadonlyMap<JobId, number> {
  const committed = new Map<JobId, number>();
  const quotes = new Map(input.snapshot.pools.map(({ pool, quote }) => [pool.id, quote]));
  for (const view of input.snapshot.instances.values()) {
    for (const running of view.attempts) {
      const { job, resources } = running.attempt;
      const share = dominantShare(resources, view.pool.type.capacity);
      const hours = meanLeftS(running, input) / 3600;
      const usdPerHour = usdPerHourOf(view.pool, quotes.get(view.pool.id));
      committed.set(job, (committed.get(job) ?? 0) + share * usdPerHour * hours);
    }
  }
  return committed;
}

/**
 * Remaining budgets of waiting jobs after their running work, USD. O(groups), plus `committedUsd` if a job has a limit.
 */
export function leftOfBudgets(input: PlanInput): ReadonlyMap<JobId, number> {
  const left = new Map<JobId, number>();
  let committed: ReadonlyMap<JobId, number> | null = null;
  for (const { job } of input.snapshot.groups) {
    if (left.has(job)) continue;
    const of = limitOf(input.snapshot, job);
    if (of === null) continue;
    committed ??= committedUsd(input);
    left.set(job, Math.max(0, of.limitUsd - of.spentUsd - (committed.get(job) ?? 0)));
  }
  return left;
}
