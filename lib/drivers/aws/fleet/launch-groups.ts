/**
 * Groups of launches for one CreateFleet request: equal launches of one allocation, at most GROUP_SIZE. Launches into a
 * capacity reservation are alone: EC2 launches nothing of a request that is too large for it.
 *
 * A launch's group follows from its key alone. So a plan that is repeated after a crash has the same groups and client
 * tokens, whichever launches are still open.
 */
import { isBoughtAs } from '../../../domain/pool.ts';
import type { LaunchRequest } from '../../../ports/fleet.ts';
import { ordinalOfLaunch } from '../../../domain/launch-keys.ts';

/**
 * Largest group. A throttled request fails as a whole, so a very large one would fail repeatedly. One step of the cycle
 * acts on about as many effects.
 */
const GROUP_SIZE = 25;

export interface LaunchGroup {
  /** Null: a launch that is bought alone. */
  readonly id: string | null;
  readonly requests: readonly LaunchRequest[];
}

/** Name of the group of a launch; null for a launch that is bought alone. */
export function groupOf({ key, allocation, pool }: Pick<LaunchRequest, 'key' | 'allocation' | 'pool'>): string | null {
  if (allocation === undefined || isBoughtAs(pool, 'reserved')) return null;
  const ordinal = ordinalOfLaunch(key, allocation);
  return ordinal === null ? null : `${allocation}/${Math.floor(ordinal / GROUP_SIZE)}`;
}

export function launchGroups(requests: readonly LaunchRequest[]): readonly LaunchGroup[] {
  const groups = Map.groupBy(requests, (request) => groupOf(request) ?? `alone ${request.key}`);
  return [...groups.values()].map((members) => {
    const [first] = members;
    return { id: first === undefined ? null : groupOf(first), requests: members };
  });
}
