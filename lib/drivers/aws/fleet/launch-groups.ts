/**
 * Launches that one CreateFleet request buys: equal launches of one allocation, at most GROUP_SIZE of them.
 *
 * A launch's group follows from its key alone. So a plan that is acted on again after a crash has the same groups, and
 * each group the same client token, whichever of its launches are still open.
 */
import type { EffectKey } from '../../../kernel/ids.ts';
import type { LaunchRequest } from '../../../ports/fleet.ts';

/**
 * A request that EC2 throttles fails as a whole, so a very large one would be refused again and again; and one step of
 * the cycle acts on about so many effects.
 */
const GROUP_SIZE = 25;

export interface LaunchGroup {
  /** Null: launches of no allocation, each of which is bought alone. */
  readonly id: string | null;
  readonly requests: readonly LaunchRequest[];
}

/**
 * Name of the group of a launch; null for one that belongs to no allocation. Keys are `ALLOCATION/ORDINAL`
 * (lib/cycle/decide/decide.ts).
 */
export function groupOf({
  key,
  allocation,
}: {
  readonly key: EffectKey;
  readonly allocation?: EffectKey;
}): string | null {
  if (allocation === undefined || !key.startsWith(`${allocation}/`)) return null;
  const ordinal = key.slice(allocation.length + 1);
  return /^\d+$/.test(ordinal) ? `${allocation}/${Math.floor(Number(ordinal) / GROUP_SIZE)}` : null;
}

export function launchGroups(requests: readonly LaunchRequest[]): readonly LaunchGroup[] {
  const groups = Map.groupBy(requests, (request) => groupOf(request) ?? `alone ${request.key}`);
  return [...groups.values()].map((members) => {
    const [first] = members;
    return { id: first === undefined ? null : groupOf(first), requests: members };
  });
}
