/** Fills an instance with tasks of different proportions, so that its resources are used up together. */
import { KINDS, SLACK } from '../domain/resources.ts';

/** Tasks alike. */
export interface Alike {
  readonly need: readonly number[];
  /** Tasks without room, before the fill. */
  readonly left: number;
}

/** So many of the tasks alike are on the instance. */
export interface Taken<T> {
  readonly of: T;
  tasks: number;
}

/** Kinds of tasks that are looked at for each step of a fill. */
export const MOST_LOOKED_AT = 64;
/** Largest part of an instance that a step takes. */
const STEP = 1 / 48;
/** Weight of size against proportion. */
const LARGER_FIRST = 0.5;
/** Resources that are hardly asked for have no proportion. */
const LEAST_TARGET = 0.02;

/**
 * One instance, being filled: each step adds the tasks that keep the used parts of its resources in proportion to a
 * target, the larger first. O(steps x kinds of tasks); at most some 50 steps where tasks are small.
 */
export class BalancedFill<T extends Alike> {
  readonly taken: Taken<T>[] = [];
  readonly #capacity: readonly number[];
  readonly #target: ArrayLike<number>;
  readonly #free: Float64Array;

  /** `target`: parts in which the resources are to be used, 1 for those that are to be used up; KINDS numbers. */
  constructor(capacity: readonly number[], target: ArrayLike<number>, free: ArrayLike<number> = capacity) {
    this.#capacity = capacity;
    this.#target = target;
    this.#free = Float64Array.from(free);
  }

  add(some: readonly T[]): void {
    const open = some.map((of): Taken<T> => ({ of, tasks: 0 }));
    let count = open.length;
    for (;;) {
      let best: Taken<T> | null = null;
      let least = Infinity;
      let fitting = 0;
      for (let i = 0; i < count; i++) {
        const taken = open[i] as Taken<T>;
        if (!this.#fits(taken)) continue;
        open[fitting++] = taken;
        const cost = this.#imbalance(taken.of.need);
        if (cost < least) [best, least] = [taken, cost];
      }
      if (best === null) return;
      if (best.tasks === 0) this.taken.push(best);
      this.#take(best);
      count = fitting;
    }
  }

  #fits({ of, tasks }: Taken<T>): boolean {
    if (tasks >= of.left) return false;
    for (let k = 0; k < KINDS; k++) if ((of.need[k] ?? 0) > (this.#free[k] ?? 0) + SLACK) return false;
    return true;
  }

  /** Spread of the used parts over their target once a task is added, less its size. */
  #imbalance(need: readonly number[]): number {
    let low = Infinity;
    let high = 0;
    let size = 0;
    for (let k = 0; k < KINDS; k++) {
      const capacity = this.#capacity[k] ?? 0;
      if (capacity === 0) continue;
      const of = (need[k] ?? 0) / capacity;
      size += of;
      const target = this.#target[k] ?? 0;
      if (target < LEAST_TARGET) continue;
      const used = (1 - (this.#free[k] ?? 0) / capacity + of) / target;
      if (used < low) low = used;
      if (used > high) high = used;
    }
    return (high > low ? high - low : 0) - LARGER_FIRST * size;
  }

  #take(taken: Taken<T>): void {
    const { need, left } = taken.of;
    let largest = 0;
    let room = left - taken.tasks;
    for (let k = 0; k < KINDS; k++) {
      const n = need[k] ?? 0;
      if (n === 0) continue;
      largest = Math.max(largest, n / (this.#capacity[k] ?? 0));
      room = Math.min(room, Math.floor(((this.#free[k] ?? 0) + SLACK) / n));
    }
    const tasks = Math.min(room, largest > 0 ? Math.max(1, Math.floor(STEP / largest)) : Infinity);
    for (let k = 0; k < KINDS; k++) this.#free[k] = (this.#free[k] ?? 0) - tasks * (need[k] ?? 0);
    taken.tasks += tasks;
  }
}

/**
 * Those with tasks left, evenly spread over the order that they have, if there are too many. Those without are taken
 * out of the list once they are a quarter of what is looked at. Amortised O(MOST_LOOKED_AT).
 */
export function openOf<T extends Alike>(all: T[]): readonly T[] {
  const seen = spread(all);
  const open = seen.filter(hasLeft);
  if (open.length * 4 > seen.length * 3) return open;
  let kept = 0;
  for (const one of all) if (hasLeft(one)) all[kept++] = one;
  all.length = kept;
  return spread(all);
}

const hasLeft = ({ left }: Alike): boolean => left > 0;

const spread = <T>(all: readonly T[]): readonly T[] =>
  all.length <= MOST_LOOKED_AT
    ? all
    : Array.from({ length: MOST_LOOKED_AT }, (_, i) => all[Math.floor((i * all.length) / MOST_LOOKED_AT)] as T);

/** Order in which proportions of the first two resources differ: evenly spaced ones have all of them. */
export const byProportion =
  (capacity: readonly number[]) =>
  (a: Alike, b: Alike): number =>
    proportion(b, capacity) - proportion(a, capacity);

const proportion = ({ need }: Alike, capacity: readonly number[]): number =>
  (need[0] ?? 0) / (capacity[0] ?? 1) / (1e-9 + (need[1] ?? 0) / (capacity[1] ?? 1));
