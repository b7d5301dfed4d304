/**
 * What each resource of an instance is worth to a mix of work. Tasks that need much memory and tasks that need much
 * CPU fill a machine together, so that neither pays for all of it; where one resource is scarce, it bears the whole
 * price.
 *
 * The fluid problem, in which tasks and instances are divisible:
 *
 *   minimise   sum_p price_p x_p                                       x_p: instances in pool p
 *   such that  sum_p y_ep = amount_e               for each kind of work e,  y_ep: its amount in pool p
 *              sum_e need_ek y_ep <= capacity_pk x_p   for each pool p and resource k
 *
 * Its dual splits the price of each pool into parts w_pk >= 0 with sum_k w_pk = 1: work pays price_p x sum_k w_pk
 * need_ek / capacity_pk in pool p, and goes where it pays least. For any parts, the least payments of all work add
 * up to a lower bound of the bill. Parts follow the loads of smoothed best responses, whose average settles near the
 * optimum (fictitious play: Brown 1951).
 */
import { KINDS } from '../domain/resources.ts';

/** Work alike. */
export interface MixedWork {
  readonly need: readonly number[];
  /** Above 0: tasks, or tasks times their running time. */
  readonly amount: number;
  /** Pools that it may use, by position, each with its price of a whole instance; none: it takes no part. */
  readonly pools: readonly number[];
  readonly usd: readonly number[];
}

export interface ResourceParts {
  /** Parts of each pool's price, KINDS numbers per pool. */
  readonly parts: Float64Array;
  /** Load of each resource of each pool over its capacity, in instances; 0 where no work goes. */
  readonly loads: Float64Array;
  /** Least payment for a unit of each work, US dollars per hour. Infinity: it has no pool. */
  readonly usd: Float64Array;
}

const ROUNDS = 60;
/** How sharply the price follows the most loaded resource. */
const SHARPNESS = 12;
/** Relative difference of payments at which work prefers a pool e-fold. */
const SMOOTH = 0.01;
/** Payments that are so many times SMOOTH above the least have no work. */
const NEVER = 30;
/** Kinds of work that answer the prices; of more, so many stand for all. */
const MOST_WORK = 600;

/**
 * O(pools of all work + ROUNDS x pools of at most MOST_WORK kinds of work). `capacities`: KINDS numbers per pool.
 */
export function resourceParts(work: readonly MixedWork[], capacities: ArrayLike<number>): ResourceParts {
  const parts = new Float64Array(capacities.length);
  const loads = new Float64Array(capacities.length);
  const response = new Float64Array(capacities.length);
  const perUnit = new Float64Array(capacities.length);
  const reprice = (): void => {
    split(loads, parts);
    for (let i = 0; i < parts.length; i++) {
      const capacity = capacities[i] ?? 0;
      perUnit[i] = capacity > 0 ? (parts[i] ?? 0) / capacity : 0;
    }
  };
  begin(work, capacities, loads);
  reprice();
  const answering = sampled(work);
  const usd = new Float64Array(answering.reduce((most, { pools }) => Math.max(most, pools.length), 0));
  for (let round = 0; round < ROUNDS; round++) {
    response.fill(0);
    for (const of of answering) respond(of, { perUnit, response, usd });
    const weight = 2 / (round + 3);
    for (let i = 0; i < loads.length; i++) {
      const capacity = capacities[i] ?? 0;
      const answer = capacity > 0 ? (response[i] ?? 0) / capacity : 0;
      loads[i] = (1 - weight) * (loads[i] ?? 0) + weight * answer;
    }
    reprice();
  }
  const least = Float64Array.from(work, (of) => {
    let usd = Infinity;
    for (let i = 0; i < of.pools.length; i++) usd = Math.min(usd, payment(of, i, perUnit));
    return usd;
  });
  return { parts, loads, usd: least };
}

/**
 * At most MOST_WORK kinds that stand for all, each for as much work as any other: systematic sampling in proportion to
 * the size. O(work).
 */
function sampled(work: readonly MixedWork[]): readonly MixedWork[] {
  if (work.length <= MOST_WORK) return work;
  const totals = new Float64Array(KINDS);
  for (const { need, amount } of work)
    for (let k = 0; k < KINDS; k++) totals[k] = (totals[k] ?? 0) + amount * (need[k] ?? 0);
  const sizeOf = ({ need, amount, pools }: MixedWork): number => {
    let size = 0;
    for (let k = 0; k < KINDS; k++) if ((totals[k] ?? 0) > 0) size += (need[k] ?? 0) / (totals[k] ?? 1);
    return pools.length === 0 ? 0 : size * amount;
  };
  const step = work.reduce((sum, of) => sum + sizeOf(of), 0) / MOST_WORK;
  const chosen: MixedWork[] = [];
  let passed = 0;
  let picks = 0;
  for (const of of work) {
    const size = sizeOf(of);
    passed += size;
    let here = 0;
    // A point in each step, not always at the same place, so that regular input has no say.
    while (picks < MOST_WORK && (picks + ((picks * GOLDEN) % 1)) * step < passed) [here, picks] = [here + 1, picks + 1];
    if (here > 0) chosen.push({ ...of, amount: (of.amount * here * step) / size });
  }
  return chosen;
}

/** The golden ratio, whose multiples spread evenly. */
const GOLDEN = 0.618_033_988_749_894_9;

/** At first each pool has the mix of all work that may use it, in a small amount, so that its parts are known. */
function begin(work: readonly MixedWork[], capacities: ArrayLike<number>, loads: Float64Array): void {
  for (const { need, amount, pools } of work) {
    for (const pool of pools) {
      for (let k = 0; k < KINDS; k++) {
        const capacity = capacities[pool * KINDS + k] ?? 0;
        if (capacity > 0)
          loads[pool * KINDS + k] = (loads[pool * KINDS + k] ?? 0) + (amount * (need[k] ?? 0)) / capacity;
      }
    }
  }
}

/** Adds what one work's smoothed best response takes of each resource. */
function respond(
  { pools, need, amount, usd: prices }: MixedWork,
  to: { readonly perUnit: Float64Array; readonly response: Float64Array; readonly usd: Float64Array },
): void {
  const { perUnit, response, usd } = to;
  let least = Infinity;
  for (let i = 0; i < pools.length; i++) {
    usd[i] = payment({ pools, need, usd: prices }, i, perUnit);
    least = Math.min(least, usd[i] ?? 0);
  }
  if (!(least < Infinity)) return;
  let sum = 0;
  for (let i = 0; i < pools.length; i++) {
    usd[i] = leaning(usd[i] ?? 0, least);
    sum += usd[i] ?? 0;
  }
  for (let i = 0; i < pools.length; i++) {
    if (usd[i] === 0) continue;
    const here = (amount * (usd[i] ?? 0)) / sum;
    const at = (pools[i] ?? 0) * KINDS;
    for (let k = 0; k < KINDS; k++) response[at + k] = (response[at + k] ?? 0) + here * (need[k] ?? 0);
  }
}

function leaning(usd: number, least: number): number {
  if (!(least > 0)) return 1;
  const above = (usd / least - 1) / SMOOTH;
  return above > NEVER ? 0 : Math.exp(-above);
}

/** US dollars per hour that a unit of work pays in its i-th pool. */
function payment({ need, pools, usd }: Omit<MixedWork, 'amount'>, i: number, perUnit: Float64Array): number {
  const at = (pools[i] ?? 0) * KINDS;
  let share = 0;
  for (let k = 0; k < KINDS; k++) share += (need[k] ?? 0) * (perUnit[at + k] ?? 0);
  return share * (usd[i] ?? 0);
}

/** Parts of each pool by its loads, the most loaded resource first of all. */
function split(loads: Float64Array, parts: Float64Array): void {
  for (let at = 0; at < loads.length; at += KINDS) {
    let most = 0;
    for (let k = 0; k < KINDS; k++) most = Math.max(most, loads[at + k] ?? 0);
    if (most === 0) continue;
    let sum = 0;
    for (let k = 0; k < KINDS; k++) {
      const of = (loads[at + k] ?? 0) / most;
      const part = of === 1 || of === 0 ? of : of ** SHARPNESS;
      parts[at + k] = part;
      sum += part;
    }
    for (let k = 0; k < KINDS; k++) parts[at + k] = (parts[at + k] ?? 0) / sum;
  }
}

/**
 * Pools that may be part of an optimum, of some that a kind of work may use: no other one has at least as much per
 * dollar of every resource that is asked for. Of equals the largest. O(pools x result).
 */
export function undominated(
  pools: readonly number[],
  of: {
    readonly capacities: ArrayLike<number>;
    readonly usdOf: (pool: number) => number;
    /** Resources that some work asks for, by their position. */
    readonly kinds: readonly number[];
  },
): readonly number[] {
  const { capacities, usdOf, kinds } = of;
  const perUsd = (pool: number, k: number): number => (capacities[pool * KINDS + k] ?? 0) / usdOf(pool);
  // A pool is beaten by none that has less of the first resource.
  const [first = 0] = kinds;
  const ranked = pools.map((pool) => ({ pool, usd: usdOf(pool), per: kinds.map((k) => perUsd(pool, k)) }));
  ranked.sort((a, b) => perUsd(b.pool, first) - perUsd(a.pool, first) || b.usd - a.usd || a.pool - b.pool);
  const kept: (typeof ranked)[number][] = [];
  for (const one of ranked) {
    const isBeaten = kept.some(({ per }) => per.every((x, i) => x >= (one.per[i] ?? 0) * (1 - ROUNDING)));
    if (!isBeaten) kept.push(one);
  }
  return kept.map(({ pool }) => pool);
}

/** Relative rounding error of prices per unit. */
const ROUNDING = 1e-9;
