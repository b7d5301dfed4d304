import { KINDS, vector, type Resources } from '../domain/resources.ts';

/**
 * Index in RESOURCE_KINDS of the resource of which all needs together take the most of the largest machine; the first
 * of equal ones, 0 without needs. O(needs + capacities).
 */
export function mostConstrained(
  needs: Iterable<{ readonly need: Resources; readonly count: number }>,
  capacities: Iterable<Resources>,
): number {
  const demand = Array.from({ length: KINDS }, () => 0);
  for (const { need, count } of needs) vector(need).forEach((n, k) => (demand[k] = (demand[k] ?? 0) + n * count));
  const largest = Array.from({ length: KINDS }, () => 0);
  for (const capacity of capacities) vector(capacity).forEach((c, k) => (largest[k] = Math.max(largest[k] ?? 0, c)));
  const parts = demand.map((d, k) => ((largest[k] ?? 0) > 0 ? d / (largest[k] ?? 1) : 0));
  return parts.reduce((best, part, k) => (part > (parts[best] ?? 0) ? k : best), 0);
}
