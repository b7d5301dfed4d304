import type { Instance } from '../../domain/instance.ts';
import type { Store } from '../../ports/store.ts';

const PAGE = 1000;

/** Every instance that has not ended. */
export const liveInstances = (store: Store): Promise<readonly Instance[]> => allInstances(store, true);

/** Every instance that the store knows; `live`: only those that have not ended, or only those that have. */
export async function allInstances(store: Store, live: boolean | null): Promise<readonly Instance[]> {
  const found: Instance[] = [];
  let after: string | null = null;
  do {
    const page = await store.instances(live, PAGE, after);
    found.push(...page.items);
    after = page.next;
  } while (after !== null);
  return found;
}
