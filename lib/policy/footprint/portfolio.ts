/** Shares of a portfolio (ExoSphere, as Tributary section 2.1.2 has it): the most return for its risk. */

/** Steps at most; with a hundred pools a few hundred settle it. */
const MOST_STEPS = 20_000;
const SETTLED = 1e-10;

/**
 * Shares w >= 0, sum 1, that maximise returns x w - alpha w x covariance x w. `alpha` >= 0: aversion to risk;
 * `covariance` symmetric and positive semidefinite, in the unit of returns squared. Without any pool: none.
 *
 * Projected gradient; O(pools^2) for each step.
 */
export function portfolio(
  returns: readonly number[],
  covariance: readonly (readonly number[])[],
  alpha: number,
): number[] {
  const n = returns.length;
  if (n === 0) return [];
  // Of equal sums, that of one scale: an alpha of 1e9 asks for the least risk alone.
  const scale = 1 / (1 + alpha);
  const risk = covariance.map((row) => row.map((of) => 2 * alpha * scale * of));
  // Gershgorin: no eigenvalue is above the largest sum of a row.
  const curvature = risk.reduce(
    (most, row) =>
      Math.max(
        most,
        row.reduce((sum, of) => sum + Math.abs(of), 0),
      ),
    0,
  );
  const spread = returns.reduce((most, r) => Math.max(most, Math.abs(r)), 0) * scale;
  const step = 1 / Math.max(curvature, spread, Number.MIN_VALUE * 2 ** 60);
  let shares = new Array<number>(n).fill(1 / n);
  for (let k = 0; k < MOST_STEPS; k++) {
    const next = ontoSimplex(
      shares.map((w, i) => {
        const falls = (risk[i] ?? []).reduce((sum, of, j) => sum + of * (shares[j] ?? 0), 0);
        return w + step * (scale * (returns[i] ?? 0) - falls);
      }),
    );
    const change = next.reduce((most, w, i) => Math.max(most, Math.abs(w - (shares[i] ?? 0))), 0);
    shares = next;
    if (change < SETTLED) break;
  }
  return shares;
}

/** The nearest point with coordinates >= 0 that sum to 1 (Held, Wolfe and Crowder, 1974). O(n log n). */
function ontoSimplex(point: readonly number[]): number[] {
  const sorted = point.toSorted((a, b) => b - a);
  let sum = 0;
  let above = 0;
  for (const [i, x] of sorted.entries()) {
    sum += x;
    const level = (sum - 1) / (i + 1);
    if (x > level) above = level;
  }
  return point.map((x) => Math.max(0, x - above));
}
