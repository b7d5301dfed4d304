/**
 * Penalty for a pool whose price moves with those of the rest of a footprint (Tributary, eq. 2.6): what is taken at the
 * same time is lost at once.
 */

export interface PoolHeld {
  /** Resources of the footprint in this pool, resc(A_l); any unit. */
  readonly units: number;
  /** Pearson correlation of its price with that of the pool in question, in [-1, 1]. */
  readonly correlation: number;
}

/**
 * lambda_i = gamma x sum over the pools l of the footprint of rho(i, l) (resc_i + resc_l) / (2 resc(A)): what is added
 * to the probability of losing allocations of pool i. `own`: resc_i. A pool correlates with itself by 1. O(others).
 */
export function correlationPenalty(own: number, others: Iterable<PoolHeld>, gamma: number): number {
  let total = own;
  let sum = 2 * own;
  for (const { units, correlation } of others) {
    total += units;
    sum += correlation * (own + units);
  }
  return total > 0 ? (gamma * sum) / (2 * total) : 0;
}
