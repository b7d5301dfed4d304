/**
 * Launches that one CreateFleet request buys: equal launches of one allocation, at most GROUP_SIZE of them. Into a
 * capacity reservation each is launched alone: of a request that is too large for it EC2 launches none.
 *
 * A launch's group follows from its key alone. So a plan that is acted on again after a crash has the same groups, and
 * each group the same client token, whichever of its launches are still open.
 */
import { isBoughtAs } from '../../../domain/pool.ts';
import type { LaunchRequest } from '../../../ports/fleet.ts';
import { ordinalOfLaunch } from '../../../domain/launch-keys.ts';

/**
 * A request that EC2 throttles fails as a whole, so a very large one would be refused again and again; and one step of
 * the cycle acts on about so many effects.
 */
const GROUP_SIZE = 25;

export interface LaunchGroup {
  /** Null: one that is bought alone. */
  readonly id: string | null;
  readonly requests: readonly LaunchRequest[];
}

/** Name of the group of a launch; null for one that is bought alone. */
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
