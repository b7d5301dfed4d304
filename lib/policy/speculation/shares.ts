/**
 * Slots of jobs whose tasks may need copies: the allocation of Hopper ("Speculation-aware Cluster Scheduling", section
 * 3). A slot is whatever its caller counts capacity in, the same for demand and supply.
 */

/** Demand of a job. */
export interface Demand {
  /** Slots of its tasks that wait or run: T in the paper. */
  readonly slots: number;
  /** Slots of the phase after it: T'. Absent or 0: there is none. */
  readonly downstream?: number;
}

export interface Shared {
  /** Tail index of the running times: a Pareto distribution's beta. */
  readonly beta: number;
  /** All slots: S. */
  readonly slots: number;
  /** Each job gets (1 - epsilon) of an even share at least (section 3.1). 1: fairness counts for nothing. */
  readonly epsilon: number;
}

/** Slots per task at which the gain of a further slot drops (equation 4). A tail index outside [1, 2] is cut off. */
export const slotsPerTask = (beta: number): number => 2 / Math.min(2, Math.max(1, beta));

/** alpha: work of the next phase per work of this one (section 3.2); 1 without a next phase. */
const alphaOf = ({ slots, downstream = 0 }: Demand): number => (downstream > 0 && slots > 0 ? downstream / slots : 1);

/** Equation (4) with the weight of section 3.2: (2 / beta) T sqrt(alpha). */
const virtualSize = (demand: Demand, beta: number): number =>
  slotsPerTask(beta) * demand.slots * Math.sqrt(alphaOf(demand));

/**
 * Slots that each job should have, in the order of `demands`. They sum to at most `slots`. O(n log n).
 *
 * Jobs are in the order of max(T, T'), the one with the larger alpha first among equals (Algorithm 3). Where slots are
 * short, each has its floor and then its virtual size in this order; else what is left is shared in proportion to the
 * virtual sizes (Algorithms 1 and 2). Without next phases and with epsilon 1 this is Algorithm 1. With floors a job
 * never has more than its virtual size while another is below it, which for epsilon > 0 is Algorithm 2.
 */
export function sharesOf(demands: readonly Demand[], { beta, slots, epsilon }: Shared): readonly number[] {
  const sizes = weighted(demands, beta);
  const all = sizes.reduce((sum, v) => sum + v, 0);
  if (all <= 0 || slots <= 0) return demands.map(() => 0);
  const even = (slots / demands.filter((d) => d.slots > 0).length) * (1 - epsilon);
  const floors = demands.map((d) => (d.slots > 0 ? even : 0));
  return all > slots ? inTurn({ demands, sizes, floors, slots }) : inProportion({ sizes, floors, slots });
}

/**
 * Virtual sizes over the square root of the least alpha: what a job wants is (2 / beta) T sqrt(alpha / alpha_min), so
 * that nobody wants less than speculation needs (section 3.2).
 */
function weighted(demands: readonly Demand[], beta: number): readonly number[] {
  const least = Math.min(...demands.filter((d) => d.slots > 0).map(alphaOf));
  return demands.map((d) => (d.slots > 0 ? virtualSize(d, beta) / Math.sqrt(least) : 0));
}

interface Filled {
  readonly sizes: readonly number[];
  readonly floors: readonly number[];
  readonly slots: number;
}

/** Slots are short: floors first, then full virtual sizes from the smallest job on. */
function inTurn({
  demands,
  sizes,
  floors,
  slots,
}: Filled & { readonly demands: readonly Demand[] }): readonly number[] {
  // A floor is no reason to give a job more than it can use.
  const given = sizes.map((size, i) => Math.min(size, floors[i] ?? 0));
  let left = slots - given.reduce((sum, g) => sum + g, 0);
  const order = demands
    .map((d, i) => ({ i, size: Math.max(d.slots, d.downstream ?? 0), alpha: alphaOf(d) }))
    .sort((a, b) => a.size - b.size || b.alpha - a.alpha || a.i - b.i);
  for (const { i } of order) {
    const more = Math.max(0, Math.min(left, (sizes[i] ?? 0) - (given[i] ?? 0)));
    given[i] = (given[i] ?? 0) + more;
    left -= more;
  }
  return given;
}

/** Slots abound: the jobs whose proportional share is below their floor have the floor, the others share the rest. */
function inProportion({ sizes, floors, slots }: Filled): readonly number[] {
  const order = sizes.map((size, i) => ({ i, size })).sort((a, b) => a.size - b.size || a.i - b.i);
  const given = sizes.map(() => 0);
  let [left, rest] = [slots, sizes.reduce((sum, v) => sum + v, 0)];
  for (const { i, size } of order) {
    const share = rest > 0 ? (size / rest) * left : 0;
    given[i] = Math.max(share, floors[i] ?? 0);
    left -= given[i];
    rest -= size;
  }
  return given;
}
