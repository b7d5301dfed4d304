import { KINDS } from '../../domain/resources.ts';
import type { PlacePolicy } from '../../policy/contracts.ts';
import { LEAVING, staying } from '../../policy/leaving.ts';
import { byArrival, placeOneByOne, type Filled } from './one-by-one.ts';

/**
 * On-line vector bin packing by the dot product of need and free resources (Stratus, section 3.4.2, "adding online
 * vector bin packing"): each task goes to the instance whose free resources are most like its need. Both are fractions
 * of the instance's capacity. Tasks go in the order of arrival. Instances that work is leaving take none.
 */
export const dotProduct: PlacePolicy = (tasks, hosts, { memory }) =>
  placeOneByOne(tasks, staying(hosts, memory.of(LEAVING)), {
    compare: byArrival,
    score: alignment,
    reason: 'its free resources are the most like what the task needs',
  });

function alignment(need: readonly number[], { free, capacity }: Filled): number {
  let sum = 0;
  for (let k = 0; k < KINDS; k++) {
    const all = capacity[k] ?? 0;
    if (all > 0) sum += ((need[k] ?? 0) / all) * ((free[k] ?? 0) / all);
  }
  return sum;
}
