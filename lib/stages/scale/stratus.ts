/**
 * Stratus' scaler as its paper has it (section 3.2.3). Runtime bins go longest first. In a bin the i-th candidate group
 * is the first i tasks in descending running time. Each pair of a group and a pool that all of the group may use has
 *   score = normalised used constraining resource / price
 * where the constraining resource is the one that the group uses the largest part of, its amount is divided by that of
 * the smallest pool on offer, and the price is that of an instance-hour now. The best pair is bought, its tasks are
 * assigned, and so on until all tasks have room or no pool is left.
 *
 * A scan of the whole product would look at each pool for each task. Three things make it smaller, with the same
 * answer:
 * - Alike tasks are one class. Within a class the score of a pool only peaks where its constraining resource changes,
 *   and at the last task that fits. While more tasks of the first class are left than any pool holds, steps are alike,
 *   and are taken at once.
 * - Pools with the same capacity and the same constraints differ in price alone: the cheapest stands for all. A larger
 *   pool at a lower price does not stand for a smaller one, because another resource may constrain the group there, and
 *   its score may be lower.
 * - No group scores more on a pool than the largest min(capacity, demand of the bin) / smallest / price of a resource.
 *   Pools are visited by that bound without the demand, largest first, until it is below the best score so far.
 *
 * O(leftovers log leftovers + pools log pools), and for each step O(pools visited x classes of one instance).
 */
import { invariant } from '../../kernel/errors.ts';
import { compareText } from '../../kernel/compare.ts';
import { most, type Seconds } from '../../kernel/units.ts';
import { KINDS } from '../../domain/resources.ts';
import type { Leftover } from '../../policy/contracts.ts';
import { isMoveGroup } from '../../policy/move-group.ts';
import type { Acquire } from './acquire.ts';
import { pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { withoutShortGangs, type Lot, type Run } from './purchases.ts';
import { countOnTop, runtimeBin, taskClasses, type TaskClass } from './task-classes.ts';

/** `mostTasks`: tasks per instance. */
export const stratusScaler =
  ({ mostTasks }: { readonly mostTasks: number }): Acquire =>
  (input) => {
    const pools = pricedPools(input);
    const vcpus = vcpusLeft(input.snapshot);
    return withoutShortGangs(together(input.leftovers), (leftovers) =>
      new StratusScaler(taskClasses(leftovers), { pools, vcpus, mostTasks }).run(),
    );
  };

/**
 * Moves to one pool are of one running time, the longest: their instance was cleared for one that holds them all, and
 * bins would buy several.
 */
function together(leftovers: readonly Leftover[]): readonly Leftover[] {
  const longest = new Map<string, Seconds>();
  const targetOf = ({ group }: Leftover): string => JSON.stringify(group.stage.constraints);
  for (const l of leftovers) {
    if (!isMoveGroup(l.group.id)) continue;
    const target = targetOf(l);
    longest.set(target, most(l.runtimeS, longest.get(target) ?? l.runtimeS));
  }
  if (longest.size === 0) return leftovers;
  return leftovers.map((l) =>
    isMoveGroup(l.group.id) ? { ...l, runtimeS: longest.get(targetOf(l)) ?? l.runtimeS } : l,
  );
}

/** A pool with the bound of its scores. */
interface Candidate {
  readonly of: PricedPool;
  readonly mostScore: number;
}

/** A pair of a group and a pool. */
interface Pair {
  readonly of: PricedPool;
  readonly score: number;
  /** Part of the constraining resource that is used. */
  readonly used: number;
  readonly tasks: number;
  /** The group: all tasks of the first classes, and `last` of the one after them. */
  readonly whole: number;
  readonly last: number;
}

/** Rounding of products and quotients in bounds. */
const ROUNDING = 1 + 1e-9;
/** Utilisations that differ by no more are equal; the first kind of resource then constrains. */
const SAME = 1e-12;

class StratusScaler {
  readonly #classes: readonly TaskClass[];
  readonly #mostTasks: number;
  /** Largest bound first. */
  readonly #candidates: readonly Candidate[];
  /** Amount of each resource in the smallest pool on offer: the unit of scores. */
  readonly #smallest: readonly number[];
  readonly #largestVcpus: number;
  readonly #lots: Lot[] = [];
  #vcpus: number;

  constructor(
    classes: readonly TaskClass[],
    of: { readonly pools: readonly PricedPool[]; readonly vcpus: number; readonly mostTasks: number },
  ) {
    this.#classes = classes;
    this.#mostTasks = of.mostTasks;
    this.#vcpus = of.vcpus;
    const byConstraints = [...new Map(classes.map((c) => [c.constraints, c])).values()];
    const usable = of.pools.filter((p) => byConstraints.some((c) => c.allows(p)));
    this.#smallest = Array.from({ length: KINDS }, (_, k) =>
      usable.reduce(
        (least, { capacity }) => ((capacity[k] ?? 0) > 0 ? Math.min(least, capacity[k] ?? 0) : least),
        Infinity,
      ),
    );
    this.#largestVcpus = usable.reduce((most, { vcpus }) => Math.max(most, vcpus), 0);
    const kinds = neededKinds(classes);
    this.#candidates = cheapestOfEach(usable, kinds, byConstraints)
      .map((p) => ({ of: p, mostScore: this.#bound(p, kinds, null) }))
      .sort((a, b) => b.mostScore - a.mostScore || compareText(a.of.pool.id, b.of.pool.id));
  }

  run(): Run {
    for (const bin of Map.groupBy(this.#classes, (c) => runtimeBin(c.runtimeS)).values()) this.#runBin(bin);
    const shortGangs = this.#classes.flatMap((c): Leftover[] => (c.gang !== null && c.left > 0 ? [c.gang] : []));
    return { lots: this.#lots, shortGangs };
  }

  #runBin(bin: readonly TaskClass[]): void {
    let waiting = bin;
    let last: PricedPool | null = null;
    while (waiting.length > 0) {
      const pair = this.#bestPair(waiting, last);
      if (pair === null) waiting = waiting.slice(1);
      else {
        this.#buy(pair, waiting);
        last = pair.of;
        waiting = waiting.filter((c) => c.left > 0);
      }
    }
  }

  /** `first`: the pool of the last step, which is likely to be the best one again. */
  #bestPair(waiting: readonly TaskClass[], first: PricedPool | null): Pair | null {
    const demand = Array.from({ length: KINDS }, (_, k) =>
      waiting.reduce((sum, c) => sum + (c.need[k] ?? 0) * c.left, 0),
    );
    const kinds = demand.flatMap((d, k) => (d > 0 ? [k] : []));
    let best = first === null ? null : this.#bestGroup(first, waiting);
    for (const { of, mostScore } of this.#candidates) {
      if (best !== null && mostScore * ROUNDING < best.score) break;
      if (of === first || (best !== null && this.#bound(of, kinds, demand) * ROUNDING < best.score)) continue;
      const pair = this.#bestGroup(of, waiting);
      if (pair !== null && (best === null || isBetter(pair, best))) best = pair;
    }
    return best;
  }

  /** No score of the pool is higher. `demand`: of all tasks that may be in the group; null: any. */
  #bound({ capacity, usdPerHour }: PricedPool, kinds: readonly number[], demand: readonly number[] | null): number {
    let most = 0;
    for (const k of kinds) {
      const amount = Math.min(capacity[k] ?? 0, demand?.[k] ?? Infinity);
      if (amount > 0) most = Math.max(most, amount / (this.#smallest[k] ?? 1) / usdPerHour);
    }
    return most;
  }

  /** The best group of a pool; null: the first task has no room, or may not go there. */
  #bestGroup(of: PricedPool, waiting: readonly TaskClass[]): Pair | null {
    if (of.vcpus > this.#vcpus + 1e-9) return null;
    const used = Array.from({ length: KINDS }, () => 0);
    let tasks = 0;
    let best: Pair | null = null;
    for (const [whole, c] of waiting.entries()) {
      if (!c.allows(of)) break;
      const room = Math.min(c.left, this.#mostTasks - tasks, countOnTop(c.need, used, of.capacity));
      for (const last of turningPoints(c.need, used, { capacity: of.capacity, room })) {
        const pair = { ...this.#scoreOf(of, used, { need: c.need, last }), of, tasks: tasks + last, whole, last };
        if (best === null || isBetter(pair, best)) best = pair;
      }
      for (let k = 0; k < KINDS; k++) used[k] = (used[k] ?? 0) + room * (c.need[k] ?? 0);
      tasks += room;
      if (room < c.left) break;
    }
    return best !== null && best.score > 0 ? best : null;
  }

  /** Score of what is used with `last` more tasks of a need. */
  #scoreOf(
    { capacity, usdPerHour }: PricedPool,
    used: readonly number[],
    { need, last }: { readonly need: readonly number[]; readonly last: number },
  ): Pick<Pair, 'score' | 'used'> {
    let most = -1;
    let amount = 0;
    let unit = 1;
    for (let k = 0; k < KINDS; k++) {
      const has = capacity[k] ?? 0;
      const takes = (used[k] ?? 0) + last * (need[k] ?? 0);
      const utilisation = has > 0 ? takes / has : 0;
      if (utilisation <= most + SAME) continue;
      most = utilisation;
      amount = takes;
      unit = this.#smallest[k] ?? 1;
    }
    return { score: amount / unit / usdPerHour, used: most };
  }

  /** Buys the pair, and alike ones for as long as the next steps are surely alike. */
  #buy({ of, used, tasks, whole, last }: Pair, waiting: readonly TaskClass[]): void {
    const first = invariant(waiting[0], 'a group has a first task');
    const count = whole === 0 ? this.#alikeSteps(of, first, last) : 1;
    waiting.slice(0, whole).forEach((c) => (c.left = 0));
    const partly = invariant(waiting[whole], 'a group has a last task');
    partly.left -= last * count;
    this.#vcpus -= of.vcpus * count;
    this.#lots.push({ of, count, tasks, used });
  }

  /** Steps that see the same groups and pools: more tasks of the class are left than any pool holds. */
  #alikeSteps(of: PricedPool, c: TaskClass, tasks: number): number {
    const most = this.#candidates.reduce(
      (n, p) => Math.max(n, Math.min(this.#mostTasks, countOnTop(c.need, NOTHING, p.of.capacity))),
      0,
    );
    const byTasks = Math.floor((c.left - most - 1) / tasks) + 1;
    const byVcpus = Math.floor((this.#vcpus - this.#largestVcpus) / of.vcpus) + 1;
    return Math.max(1, Math.min(byTasks, byVcpus, Math.floor(c.left / tasks)));
  }
}

const NOTHING: readonly number[] = [];

/** The higher score; of equal ones the larger group, the lower price, the first name. */
const isBetter = (a: Pair, b: Pair): boolean =>
  (a.score - b.score ||
    a.tasks - b.tasks ||
    b.of.usdPerHour - a.of.usdPerHour ||
    compareText(b.of.pool.id, a.of.pool.id)) > 0;

const neededKinds = (classes: readonly TaskClass[]): readonly number[] =>
  Array.from({ length: KINDS }, (_, k) => k).filter((k) => classes.some((c) => (c.need[k] ?? 0) > 0));

/** The cheapest of the pools that differ in nothing else that matters here; the first by name of equal ones. */
function cheapestOfEach(
  pools: readonly PricedPool[],
  kinds: readonly number[],
  byConstraints: readonly TaskClass[],
): readonly PricedPool[] {
  const cheapest = new Map<string, PricedPool>();
  for (const of of pools) {
    const allowed = byConstraints.map((c) => Number(c.allows(of))).join('');
    const key = `${allowed} ${of.vcpus} ${kinds.map((k) => of.capacity[k]).join()}`;
    const known = cheapest.get(key);
    if (known === undefined || of.usdPerHour < known.usdPerHour) cheapest.set(key, of);
  }
  return [...cheapest.values()];
}

/**
 * Numbers of tasks, 1 to `room`, at which the score may be highest: the last one, and those around each number at which
 * two resources are used equally. Between these one resource constrains, and its amount only grows.
 */
function turningPoints(
  need: readonly number[],
  used: readonly number[],
  { capacity, room }: { readonly capacity: readonly number[]; readonly room: number },
): readonly number[] {
  if (room < 1) return [];
  const points = new Set([room]);
  for (let k = 0; k < KINDS; k++) {
    for (let l = k + 1; l < KINDS; l++) {
      const [x, y] = [capacity[k] ?? 0, capacity[l] ?? 0];
      const slope = (need[k] ?? 0) / x - (need[l] ?? 0) / y;
      if (!(x > 0 && y > 0) || slope === 0) continue;
      const equal = Math.floor(((used[l] ?? 0) / y - (used[k] ?? 0) / x) / slope);
      for (let n = equal - 1; n <= equal + 2; n++) if (n >= 1 && n < room) points.add(n);
    }
  }
  return [...points];
}
