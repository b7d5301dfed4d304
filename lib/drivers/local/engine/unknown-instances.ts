import type { Fleet } from '../../../ports/fleet.ts';
import type { Store } from '../../../ports/store.ts';
import type { KnownInstance } from '../fleet/local-fleet.ts';

/**
 * Instances without a final bill and without files in the fleet. Open launches are left out, because they are repeated
 * anyway.
 */
export async function unknownToFleet(store: Store, fleet: Fleet): Promise<KnownInstance[]> {
  const { instances, openEffects, cursors } = await store.loadActive();
  const asked = new Set(openEffects.flatMap(({ effect }) => (effect.kind === 'launch' ? [effect.instance] : [])));
  const known = new Set((await fleet.list()).map((i) => i.instance));
  return instances
    .filter((i) => !known.has(i.id) && !asked.has(i.id))
    .map((i) => ({ ...i, launchedMs: i.launchedMs ?? i.requestedMs, cursor: cursors.get(i.id) ?? 0 }));
}
