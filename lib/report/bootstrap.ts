import { randomStream } from '../kernel/random.ts';
import { quantilesOf } from '../market/quantiles.ts';

/**
 * Means and ratios over runs with percentile bootstrap intervals (Efron and Tibshirani, An Introduction to the
 * Bootstrap, 1993, sections 6.4 and 13.3). Independent units are resampled: see `comparison.ts`.
 */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * Estimate with its interval. `value` is null if the denominator is zero; `interval` is null with fewer than two units.
 */
export interface Estimate {
  readonly value: number | null;
  readonly interval: Interval | null;
  /** Number of independent units. */
  readonly n: number;
}

/** Part of one unit in a ratio of sums. For a mean the denominator is its number of runs. */
export interface Share {
  readonly above: number;
  readonly below: number;
}

export const LEVEL = 0.95;
/** Efron and Tibshirani ask for at least 1,000 resamples for percentile intervals. */
export const RESAMPLES = 2000;
/**
 * Least number of units for an interval. The range of n independent, symmetrically distributed values holds their
 * centre with probability 1 - 2^(1 - n): 0.94 for 5, 0.97 for 6. Resampling fewer than 6 cannot reach LEVEL.
 */
export const LEAST_UNITS = 6;
/** Fixed seed: results are the same on every machine and in every run of the report. */
const SEED = 1;

/**
 * Bootstrap with common draws for all estimates over equally many units, so that those of one comparison vary together.
 */
export class Bootstrap {
  readonly #draws = new Map<number, Int32Array>();

  /** Sum of the numerators over the sum of the denominators. O(RESAMPLES x units). */
  ratio(units: readonly Share[]): Estimate {
    const n = units.length;
    const value = quotient(
      units.reduce((sum, u) => sum + u.above, 0),
      units.reduce((sum, u) => sum + u.below, 0),
    );
    if (n < 2 || value === null) return { value, interval: null, n };
    const above = Float64Array.from(units, (u) => u.above);
    const below = Float64Array.from(units, (u) => u.below);
    const draws = this.#drawsOf(n);
    const values: number[] = [];
    for (let from = 0; from < draws.length; from += n) {
      let [a, b] = [0, 0];
      for (let k = from; k < from + n; k++) {
        a += above[draws[k] ?? 0] ?? 0;
        b += below[draws[k] ?? 0] ?? 0;
      }
      if (b !== 0) values.push(a / b);
    }
    const [low = value, high = value] = quantilesOf(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]);
    return { value, interval: { low, high }, n };
  }

  #drawsOf(n: number): Int32Array {
    const known = this.#draws.get(n);
    if (known !== undefined) return known;
    const random = randomStream(SEED, `bootstrap ${n}`);
    const made = Int32Array.from({ length: RESAMPLES * n }, () => Math.floor(random() * n));
    this.#draws.set(n, made);
    return made;
  }
}

const quotient = (above: number, below: number): number | null => (below === 0 ? null : above / below);
