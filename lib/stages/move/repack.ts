/**
 * Room for the few tasks of one instance on others. The packers of the place stage plan for a whole cycle and are
 * chosen by the preset; this looks for a host for each task before any of them is stopped.
 */
import type { InstanceId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Pool } from '../../domain/pool.ts';
import { fits, minusResources, vector, type Resources } from '../../domain/resources.ts';
import type { RunningTask } from '../../domain/snapshot.ts';
import type { LeftOf } from '../../policy/left-of.ts';

/** A running instance with room. */
export interface Room {
  readonly on: InstanceId;
  readonly pool: Pool;
  readonly free: Resources;
  /** Longest remaining running time of its tasks, seconds. */
  readonly leftS: number;
}

/**
 * Rank of a room for a task that runs on for `leftS`: the highest by the first number, then by the next. `largest`:
 * capacity of the largest room, by resource.
 */
export type Repack = (task: RunningTask, leftS: number, room: Room, largest: readonly number[]) => readonly number[];

/** The packer of section 3.2.2: the same bin and closest end, then greater bins, then lesser ones, with most room. */
export const byRuntimeBin: Repack = (_, leftS, room, largest) => {
  const [native, bin] = [binOf(leftS), binOf(room.leftS)];
  if (bin === native) return [2, -Math.abs(room.leftS - leftS)];
  return bin > native ? [1, native - bin, roominess(room, largest)] : [0, bin - native, roominess(room, largest)];
};

/** The dot product of need and free resources, as fractions of the capacity (section 3.4.2). */
export const byDotProduct: Repack = ({ attempt }, _, { free, pool }) => {
  const [need, left] = [vector(attempt.resources), vector(free)];
  return [
    vector(pool.type.capacity).reduce(
      (sum, c, k) => (c > 0 ? sum + ((need[k] ?? 0) / c) * ((left[k] ?? 0) / c) : sum),
      0,
    ),
  ];
};

export interface Repacked {
  readonly running: RunningTask;
  /** The room with the task in it. */
  readonly room: Room;
}

/** A room for each task, longest tasks first; null: one has none. O(tasks x rooms). */
export function repacked(
  tasks: readonly RunningTask[],
  rooms: readonly Room[],
  { leftOf, repack }: { readonly leftOf: LeftOf; readonly repack: Repack },
): readonly Repacked[] | null {
  const state = new Map(rooms.map((r) => [r.on, r]));
  const found: Repacked[] = [];
  const largest = rooms
    .map(({ pool }) => vector(pool.type.capacity))
    .reduce<readonly number[]>((most, of) => of.map((c, k) => Math.max(c, most[k] ?? 0)), []);
  const longestFirst = tasks
    .map((running) => ({ running, leftS: raw(leftOf(running)) }))
    .sort((a, b) => b.leftS - a.leftS || (a.running.attempt.id < b.running.attempt.id ? -1 : 1));
  for (const { running, leftS } of longestFirst) {
    let best: { readonly room: Room; readonly rank: readonly number[] } | null = null;
    for (const room of state.values()) {
      if (!fits(running.attempt.resources, room.free)) continue;
      if (brokenConstraint(running.stage.constraints, room.pool) !== null) continue;
      const rank = repack(running, leftS, room, largest);
      if (best === null || isHigher({ room, rank }, best)) best = { room, rank };
    }
    if (best === null) return null;
    const free = minusResources(best.room.free, running.attempt.resources);
    const room = { ...best.room, free, leftS: Math.max(best.room.leftS, leftS) };
    state.set(room.on, room);
    found.push({ running, room });
  }
  return found;
}

interface Ranked {
  readonly room: Room;
  readonly rank: readonly number[];
}

/** Of equal ranks the first name. */
function isHigher(a: Ranked, b: Ranked): boolean {
  const difference = a.rank.map((x, i) => x - (b.rank[i] ?? 0)).find((d) => d !== 0);
  return difference === undefined ? a.room.on < b.room.on : difference > 0;
}

const binOf = (s: number): number => (s < 1 ? 0 : Math.floor(Math.log2(s)) + 1);

/** Free resources in units of the largest room, added up. */
const roominess = ({ free }: Room, largest: readonly number[]): number =>
  vector(free).reduce((sum, left, k) => ((largest[k] ?? 0) > 0 ? sum + left / (largest[k] ?? 1) : sum), 0);
