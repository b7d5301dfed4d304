/**
 * Where work goes that shares given machines: no pool is to be used up while another one that the work may use has
 * room. In the fluid problem tasks and machines are divisible; y_ep is the amount of work e in pool p:
 *
 *   minimise   sum_p supply_p x sum_k load_pk ^ POWER          load_pk: part of resource k of pool p in use
 *   such that  sum_p y_ep = amount_e                           for each kind of work e
 *
 * A unit of work pays sum_k load_pk ^ (POWER - 1) x need_ek / capacity_pk in pool p, and goes where it pays least. The
 * loads are the average of smoothed best responses (fictitious play: Brown 1951).
 */
import { KINDS } from '../domain/resources.ts';

export interface SuppliedWork {
  readonly need: readonly number[];
  /** Tasks. */
  readonly amount: number;
  /** Pools that it may use, by position. */
  readonly pools: readonly number[];
}

export interface Supply {
  /** KINDS numbers per pool, of one machine. */
  readonly capacities: ArrayLike<number>;
  /** Machines of each pool. */
  readonly machines: ArrayLike<number>;
}

export interface SupplyPrices {
  /** Part of each resource of each pool that would be in use; above 1 where there is too much work. */
  readonly loads: Float64Array;
  /** Payment of a task in the i-th pool of its work, over its least payment: 1 where it belongs. */
  readonly dearer: (work: SuppliedWork, i: number) => number;
}

const POWER = 9;
const ROUNDS = 40;
/** Relative difference of payments at which work prefers a pool e-fold. */
const SMOOTH = 0.05;
/** Kinds of work that answer the prices; of more, so many stand for all. */
const MOST_WORK = 400;

/** O(pools of all work + ROUNDS x pools of at most MOST_WORK kinds of work). */
export function supplyPrices(work: readonly SuppliedWork[], supply: Supply): SupplyPrices {
  const { capacities, machines } = supply;
  const loads = new Float64Array(capacities.length);
  const prices = new Float64Array(capacities.length);
  const response = new Float64Array(capacities.length);
  const add = ({ need }: SuppliedWork, pool: number, amount: number): void => {
    for (let k = 0; k < KINDS; k++) {
      const capacity = (capacities[pool * KINDS + k] ?? 0) * (machines[pool] ?? 0);
      if (capacity > 0)
        response[pool * KINDS + k] = (response[pool * KINDS + k] ?? 0) + (amount * (need[k] ?? 0)) / capacity;
    }
  };
  for (const of of work) {
    const all = of.pools.reduce((sum, pool) => sum + (machines[pool] ?? 0), 0);
    for (const pool of of.pools) add(of, pool, (of.amount * (machines[pool] ?? 0)) / all);
  }
  loads.set(response);
  reprice(loads, prices, capacities);
  const step = Math.max(1, work.length / MOST_WORK);
  const answering = work.filter((_, i) => Math.floor(i / step) !== Math.floor((i - 1) / step));
  const paid = new Float64Array(answering.reduce((most, { pools }) => Math.max(most, pools.length), 0));
  for (let round = 0; round < ROUNDS; round++) {
    response.fill(0);
    for (const of of answering) respond(of, { prices, paid, step, add });
    const weight = 2 / (round + 3);
    for (let i = 0; i < loads.length; i++) loads[i] = (1 - weight) * (loads[i] ?? 0) + weight * (response[i] ?? 0);
    reprice(loads, prices, capacities);
  }
  const least = new Map<SuppliedWork, number>();
  const leastOf = (of: SuppliedWork): number => {
    let usd = least.get(of);
    if (usd === undefined) {
      usd = of.pools.reduce((m, _, i) => Math.min(m, payment(of, i, prices)), Infinity);
      least.set(of, usd);
    }
    return usd;
  };
  return {
    loads,
    dearer: (of, i) => {
      const usd = leastOf(of);
      return usd > 0 ? payment(of, i, prices) / usd : 1;
    },
  };
}

function respond(
  of: SuppliedWork,
  to: {
    readonly prices: Float64Array;
    readonly paid: Float64Array;
    /** Kinds of work for which one stands. */
    readonly step: number;
    readonly add: (of: SuppliedWork, pool: number, amount: number) => void;
  },
): void {
  const { paid } = to;
  let least = Infinity;
  of.pools.forEach((_, i) => {
    paid[i] = payment(of, i, to.prices);
    least = Math.min(least, paid[i] ?? 0);
  });
  let sum = 0;
  of.pools.forEach((_, i) => {
    paid[i] = least > 0 ? Math.exp((1 - (paid[i] ?? 0) / least) / SMOOTH) : 1;
    sum += paid[i] ?? 0;
  });
  of.pools.forEach((pool, i) => to.add(of, pool, (of.amount * to.step * (paid[i] ?? 0)) / sum));
}

function payment({ need, pools }: SuppliedWork, i: number, prices: Float64Array): number {
  const at = (pools[i] ?? 0) * KINDS;
  let usd = 0;
  for (let k = 0; k < KINDS; k++) usd += (need[k] ?? 0) * (prices[at + k] ?? 0);
  return usd;
}

/** Prices per unit of each resource, over those of the most loaded one. */
function reprice(loads: Float64Array, prices: Float64Array, capacities: ArrayLike<number>): void {
  const most = loads.reduce((a, b) => Math.max(a, b), 0);
  for (let i = 0; i < prices.length; i++) {
    const capacity = capacities[i] ?? 0;
    prices[i] = capacity > 0 && most > 0 ? ((loads[i] ?? 0) / most) ** (POWER - 1) / capacity : 0;
  }
}
