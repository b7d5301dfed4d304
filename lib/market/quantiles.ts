import type { Uniform } from '../kernel/random.ts';

/** Probabilities of every quantile table here. */
export const PROBABILITIES = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1] as const;

/** A distribution as its quantiles at PROBABILITIES; does not descend. */
export type QuantileTable = readonly number[];

/**
 * Quantile `p` of `values` by their weights (1 each when absent): the smallest value whose cumulated weight reaches p.
 * NaN when empty.
 */
export function quantileOf(values: readonly number[], p: number, weights?: readonly number[]): number {
  return quantilesOf(values, [p], weights)[0] ?? NaN;
}

/** Several quantiles at once; `probabilities` ascend. */
export function quantilesOf(
  values: readonly number[],
  probabilities: readonly number[] = PROBABILITIES,
  weights?: readonly number[],
): readonly number[] {
  const order = Array.from(values.keys()).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const total = weights === undefined ? values.length : weights.reduce((sum, w) => sum + w, 0);
  const found: number[] = [];
  let mass = 0;
  let next = 0;
  for (const i of order) {
    mass += weights?.[i] ?? 1;
    while (next < probabilities.length && mass >= (probabilities[next] ?? 1) * total - 1e-9) {
      found.push(values[i] ?? NaN);
      next++;
    }
  }
  while (found.length < probabilities.length) found.push(values[order.at(-1) ?? -1] ?? NaN);
  return found;
}

/** A draw by inverting the table: between two quantiles of positive values geometrically, else linearly. */
export function draw(table: QuantileTable, random: Uniform): number {
  const u = random();
  let i = 1;
  while (i < PROBABILITIES.length - 1 && u > (PROBABILITIES[i] ?? 1)) i++;
  const [p0 = 0, p1 = 1] = [PROBABILITIES[i - 1], PROBABILITIES[i]];
  const [x0 = 0, x1 = 0] = [table[i - 1], table[i]];
  const part = (u - p0) / (p1 - p0);
  return x0 > 0 ? x0 * (x1 / x0) ** part : x0 + (x1 - x0) * part;
}
