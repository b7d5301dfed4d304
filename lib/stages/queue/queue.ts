/**
 * Slot reuse: tasks that wait for a slot instead of a purchase. Short tasks wait as described here; tasks of an unknown
 * class wait for the first runs (first-runs.ts).
 * A task that takes seconds, or less than the start of an instance, is done before an instance bought for it is up, and
 * uses a part of the minute that is charged at least. So a slot, the part of an instance that one task takes, serves
 * such tasks one after the other: a reuse takes a task's running time and the time until the next one starts there.
 * - Tasks that find a reuse soon enough in slots held by short tasks, running or starting, wait for it.
 * - The others share new slots. Soon enough is `patienceS` later than on a new instance: as long as that takes to
 *   start, so that a stage takes at most about twice as long as with a slot for each task; and at most half of the
 *   slack before its deadline, so that the stages behind it have some as well. After the last safe start, tasks wait
 *   only for a reuse within half the time of a start.
 * Under billing by the hour a task without a deadline waits as long as its reuse ends within the hour that a new
 * instance would be paid for, however long its start takes.
 * Reuses are counted for all tasks of a group that wait for room, including those that the vCPU limit keeps from
 * starting now: if slots cannot serve them all in time, as much is bought as the limit allows.
 * Slack shrinks no faster than time passes, so a reuse promised in one cycle is found in the next, unless the packer
 * puts other work first, or tasks take longer than expected: then a slot is bought, or the task waits anew. So a task
 * without a deadline may wait for long if longer tasks keep coming.
 * Gangs, and tasks whose reuse takes longer than they would wait for it, get purchases one by one.
 */
import { compareText } from '../../kernel/compare.ts';
import { invariant } from '../../kernel/errors.ts';
import type { GroupId } from '../../kernel/ids.ts';
import { isPositive, raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Instance } from '../../domain/instance.ts';
import { type Pool, isSpotPool } from '../../domain/pool.ts';
import { vector, type Resources } from '../../domain/resources.ts';
import { instanceParts, isStopping, type InstanceView, type PendingGroup } from '../../domain/snapshot.ts';
import type { Leftover, Queued, QueueInput, QueuePolicy } from '../../policy/contracts.ts';
import { meanToDo } from '../../domain/work-to-do.ts';
import { awaitFirstRuns, compareNames } from './first-runs.ts';
import { leftS } from '../../policy/left-of.ts';

/** Baseline: each task without room gets a slot of its own. */
export const eachItsPlace: QueuePolicy = ({ leftovers }) => ({ leftovers, forSlotReuse: NONE, untold: NONE });

/**
 * O(leftovers); with short tasks also O(instances and running tasks) and O(leftovers x pools x sizes of slots):
 * bench/queue.ts.
 */
export const shortTasksQueue: QueuePolicy = (input) => {
  const waiting = input.leftovers.flatMap((leftover) => waitingOf(leftover, input) ?? []).sort(longestFirst);
  const short = new Set<Leftover>(waiting.map((w) => w.leftover));
  const { leftovers, waiting: untold } = awaitFirstRuns(input, short);
  if (waiting.length === 0) return { leftovers, forSlotReuse: NONE, untold };
  const places = placesHeld(input, waiting);
  const open = new Map(input.snapshot.pools.flatMap((v) => (v.open && v.quote !== null ? [[v.pool.id, v.pool]] : [])));
  const behind = new Map(input.behind);
  const forSlotReuse = new Map<GroupId, number>();
  const toBuy = new Map<Leftover, number>();
  for (const of of waiting) {
    const { leftover, patienceS, reuseS } = of;
    const { group, option, count } = leftover;
    const all = count + (behind.get(group.id) ?? 0);
    const left = all - places.take(of, all);
    const reuses = 1 + wholesIn(patienceS, reuseS);
    const bought = Math.min(count, left, Math.ceil(left / reuses));
    toBuy.set(leftover, bought);
    behind.set(group.id, Math.max(0, Math.min(all - count, left - bought * reuses)));
    if (bought < count) forSlotReuse.set(group.id, (forSlotReuse.get(group.id) ?? 0) + count - bought);
    const pool = open.get(option.offer.pool);
    if (pool === undefined || bought === 0) continue;
    places.add(pool, {
      need: group.need,
      places: bought,
      takenS: bought * of.startS + Math.min(left, bought * reuses) * reuseS,
    });
  }
  const bought = leftovers.flatMap((leftover): Leftover[] => {
    const count = toBuy.get(leftover) ?? leftover.count;
    return count === 0 ? [] : [{ ...leftover, count }];
  });
  return { leftovers: bought, forSlotReuse, untold };
};

const HOUR_S = 3600;

const NONE: Queued['forSlotReuse'] = new Map();

/** Without a lower bound, reuses of zero length would never end. */
const LEAST_REUSE_S = 1;

/** Short tasks that wait for a place. Times in seconds. */
interface Waiting {
  readonly leftover: QueueInput['leftovers'][number];
  readonly need: readonly number[];
  /** True if the plan chose spot for them. */
  readonly onSpot: boolean;
  /** Time until a slot bought now is up. */
  readonly startS: number;
  readonly reuseS: number;
  /** Longest wait without a deadline; the longest reuse of a slot. */
  readonly withinS: number;
  readonly patienceS: number;
  /** Latest start of its last reuse of a held slot, from now. */
  readonly latestS: number;
}

/** Null for tasks without slot reuse. */
function waitingOf(leftover: Waiting['leftover'], input: QueueInput): Waiting | null {
  const { group, option } = leftover;
  const startS = raw(option.offer.startDelayS);
  const reuseS = reuseSOf(group, input);
  const worth = input.worths.groups.get(group.id);
  if (worth === undefined || group.stage.gang) return null;
  const { latestSafeStartMs } = worth;
  const withinS = latestSafeStartMs === null ? usualPatienceS(startS, reuseS, input.config) : startS;
  if (reuseS > withinS) return null;
  const slackS = latestSafeStartMs === null ? Infinity : secondsBetween(input.snapshot.nowMs, latestSafeStartMs);
  const patienceS = Math.max(0, Math.min(withinS, slackS / 2));
  const latestS = slackS > 0 ? startS + patienceS : startS / 2;
  const onSpot = isSpotPool(option.offer.pool);
  return { leftover, need: vector(group.need), onSpot, startS, reuseS, withinS, patienceS, latestS };
}

/**
 * Time for which a task waits for a reuse rather than on a new instance: as long as that takes to start, or, under
 * billing by the hour, while a reuse ends within the hour that a new instance would be paid for.
 */
const usualPatienceS = (startS: number, reuseS: number, { billing }: Pick<SchedulerConfig, 'billing'>): number =>
  billing === 'per-hour' ? Math.max(startS, HOUR_S - startS - reuseS) : startS;

/** Mean time of one reuse; the mean, because many are added up. */
function reuseSOf(group: PendingGroup, { forecasts, config }: QueueInput): number {
  const key = `${group.job}/${group.stage.name}`;
  const forecast = invariant(forecasts.runtime.get(key), `no runtime forecast for ${key}`);
  const readS = isPositive(group.keptS) ? config.restoreS : 0;
  return Math.max(LEAST_REUSE_S, meanToDo(forecast.runtime, group) + readS + config.turnoverS);
}

/** Equal slots of a pool: the part of an instance that one task takes. */
interface PlacesAlike {
  readonly need: readonly number[];
  places: number;
  /** Promised time of all these slots together, seconds from now. */
  takenS: number;
}

/**
 * Places that short tasks hold, by pool. A task may have the place of a larger one, not that of several smaller ones.
 */
class HeldPlaces {
  readonly #pools = new Map<Pool, Map<string, PlacesAlike>>();

  add(
    pool: Pool,
    { need, places, takenS }: { readonly need: Resources; readonly places: number; readonly takenS: number },
  ): void {
    let alike = this.#pools.get(pool);
    if (alike === undefined) this.#pools.set(pool, (alike = new Map<string, PlacesAlike>()));
    const key = vector(need).join();
    const of = alike.get(key);
    if (of === undefined) alike.set(key, { need: vector(need), places, takenS });
    else {
      of.places += places;
      of.takenS += takenS;
    }
  }

  /** Names give the order, so that it is not that of the input. */
  sort(): this {
    for (const [pool, alike] of [...this.#pools].sort(([a], [b]) => compareText(a.id, b.id))) {
      this.#pools.delete(pool);
      this.#pools.set(pool, new Map([...alike].sort(([a], [b]) => compareText(a, b))));
    }
    return this;
  }

  /** Promises reuses to as many of `count` tasks as find one in time. */
  take({ leftover: { inPool }, need, onSpot, reuseS, latestS }: Waiting, count: number): number {
    const withinS = latestS + reuseS;
    let left = count;
    for (const [pool, alike] of this.#pools) {
      if (left === 0) break;
      if (onSpot && pool.option === 'on-demand') continue;
      let mayUse: boolean | null = null;
      for (const of of alike.values()) {
        const freeS = of.places * withinS - of.takenS;
        if (left === 0 || freeS <= 0) continue;
        if (!(mayUse ??= inPool(pool))) break;
        const perPlace = timesIn(need, of.need);
        const reuses = Math.min(left, wholesIn(freeS * perPlace, reuseS));
        if (reuses === 0) continue;
        of.takenS += (reuses * reuseS) / perPlace;
        left -= reuses;
      }
    }
    return count - left;
  }
}

/** Number of tasks that fit into one slot; 0 if none does. */
function timesIn(need: readonly number[], place: readonly number[]): number {
  let times = Infinity;
  for (let kind = 0; kind < need.length; kind++) {
    const n = need[kind] ?? 0;
    if (n > 0) times = Math.min(times, wholesIn(place[kind] ?? 0, n));
  }
  return times === Infinity ? 1 : times;
}

/** Slots held on instances that take tasks, by short tasks that run there or start in this cycle. */
function placesHeld(input: QueueInput, waiting: readonly Waiting[]): HeldPlaces {
  const { snapshot, placements, leftOf, preempted, config } = input;
  const shortS = waiting.reduce((most, w) => Math.max(most, w.withinS), 0);
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const reuses = new Map<GroupId, number>();
  const given = Map.groupBy(placements, (p) => p.on);
  const held = new HeldPlaces();
  const add = ({ instance, pool, attempts }: InstanceView): void => {
    for (const running of attempts) {
      const { id, resources: need, startedMs } = running.attempt;
      const stillS = leftS(running, leftOf);
      const ranS = startedMs === null ? 0 : secondsBetween(startedMs, snapshot.nowMs);
      if (ranS + stillS > shortS || isStopping(running) || preempted.has(id)) continue;
      held.add(pool, { need, places: 1, takenS: stillS + config.turnoverS });
    }
    const upInS = untilUpS(instance, snapshot.nowMs, config.startDelayMeanS);
    for (const { group: id } of given.get(instance.id) ?? []) {
      const group = groups.get(id);
      if (group === undefined) continue;
      let reuseS = reuses.get(id);
      if (reuseS === undefined) reuses.set(id, (reuseS = reuseSOf(group, input)));
      if (reuseS <= shortS) held.add(pool, { need: group.need, places: 1, takenS: upInS + reuseS });
    }
  };
  for (const there of instanceParts(snapshot).takingTasks.values()) for (const view of there) add(view);
  return held.sort();
}

/** Time until the instance is up; a requested one counts as launched now. */
function untilUpS({ state, readyMs }: Instance, nowMs: EpochMs, startDelayS: number): number {
  if (state === 'ready') return 0;
  return readyMs === null ? startDelayS : Math.max(0, secondsBetween(nowMs, readyMs));
}

const wholesIn = (amount: number, part: number): number => Math.max(0, Math.floor(amount / part + 1e-9));

/** The packer's order, then names, so that the order of the input does not matter. */
const longestFirst = (a: Waiting, b: Waiting): number => b.reuseS - a.reuseS || compareNames(a.leftover, b.leftover);
