/** Shares of a portfolio (ExoSphere, as Tributary section 2.1.2 has it): the most return for its risk. */

const MOST_STEPS = 2000;
const SETTLED = 1e-9;

/**
 * Shares w >= 0, sum 1, that maximise returns x w - alpha w x covariance x w. `alpha` >= 0: aversion to risk;
 * `covariance` symmetric and positive semidefinite, in the unit of returns squared. Without any pool: none.
 *
 * Accelerated projected gradient (Nesterov), begun anew where the momentum leads away (O'Donoghue and Candes, 2015).
 * O(pools^2) for each of some hundred steps.
 */
export function portfolio(
  returns: readonly number[],
  covariance: readonly (readonly number[])[],
  alpha: number,
): readonly number[] {
  const n = returns.length;
  if (n === 0) return [];
  // All on one scale: an alpha of 1e9 asks for the least risk alone.
  const gains = returns.map((r) => r / (1 + alpha));
  const risk = covariance.map((row) => row.map((of) => (2 * alpha * of) / (1 + alpha)));
  const slopeAt = (w: readonly number[]): readonly number[] =>
    gains.map((gain, i) => gain - (risk[i] ?? []).reduce((sum, of, j) => sum + of * (w[j] ?? 0), 0));
  // Gershgorin: no eigenvalue is above the largest sum of a row. Without risk any step leads to the best pool.
  const curvature = most(risk.map((row) => row.reduce((sum, of) => sum + Math.abs(of), 0)));
  const step = 1 / (Math.max(curvature, 1e-3 * most(gains.map(Math.abs))) || 1);
  let shares: readonly number[] = new Array<number>(n).fill(1 / n);
  let ahead = shares;
  let momentum = 1;
  for (let k = 0; k < MOST_STEPS; k++) {
    const slope = slopeAt(ahead);
    const next = ontoSimplex(ahead.map((w, i) => w + step * (slope[i] ?? 0)));
    const moved = next.map((w, i) => w - (shares[i] ?? 0));
    const uphill = moved.reduce((sum, of, i) => sum + of * (slope[i] ?? 0), 0) >= 0;
    const later = uphill ? (1 + Math.sqrt(1 + 4 * momentum ** 2)) / 2 : 1;
    ahead = uphill ? next.map((w, i) => w + ((momentum - 1) / later) * (moved[i] ?? 0)) : next;
    shares = next;
    momentum = later;
    if (most(moved.map(Math.abs)) < SETTLED) break;
  }
  return shares;
}

const most = (of: readonly number[]): number => of.reduce((a, b) => Math.max(a, b), 0);

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
