import TinyQueue from 'tinyqueue';
import type { GroupId } from '../../kernel/ids.ts';
import { invariant } from '../../kernel/errors.ts';
import { add, raw } from '../../kernel/units.ts';
import { quantileS } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import { begunBy, doneOnceS, type Begun } from '../../domain/work-to-do.ts';
import { worthAt } from '../../domain/utility.ts';
import { shortJobsFirst } from '../../policy/short-jobs.ts';
import type { Deliberation } from '../decide/deliberation.ts';
import { milliCpuIn } from '../../domain/resources.ts';

/** Room in use: the expected end of a task, seconds from now, and its vCPUs until then. */
export interface Busy {
  readonly inS: number;
  readonly milliCpu: number;
}

/** A group that waits for room. */
export interface Queued {
  readonly group: GroupId;
  readonly tasks: number;
  /** Per task. */
  readonly milliCpu: number;
  /** Per task. */
  readonly runtimeS: number;
  /** All tasks start together. */
  readonly gang: boolean;
}

export interface RoomForecast {
  /** Under the vCPU limit and taken by nothing. */
  readonly freeMilliCpu: number;
  readonly ends: readonly Busy[];
  /** In the order of service. */
  readonly queue: readonly Queued[];
}

/** Steps of the simulation per end and group; no start beyond them is predicted. */
const STEPS_EACH = 4;

/**
 * Expected start of the first task of each waiting group, seconds from now: the queue in its order, without overtaking,
 * on room that ends free and started tasks take until they end (list scheduling, Graham 1969). Never before the first
 * end: the plan has just found no room, whatever the sum of free vCPUs (it may be in pieces, or no pool sells it).
 * Groups without an answer start beyond the prediction. Room is counted in vCPUs, as the limit is. O((ends + groups)
 * log(ends + groups)).
 */
export function expectedStartsS(of: RoomForecast): Map<GroupId, number> {
  const starts = new Map<GroupId, number>();
  const ends = new TinyQueue<Busy>([...of.ends], (a, b) => a.inS - b.inS);
  const firstEndS = ends.peek()?.inS;
  if (firstEndS === undefined) return starts;
  let steps = STEPS_EACH * (of.ends.length + of.queue.length);
  let nowS = 0;
  let free = of.freeMilliCpu;
  for (const { group, tasks, milliCpu, runtimeS, gang } of of.queue) {
    const unit = gang ? tasks * milliCpu : milliCpu;
    let left = gang ? 1 : tasks;
    while (left > 0) {
      if (steps-- <= 0) return starts;
      const fitting = unit > 0 ? Math.min(left, Math.floor(free / unit + 1e-9)) : left;
      if (fitting > 0) {
        if (!starts.has(group)) starts.set(group, Math.max(nowS, firstEndS));
        free -= fitting * unit;
        left -= fitting;
        ends.push({ inS: nowS + runtimeS, milliCpu: fitting * unit });
        continue;
      }
      const next = ends.pop();
      if (next === undefined) return starts;
      nowS = Math.max(nowS, next.inS);
      free += next.milliCpu;
    }
  }
  return starts;
}

/** Waiting tasks of a group, and the median of their remaining running time. */
interface WaitsForRoom {
  readonly group: PendingGroup;
  readonly tasks: number;
  readonly runtimeS: number;
}

/**
 * Groups that wait for room, in their order: by worth per vCPU and second, short jobs first if the plan has it so.
 * `more`: waiting tasks besides those of the allotment.
 */
export function waitingForRoom(
  d: Deliberation,
  more: readonly ReadonlyMap<GroupId, number>[] = [],
): readonly WaitsForRoom[] {
  const counts = new Map<GroupId, number>();
  const add = (group: GroupId, count: number): void => void counts.set(group, (counts.get(group) ?? 0) + count);
  for (const of of more) for (const [group, count] of of) add(group, count);
  for (const { group, count, why } of d.allotment.waits) if (why === 'capacity' || why === 'gang') add(group, count);
  if (counts.size === 0) return [];
  const groups = new Map(d.snapshot.groups.map((g) => [g.id, g]));
  const leftS = medians();
  const priority = d.shortJobsFirst ? shortJobsFirst(d) : () => 1;
  return [...counts]
    .map(([id, tasks]) => {
      const group = invariant(groups.get(id), `group ${id} waits and is not pending`);
      const forecast = d.forecasts.runtime.get(`${group.job}/${group.stage.name}`);
      const runtimeS = leftS(forecast, group);
      return { group, tasks, runtimeS, density: priority(group) * density(d, group, runtimeS) };
    })
    .sort((a, b) => b.density - a.density || (a.group.id < b.group.id ? -1 : 1));
}

/** Expected start of groups that wait for room: seconds from now. */
export function expectedStarts(d: Deliberation): ReadonlyMap<GroupId, number> {
  const waiting = waitingForRoom(d);
  if (waiting.length === 0) return new Map();
  const groups = new Map(d.snapshot.groups.map((g) => [g.id, g]));
  const leftS = medians();
  const queue = waiting.map(({ group, tasks, runtimeS }): Queued => ({
    group: group.id,
    tasks,
    milliCpu: milliCpuIn(group.need),
    runtimeS,
    gang: group.stage.gang,
  }));
  const ends = [...runningEnds(d, leftS), ...startingEnds(d, groups)];
  const takenMilliCpu = ends.reduce((sum, e) => sum + e.milliCpu, 0);
  const freeMilliCpu = Math.max(0, d.snapshot.limits.vcpus * 1000 - takenMilliCpu);
  return expectedStartsS({ freeMilliCpu, ends, queue });
}

/** Worth of finishing one task now, per vCPU and second that it takes. */
function density(d: Deliberation, group: PendingGroup, runtimeS: number): number {
  const worth = d.worths.groups.get(group.id);
  if (worth === undefined) return 0;
  return worthAt(worth.curve, d.snapshot.nowMs) / Math.max(milliCpuIn(group.need) * runtimeS, 1e-9);
}

/** Median of a task's remaining running time. */
type MedianLeftS = (forecast: RuntimeForecast | undefined, of: Begun) => number;

/** Remembers the medians of whole tasks. */
function medians(): MedianLeftS {
  const whole = new Map<RuntimeForecast, number>();
  return (forecast, of) => {
    const onceS = raw(doneOnceS(of));
    let medianS = 0;
    if (forecast !== undefined) {
      const known = whole.get(forecast);
      medianS = known ?? quantileS(forecast.runtime, 0.5);
      if (known === undefined) whole.set(forecast, medianS);
    }
    // A task beyond its median counts as half-way, as domain/distribution.ts does with whole forecasts.
    return (medianS > onceS ? medianS : 2 * onceS) - raw(of.keptS);
  };
}

const runningEnds = (d: Deliberation, leftS: MedianLeftS): Busy[] =>
  d.snapshot.running.map((running) => ({
    inS: leftS(forecastFor(d.forecasts.runtime, running), begunBy(running, d.snapshot.nowMs)),
    milliCpu: milliCpuIn(running.attempt.resources),
  }));

/** Ends of the tasks that this decision starts, also on coming instances. */
const startingEnds = (d: Deliberation, groups: ReadonlyMap<GroupId, PendingGroup>): Busy[] =>
  d.allotment.starts.flatMap(({ option, count }) => {
    const group = groups.get(option.group);
    const { startDelayS, expectedDurationS } = option.offer;
    const inS = raw(add(startDelayS, expectedDurationS));
    return group === undefined ? [] : [{ inS, milliCpu: count * milliCpuIn(group.need) }];
  });
