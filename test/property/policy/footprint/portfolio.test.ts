import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { portfolio } from '../../../../lib/policy/footprint/portfolio.ts';
import { runs } from '../../../support/properties.ts';

const returnsOf = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 6 });
/** Columns of a matrix whose square is the covariance. */
const factors = fc.array(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }), {
  minLength: 6,
  maxLength: 6,
});
const alphas = fc.constantFrom(0, 0.5, 1, 20, 1e9);

function gradient(
  returns: readonly number[],
  covariance: readonly (readonly number[])[],
  w: readonly number[],
  alpha: number,
) {
  return returns.map((r, i) => r - 2 * alpha * (covariance[i] ?? []).reduce((sum, of, j) => sum + of * (w[j] ?? 0), 0));
}

describe('a portfolio', () => {
  it('has shares that sum to 1, and no shift from one pool to another brings more', () => {
    fc.assert(
      fc.property(returnsOf, factors, alphas, (returns, f, alpha) => {
        const covariance = returns.map((_, i) =>
          returns.map((__, j) => (f[i] ?? []).reduce((sum, x, k) => sum + x * (f[j]?.[k] ?? 0), i === j ? 0.01 : 0)),
        );
        const w = portfolio(returns, covariance, alpha);
        expect(w.reduce((sum, x) => sum + x, 0)).toBeCloseTo(1, 9);
        expect(Math.min(...w)).toBeGreaterThanOrEqual(0);
        const slope = gradient(returns, covariance, w, alpha);
        const best = Math.max(...slope);
        // Every pool with a share has the best slope; the tolerance is the precision of the steps.
        for (const [i, x] of w.entries()) {
          if (x > 1e-4) expect(best - (slope[i] ?? 0)).toBeLessThan(1e-4 * (1 + alpha));
        }
      }),
      { numRuns: runs(200) },
    );
  });

  it('is the best pool without aversion, and equal shares of equal pools with it', () => {
    const independent = [
      [1, 0],
      [0, 1],
    ];
    expect(portfolio([1, 2], independent, 0)).toEqual([0, 1]);
    const half = portfolio([1, 1], independent, 1);
    expect(half[0]).toBeCloseTo(0.5, 6);
    // Least variance: in inverse proportion to it.
    const [a, b] = portfolio(
      [1, 2],
      [
        [1, 0],
        [0, 3],
      ],
      1e9,
    );
    expect(a).toBeCloseTo(0.75, 3);
    expect(b).toBeCloseTo(0.25, 3);
    expect(portfolio([], [], 1)).toEqual([]);
  });
});
