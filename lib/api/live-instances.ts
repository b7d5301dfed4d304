import type { Instance } from '../domain/instance.ts';
import type { Store } from '../ports/store.ts';

const PAGE = 1000;

/** Every instance that has not ended. */
export async function liveInstances(store: Store): Promise<readonly Instance[]> {
  const found: Instance[] = [];
  let after: string | null = null;
  do {
    const page = await store.instances(true, PAGE, after);
    found.push(...page.items);
    after = page.next;
  } while (after !== null);
  return found;
}
