/**
 * Which tasks wait for a place instead of being bought one: short ones, in turns, as described here, and those of which
 * no run is known, until the first runs tell (first-runs.ts).
 *
 * Which short tasks wait their turn, and how many places the others are bought.
 *
 * A task that takes seconds, or less than the start of an instance anyhow, is done before one bought for it is up, and
 * uses a part of the minute that is charged at least. So a place, which is what one task takes of an instance, serves
 * such tasks one after the other: a `turn` is a task's running time and the time until the next one starts there.
 * - Those that find a turn soon enough on places that short tasks hold, running or starting, wait for it.
 * - The others share the places that are bought for them.
 * Soon enough is `patienceS` later than on a new instance: as long as that takes to start, so that a stage takes no
 * more than about twice as long as with a place for each of its tasks, and half of the slack at most that its deadline
 * leaves, so that the stages behind it have some as well. From the last safe moment on tasks wait only where their turn
 * comes in half the time of a start.
 *
 * Turns are counted for all tasks of a group that wait for room, those too that the vCPU limit keeps from starting now:
 * where they are more than places can serve in time, as much is bought as the limit allows.
 *
 * Slack shrinks no faster than time goes, so what is promised a turn in one cycle finds it in the next, unless other
 * work comes that the packer puts first, or tasks take longer than they were thought to: then it is bought for, or
 * waits anew. So one that is much shorter than what keeps coming may wait for long, if it has no deadline.
 *
 * Gangs, and tasks whose turn takes longer than an instance to start, are bought for one by one.
 */
import { invariant } from '../../kernel/errors.ts';
import type { GroupId } from '../../kernel/ids.ts';
import { isPositive, raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { type Pool, isSpotPool } from '../../domain/pool.ts';
import { vector, type Resources } from '../../domain/resources.ts';
import { instanceParts, isStopping, type InstanceView, type PendingGroup } from '../../domain/snapshot.ts';
import type { Leftover, Queued, QueueInput, QueuePolicy } from '../../policy/contracts.ts';
import { meanToDo } from '../../domain/work-to-do.ts';
import { awaitFirstRuns } from './first-runs.ts';

/** Baseline: what found no room is bought for, each task a place of its own. */
export const eachItsPlace: QueuePolicy = ({ leftovers }) => ({ leftovers, forSlotReuse: NONE, untold: NONE });

/**
 * O(leftovers); and where any are short O(instances and what runs there) and O(leftovers x pools x sizes of places):
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

const NONE: Queued['forSlotReuse'] = new Map();

/** A turn of nothing would go on for ever. */
const LEAST_REUSE_S = 1;

/** Short tasks that wait for a place. Times in seconds. */
interface Waiting {
  readonly leftover: QueueInput['leftovers'][number];
  readonly need: readonly number[];
  /** Whether the plan chose spot for them. */
  readonly onSpot: boolean;
  /** Until a place bought now is up. */
  readonly startS: number;
  readonly reuseS: number;
  readonly patienceS: number;
  /** When its last turn on a place that is held must begin, from now. */
  readonly latestS: number;
}

/** Null for what does not wait for turns. */
function waitingOf(leftover: Waiting['leftover'], input: QueueInput): Waiting | null {
  const { group, option } = leftover;
  const startS = raw(option.offer.startDelayS);
  const reuseS = reuseSOf(group, input);
  const worth = input.worths.get(group.id);
  if (worth === undefined || group.stage.gang || reuseS > startS) return null;
  const { latestSafeStartMs } = worth;
  const slackS = latestSafeStartMs === null ? Infinity : secondsBetween(input.snapshot.nowMs, latestSafeStartMs);
  const patienceS = Math.max(0, Math.min(startS, slackS / 2));
  const latestS = slackS > 0 ? startS + patienceS : startS / 2;
  const onSpot = isSpotPool(option.offer.pool);
  return { leftover, need: vector(group.need), onSpot, startS, reuseS, patienceS, latestS };
}

/** The mean, as many turns are added up. */
function reuseSOf(group: PendingGroup, { forecasts, config }: QueueInput): number {
  const key = `${group.job}/${group.stage.name}`;
  const forecast = invariant(forecasts.runtime.get(key), `no runtime forecast for ${key}`);
  const readS = isPositive(group.keptS) ? config.restoreS : 0;
  return Math.max(LEAST_REUSE_S, meanToDo(forecast.runtime, group) + readS + config.turnoverS);
}

/** So many places of a pool that are alike: what one task takes of an instance. */
interface PlacesAlike {
  readonly need: readonly number[];
  places: number;
  /** Seconds from now for which they are promised, all together. */
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

  /** Turns for as many of `count` tasks as find one in time, which are promised to them. */
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

/** How many tasks have room in one place; 0 where one has not. */
function timesIn(need: readonly number[], place: readonly number[]): number {
  let times = Infinity;
  for (let kind = 0; kind < need.length; kind++) {
    const n = need[kind] ?? 0;
    if (n > 0) times = Math.min(times, wholesIn(place[kind] ?? 0, n));
  }
  return times === Infinity ? 1 : times;
}

/** On instances that take tasks: of the short tasks that run there, or are given to them in this cycle. */
function placesHeld(input: QueueInput, waiting: readonly Waiting[]): HeldPlaces {
  const { snapshot, placements, leftOf, preempted, config } = input;
  const shortS = waiting.reduce((most, w) => Math.max(most, w.startS), 0);
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const reuses = new Map<GroupId, number>();
  const given = Map.groupBy(placements, (p) => p.on);
  const held = new HeldPlaces();
  const add = ({ instance, pool, attempts }: InstanceView): void => {
    for (const running of attempts) {
      const { id, resources: need, startedMs } = running.attempt;
      const leftS = raw(leftOf(running));
      const ranS = startedMs === null ? 0 : secondsBetween(startedMs, snapshot.nowMs);
      if (ranS + leftS > shortS || isStopping(running) || preempted.has(id)) continue;
      held.add(pool, { need, places: 1, takenS: leftS + config.turnoverS });
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

/** Of an instance that has not been launched yet as if it were now. */
function untilUpS({ state, readyMs }: Instance, nowMs: EpochMs, startDelayS: number): number {
  if (state === 'ready') return 0;
  return readyMs === null ? startDelayS : Math.max(0, secondsBetween(nowMs, readyMs));
}

const wholesIn = (amount: number, part: number): number => Math.max(0, Math.floor(amount / part + 1e-9));

/** As the packer goes about it, then by names: the order of the input does not matter. */
const longestFirst = (a: Waiting, b: Waiting): number =>
  b.reuseS - a.reuseS || compareText(nameOf(a.leftover), nameOf(b.leftover));
const nameOf = ({ group, option: { offer } }: Leftover): string =>
  `${group.id} ${offer.pool} ${offer.bid === 'uncapped' ? '' : raw(offer.bid)}`;
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
