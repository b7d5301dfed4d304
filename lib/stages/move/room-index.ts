/** Room on running instances, by runtime bin, in which each task of another instance looks for a place. */
import type { InstanceId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Pool } from '../../domain/pool.ts';
import { fits, minusResources, plusResources, vector, type Resources } from '../../domain/resources.ts';
import { runningParts, type InstanceView, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { LeftOf } from '../../policy/left-of.ts';

/** A place for a task. */
export interface Found {
  readonly running: RunningTask;
  readonly on: InstanceView;
}

interface Place {
  readonly view: InstanceView;
  free: Resources;
  /** Longest remaining running time of its tasks. */
  readonly leftS: number;
  readonly roominess: number;
}

/** Places that are looked at in a bin. */
const MOST_LOOKED_AT = 64;

const binOf = (s: number): number => (s < 1 ? 0 : Math.floor(Math.log2(s)) + 1);

/**
 * Stratus' packer (section 3.2.2) for the few tasks of one instance: the same bin and the closest end, then greater
 * bins, then lesser ones, with the most room. At most MOST_LOOKED_AT places of a bin are looked at, so that a full
 * fleet costs no more. O(instances log instances) to make, O(bins x MOST_LOOKED_AT) for a task.
 */
export class RoomIndex {
  readonly #places = new Map<InstanceId, Place>();
  /** By bin: ascending by the end, and the roomiest first. */
  readonly #byEnd = new Map<number, Place[]>();
  readonly #byRoom = new Map<number, Place[]>();
  readonly #bins: readonly number[];
  readonly #targets = new Map<InstanceId, number>();
  readonly #gone = new Set<InstanceId>();

  constructor(views: readonly InstanceView[], snapshot: Snapshot, leftOf: LeftOf) {
    const coming = new Map<InstanceId, Resources>();
    for (const { attempt } of runningParts(snapshot).stopping) {
      if (attempt.goesTo === undefined) continue;
      const there = coming.get(attempt.goesTo);
      coming.set(attempt.goesTo, there === undefined ? attempt.resources : plusResources(there, attempt.resources));
    }
    const largest = [0, 0, 0, 0];
    for (const type of new Set(views.map((v) => v.pool.type))) {
      vector(type.capacity).forEach((c, k) => (largest[k] = Math.max(largest[k] ?? 0, c)));
    }
    const scale = largest.map((c) => (c > 0 ? 1 / c : 0));
    for (const view of views) {
      const { id } = view.instance;
      const taken = coming.get(id);
      const free = taken === undefined ? view.free : minusResources(view.free, taken);
      const leftS = view.attempts.reduce((most, r) => Math.max(most, raw(leftOf(r))), 0);
      const roominess = vector(free).reduce((sum, n, k) => sum + n * (scale[k] ?? 0), 0);
      const place: Place = { view, free, leftS, roominess };
      this.#places.set(id, place);
      const bin = binOf(leftS);
      const there = this.#byEnd.get(bin);
      if (there === undefined) this.#byEnd.set(bin, [place]);
      else there.push(place);
    }
    for (const [bin, places] of this.#byEnd) {
      places.sort((a, b) => a.leftS - b.leftS || byName(a, b));
      this.#byRoom.set(
        bin,
        places.toSorted((a, b) => b.roominess - a.roominess || byName(a, b)),
      );
    }
    this.#bins = [...this.#byEnd.keys()].sort((a, b) => a - b);
    this.#leftOf = leftOf;
  }

  readonly #leftOf: LeftOf;

  /** True if it was found for a task. */
  isTarget(id: InstanceId): boolean {
    return (this.#targets.get(id) ?? 0) > 0;
  }

  /** Takes an instance out: its work leaves. */
  drop(id: InstanceId): void {
    this.#gone.add(id);
  }

  /** A place for each task, which is then taken, longest tasks first; null: one has none. */
  find(view: InstanceView, mayUse: (pool: Pool) => boolean): readonly Found[] | null {
    const longest = view.attempts
      .map((running) => ({ running, leftS: raw(this.#leftOf(running)) }))
      .sort((a, b) => b.leftS - a.leftS || (a.running.attempt.id < b.running.attempt.id ? -1 : 1));
    const found: Found[] = [];
    for (const { running, leftS } of longest) {
      const suits = (p: Place): boolean =>
        p.view !== view &&
        !this.#gone.has(p.view.instance.id) &&
        fits(running.attempt.resources, p.free) &&
        mayUse(p.view.pool) &&
        brokenConstraint(running.stage.constraints, p.view.pool) === null;
      const place = this.#placeFor(leftS, suits);
      if (place === null) {
        this.undo(found);
        return null;
      }
      this.#take(place, running, 1);
      found.push({ running, on: place.view });
    }
    return found;
  }

  /** Gives the places back. */
  undo(found: readonly Found[]): void {
    for (const { running, on } of found) {
      const place = this.#places.get(on.instance.id);
      if (place !== undefined) this.#take(place, running, -1);
    }
  }

  #take(place: Place, { attempt }: RunningTask, sign: 1 | -1): void {
    const { id } = place.view.instance;
    place.free =
      sign === 1 ? minusResources(place.free, attempt.resources) : plusResources(place.free, attempt.resources);
    this.#targets.set(id, (this.#targets.get(id) ?? 0) + sign);
  }

  #placeFor(leftS: number, suits: (p: Place) => boolean): Place | null {
    const bin = binOf(leftS);
    const same = closest(this.#byEnd.get(bin) ?? [], leftS, suits);
    if (same !== null) return same;
    for (const other of this.#bins) {
      const place = other > bin ? this.#roomiest(other, suits) : null;
      if (place !== null) return place;
    }
    for (const other of this.#bins.toReversed()) {
      const place = other < bin ? this.#roomiest(other, suits) : null;
      if (place !== null) return place;
    }
    return null;
  }

  #roomiest(bin: number, suits: (p: Place) => boolean): Place | null {
    const places = this.#byRoom.get(bin) ?? [];
    for (let i = 0; i < Math.min(MOST_LOOKED_AT, places.length); i++) {
      const place = places[i];
      if (place !== undefined && suits(place)) return place;
    }
    return null;
  }
}

const byName = (a: Place, b: Place): number => (a.view.instance.id < b.view.instance.id ? -1 : 1);

/** The one that suits whose end is the closest. `places` ascend by their end. */
function closest(places: readonly Place[], leftS: number, suits: (p: Place) => boolean): Place | null {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((places[middle]?.leftS ?? 0) < leftS) low = middle + 1;
    else high = middle;
  }
  let [below, above] = [low - 1, low];
  for (let looked = 0; looked < MOST_LOOKED_AT; looked++) {
    const [a, b] = [places[below], places[above]];
    if (a === undefined && b === undefined) return null;
    const isBelow = b === undefined || (a !== undefined && leftS - a.leftS <= b.leftS - leftS);
    const next = isBelow ? a : b;
    if (isBelow) below--;
    else above++;
    if (next !== undefined && suits(next)) return next;
  }
  return null;
}
