import { raw } from '../../../kernel/units.ts';
import type { Store } from '../../../ports/store.ts';
import type { Earlier } from '../market/world-record.ts';

/** Facts of earlier engines from the store of a directory. */
export async function earlierLife(store: Store): Promise<Earlier> {
  const active = await store.loadActive();
  const lastPlan = (await store.plans(1, null)).items[0];
  const newest = (await store.jobs({}, 1, null)).items[0];
  const instants = [lastPlan?.atMs, newest?.submittedMs, newest?.finishedMs ?? undefined].flatMap((t) =>
    t === undefined ? [] : [raw(t)],
  );
  return {
    live: active.instances.length > 0,
    open: active.jobs.length > 0,
    lastMs: instants.length === 0 ? null : Math.max(...instants) + 1000,
  };
}
