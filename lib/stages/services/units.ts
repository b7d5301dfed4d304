/** Resources of a service, in whole vCPUs. */
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import type { FootprintChange, HeldInstance } from '../../policy/services/contracts.ts';

/** Whole vCPUs of an instance. */
export const unitsOf = (pool: Pool): number => Math.floor(vcpusOf(pool));

/** vCPUs of a held instance that serve. */
export const servingUnits = ({ units, pool }: HeldInstance): number => units ?? unitsOf(pool);

export const unitsHeld = (held: readonly HeldInstance[]): number =>
  held.reduce((sum, instance) => sum + servingUnits(instance), 0);

/** Gives back instances in the order of `held` until fewer than the smallest of them are too many. */
export function surplus(tooMany: number, held: readonly HeldInstance[], reason: string): FootprintChange['release'] {
  let left = tooMany;
  return held.flatMap((instance) => {
    const units = servingUnits(instance);
    if (units > left) return [];
    left -= units;
    return [{ instance: instance.id, reason }];
  });
}

/** Most vCPUs of one service: a target that these do not reach cannot be reached. */
const MOST_UNITS = 1_000_000;

/** Fewest vCPUs, all of them sure, that reach the target; null: none do. */
export function leastUnits(utility: (units: number) => number, target: number): number | null {
  if (utility(MOST_UNITS) < target) return null;
  return firstWhere(MOST_UNITS, (units) => utility(units) >= target);
}

/** The least number up to `most` for which the test holds, if it holds for all larger ones. */
export function firstWhere(most: number, holds: (n: number) => boolean): number {
  let [low, high] = [0, most];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
