/** Baselines that spread tasks over instances. */
import { hash32 } from '../../kernel/random.ts';
import { raw } from '../../kernel/units.ts';
import type { PlacePolicy, PlaceTasks } from '../../policy/contracts.ts';
import { byArrival, placeOneByOne, type Filled } from './one-by-one.ts';

/** Least free part of any resource that the instance has. */
function freePart({ free, capacity }: Filled): number {
  return capacity.reduce((least, all, k) => (all > 0 ? Math.min(least, (free[k] ?? 0) / all) : least), 1);
}

/** The emptiest instance first: tasks go to one instance after the other. O(tasks x hosts). */
export const roundRobin: PlaceTasks = (tasks, hosts) =>
  placeOneByOne(tasks, hosts, {
    compare: byArrival,
    score: (_, host) => freePart(host),
    reason: 'the instance with the least on it',
  });

/**
 * Empty instances first, then any with room, at random (Mary, Hugo and Hugo*, section 4.1.3: "scheduling strategies").
 * The same decision draws the same. O(tasks x hosts).
 */
export const atRandom: PlacePolicy = (tasks, hosts, { snapshot }) =>
  placeOneByOne(tasks, hosts, {
    compare: byArrival,
    score: (_, host) =>
      freePart(host) >= 1 ? 2 : hash32(`${host.host.on} ${raw(snapshot.nowMs)} ${host.free.join(' ')}`) / 2 ** 32,
    reason: 'an instance with room, drawn at random',
  });
