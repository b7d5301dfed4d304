/** Hosts on which nothing runs, filled with tasks of one runtime bin, whatever runs they are of. */
import type { Pool } from '../../domain/pool.ts';
import { KINDS, vector, type Resources } from '../../domain/resources.ts';
import { BalancedFill, byProportion, openOf, type Alike, type Taken } from '../../policy/balanced-fill.ts';
import { supplyPrices, type SuppliedWork } from '../../policy/supply-prices.ts';
import type { Run } from './room.ts';

/** Tasks of a run that found no room beside others. */
export class Rest implements Alike {
  readonly run: Run;
  readonly need: readonly number[];
  left: number;

  constructor(run: Run, left: number) {
    this.run = run;
    this.need = run.need;
    this.left = left;
  }
}

interface Filled {
  readonly taken: readonly Taken<Rest>[];
  /** Mean used part of the resources that are asked for. */
  readonly used: number;
}

/** A resource that is asked for at this part of the most asked one is to be used up. */
const SCARCE = 0.25;
/** Work belongs to a pool where it pays at most so much more than at its best. */
const BELONGS = 1.15;
/** Prices are worked out anew once no more than this part of the tasks is left. */
const RENEWED_AT = 0.75;

/** Empty hosts of a pool, by position, the next one last. */
class EmptyPool {
  readonly hosts: number[];
  readonly capacity: readonly number[];
  /** Rests that may use it. */
  readonly rests: readonly Rest[];
  #belonging: Rest[] = [];
  #others: Rest[] = [];
  readonly #target = new Float64Array(KINDS);
  last: Filled | null = null;

  constructor(hosts: readonly number[], capacity: readonly number[], rests: readonly Rest[]) {
    this.hosts = [...hosts].reverse();
    this.capacity = capacity;
    this.rests = rests.toSorted(byProportion(this.capacity));
  }

  /** `loads` of its resources, and whether a rest belongs here. */
  aim(loads: Float64Array, belongs: (rest: Rest) => boolean): void {
    const most = loads.reduce((a, b) => Math.max(a, b), 0);
    loads.forEach((load, k) => (this.#target[k] = most > 0 ? (load >= SCARCE * most ? 1 : load / most) : 0));
    const open = this.rests.filter(({ left }) => left > 0);
    this.#belonging = open.filter(belongs);
    this.#others = open.filter((rest) => !belongs(rest));
    this.last = null;
  }

  fill(): void {
    this.last = null;
    if (this.hosts.length === 0) return;
    const filling = new BalancedFill<Rest>(this.capacity, this.#target);
    filling.add(openOf(this.#belonging));
    filling.add(openOf(this.#others));
    if (filling.taken.length === 0) return;
    let used = 0;
    let resources = 0;
    for (let k = 0; k < KINDS; k++) {
      if ((this.#target[k] ?? 0) < 1) continue;
      resources++;
      for (const { of, tasks } of filling.taken) used += (tasks * (of.need[k] ?? 0)) / (this.capacity[k] ?? 0);
    }
    this.last = { taken: filling.taken, used: used / Math.max(1, resources) };
  }
}

interface Placing {
  readonly capacityOf: (host: number) => Resources;
  readonly mayUse: (run: Run, host: number) => boolean;
  /** Places tasks of a rest on a host; tells how many it took. */
  readonly put: (rest: Rest, host: number, tasks: number) => number;
}

/**
 * Fills empty hosts until the tasks or the hosts are used up: always the host that is used best, equal hosts of a pool
 * several at a time. Tasks go first to pools where what they need is the least scarce for all of them
 * (lib/policy/supply-prices.ts). O(hosts x fill + log tasks x rests x pools).
 */
export function fillEmpty(
  empty: ReadonlyMap<Pool, readonly number[]>,
  rests: readonly Rest[],
  { capacityOf, mayUse, put }: Placing,
): void {
  // Empty hosts of a pool mostly suit the same tasks; those that do not leave them to others.
  let pools = [...empty].map(([pool, hosts]) => {
    const [first = -1] = hosts;
    return new EmptyPool(
      hosts,
      vector(capacityOf(first)),
      rests.filter(({ run }) => run.inPool(pool) && mayUse(run, first)),
    );
  });
  for (;;) {
    pools = pools.filter(({ hosts }) => hosts.length > 0);
    const left = tasksOf(rests);
    if (pools.length === 0 || left === 0) return;
    aimed(pools, rests);
    if (!fillUntil(pools, { put, left, until: Math.floor(RENEWED_AT * left) })) return;
  }
}

const tasksOf = (rests: readonly Rest[]): number => rests.reduce((n, r) => n + r.left, 0);

function aimed(pools: readonly EmptyPool[], rests: readonly Rest[]): void {
  const work = new Map<Rest, SuppliedWork & { readonly pools: number[] }>();
  for (const rest of rests) if (rest.left > 0) work.set(rest, { need: rest.need, amount: rest.left, pools: [] });
  pools.forEach((pool, p) => pool.rests.forEach((rest) => work.get(rest)?.pools.push(p)));
  const able = [...work.values()].filter((of) => of.pools.length > 0);
  const capacities = Float64Array.from(pools.flatMap((p) => p.capacity));
  const { loads, dearer } = supplyPrices(able, { capacities, machines: pools.map((p) => p.hosts.length) });
  const position = new Map<Rest, number>();
  pools.forEach((pool, p) => {
    const belongs = (rest: Rest): boolean => {
      const of = work.get(rest);
      if (of === undefined) return false;
      let i = position.get(rest) ?? 0;
      while (i < of.pools.length && (of.pools[i] ?? 0) < p) i++;
      position.set(rest, i);
      return dearer(of, i) <= BELONGS;
    };
    pool.aim(loads.subarray(p * KINDS, (p + 1) * KINDS), belongs);
  });
}

/** False: no host takes any task. */
function fillUntil(
  pools: readonly EmptyPool[],
  { put, left: before, until }: { readonly put: Placing['put']; readonly left: number; readonly until: number },
): boolean {
  let left = before;
  let any = false;
  for (const pool of pools) pool.fill();
  while (left > 0 && (left > until || left <= LAST_TASKS)) {
    const fresh = new Set<EmptyPool>();
    let top = best(pools);
    while (top !== null && !fresh.has(top)) {
      top.fill();
      fresh.add(top);
      top = best(pools);
    }
    if (top === null || top.last === null) return any;
    const { taken } = top.last;
    const whole = taken.reduce((n, { of, tasks }) => Math.min(n, Math.floor(of.left / tasks)), Infinity);
    const count = Math.min(top.hosts.length, Math.max(1, Math.floor(whole / 2)));
    for (const host of top.hosts.splice(-count).reverse()) {
      for (const { of, tasks } of taken) {
        const took = put(of, host, tasks);
        of.left -= took;
        left -= took;
        any ||= took > 0;
      }
    }
  }
  return any;
}

/** So few tasks are not worth new prices. */
const LAST_TASKS = 16;

function best(pools: readonly EmptyPool[]): EmptyPool | null {
  let top: EmptyPool | null = null;
  for (const pool of pools)
    if (pool.last !== null && (top === null || pool.last.used > (top.last?.used ?? 0))) top = pool;
  return top;
}
