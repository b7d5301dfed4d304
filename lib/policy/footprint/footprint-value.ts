/**
 * Expected utility of a footprint, and of the same with one pool's allocations changed: all candidates of a purchase
 * are weighed on one computation (Tributary, section 2.2.3, without the enumeration).
 */
import { convolved, outcomesOf, type Chain, type Outcome } from './remaining.ts';

/** Allocations of one pool. */
export interface PoolChain {
  readonly chain: Chain;
  /** Added to the probabilities of the chain (eq. 2.6). */
  readonly lambda: number;
}

/** `O(units x parts)` to make; then O(units) for each distinct number of units that a pool may keep. */
export class FootprintValue {
  /** P(units that remain of the pools before i). */
  readonly #before: Float64Array[] = [];
  /** Expected utility of x units beside the pools from i on, by x. */
  readonly #after: Float64Array[];
  readonly #kept: (Map<number, number> | undefined)[] = [];
  /** Of the footprint as it is. */
  readonly utility: number;

  /** `utility`: share of requests in time with so many units; `mostMore`: units that `withChain` may add at most. */
  constructor(pools: readonly PoolChain[], utility: (units: number) => number, mostMore: number) {
    const outcomes = pools.map(({ chain, lambda }) => outcomesOf(chain, lambda));
    const all = pools.map(({ chain }) => chain.reduce((sum, { units }) => sum + units, 0));
    let seen: Float64Array = Float64Array.of(1);
    outcomes.forEach((of, i) => {
      this.#before.push(seen);
      seen = convolved(seen, of, all[i] ?? 0);
    });
    this.#after = new Array<Float64Array>(pools.length + 1);
    let later = Float64Array.from({ length: seen.length + mostMore }, (_, units) => utility(units));
    this.#after[pools.length] = later;
    for (let i = pools.length - 1; i >= 0; i--) {
      const now = new Float64Array(later.length - (all[i] ?? 0));
      for (const { units, p } of outcomes[i] ?? []) {
        for (let x = 0; x < now.length; x++) now[x] = (now[x] ?? 0) + p * (later[x + units] ?? 0);
      }
      this.#after[i] = now;
      later = now;
    }
    this.utility = later[0] ?? 0;
  }

  /** Expected utility beside so many units that are never lost; at most `mostMore`. */
  beside(units: number): number {
    return this.#after[0]?.[units] ?? NaN;
  }

  /** Expected utility with other allocations of pool `i`: at most `mostMore` units more than it has. */
  withChain(i: number, { chain, lambda }: PoolChain): number {
    return outcomesOf(chain, lambda).reduce((sum, { units, p }: Outcome) => sum + p * this.#keeping(i, units), 0);
  }

  /** With so many units of pool `i` that remain for sure. */
  #keeping(i: number, units: number): number {
    const known = (this.#kept[i] ??= new Map<number, number>());
    let value = known.get(units);
    if (value !== undefined) return value;
    const [before, after] = [this.#before[i], this.#after[i + 1]];
    if (before === undefined || after === undefined) throw new RangeError(`pool ${i} is not in the footprint`);
    value = 0;
    for (let r = 0; r < before.length; r++) value += (before[r] ?? 0) * (after[r + units] ?? 0);
    known.set(units, value);
    return value;
  }
}
