import type { PlaceTasks } from '../../policy/contracts.ts';
import { RESOURCE_KINDS } from '../../domain/resources.ts';
import { byArrival, placeOneByOne } from './one-by-one.ts';

/**
 * Baseline: each task on the instance with the least free CPU, or memory, on which it fits: the strategy `binpack` of
 * ECS, which names one of the two (Amazon ECS Developer Guide, "Task placement strategies"; Stratus, section 3.1.1).
 * Tasks go in the order of arrival.
 */
export const binpack =
  (by: 'cpu' | 'memory'): PlaceTasks =>
  (tasks, hosts) => {
    const kind = RESOURCE_KINDS.indexOf(by);
    return placeOneByOne(tasks, hosts, {
      compare: byArrival,
      score: (_, { free }) => -(free[kind] ?? 0),
      reason: `the instance with the least free ${by}`,
    });
  };
