/**
 * What remains of a footprint after interruptions (Tributary, section 2.2.2). The paper enumerates all subsets of
 * allocations. Here the answer is exact and in polynomial time: in one pool a price that passes a bid passes every
 * lower one (eqs. 2.4, 2.5), so that m allocations have m + 1 outcomes, and pools are independent, so that their
 * distributions convolve.
 */

/** Instances of one pool that are lost together. */
export interface Part {
  /** Units of resources (vCPUs, say), a whole number >= 0. */
  readonly units: number;
  /** Probability that the market takes it, in [0, 1]. */
  readonly pLost: number;
}

/** Parts of one pool, the lowest bid first: none is lost without those before it. */
export type Chain = readonly Part[];

/**
 * P(R = r) for r = 0 .. all units (eq. 2.8). A part that claims to be lost more likely than one with a lower bid is
 * lost as likely as that one. `lambda`: added to the probabilities of a chain (eq. 2.6).
 *
 * O(units x parts), without those that are never lost.
 */
export function remainingOf(chains: readonly Chain[], lambda: (chain: number) => number = () => 0): Float64Array {
  let safe = 0;
  const pools: Outcome[][] = [];
  for (const [index, chain] of chains.entries()) {
    const outcomes = outcomesOf(chain, lambda(index));
    const [only] = outcomes;
    if (outcomes.length === 1 && only !== undefined) safe += only.units;
    else pools.push(outcomes);
  }
  // Small pools first: the distribution is short while it grows.
  pools.sort((a, b) => mostOf(a) - mostOf(b));
  let seen: Float64Array = Float64Array.of(1);
  for (const outcomes of pools) seen = convolved(seen, outcomes, mostOf(outcomes));
  const p = new Float64Array(chains.flat().reduce((sum, { units }) => sum + units, 1));
  p.set(seen, safe);
  return p;
}

const mostOf = (outcomes: readonly Outcome[]): number => outcomes.reduce((most, { units }) => Math.max(most, units), 0);

export interface Outcome {
  /** Units that remain. */
  readonly units: number;
  readonly p: number;
}

/** Lost are the first j parts, for j = 0 .. all: P = pLost[j] - pLost[j + 1] (the product of eq. 2.7). O(parts). */
export function outcomesOf(chain: Chain, lambda: number): Outcome[] {
  const outcomes: Outcome[] = [];
  let units = chain.reduce((sum, part) => sum + part.units, 0);
  let before = 1;
  for (const part of chain) {
    // The penalty applies only to parts that can be lost.
    const pLost = part.pLost > 0 ? Math.min(before, Math.max(0, part.pLost + lambda)) : 0;
    if (before > pLost) outcomes.push({ units, p: before - pLost });
    units -= part.units;
    before = pLost;
    if (before === 0) break;
  }
  if (before > 0) outcomes.push({ units, p: before });
  return outcomes;
}

/** Distribution of the sum; `most`: the most units that the outcomes may have. */
export function convolved(seen: Float64Array, outcomes: readonly Outcome[], most: number): Float64Array {
  const next = new Float64Array(seen.length + most);
  for (const { units, p } of outcomes) {
    for (let r = 0; r < seen.length; r++) next[r + units] = (next[r + units] ?? 0) + p * (seen[r] ?? 0);
  }
  return next;
}

/**
 * Expected utility (eq. 2.3) over P(R = r). `utility`: share of requests in time with r units, in [0, 1]. O(units).
 */
export function expectedUtility(remaining: Float64Array, utility: (units: number) => number): number {
  let sum = 0;
  for (let r = 0; r < remaining.length; r++) {
    const p = remaining[r] ?? 0;
    if (p > 0) sum += p * utility(r);
  }
  return sum;
}
