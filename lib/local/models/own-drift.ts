import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { epochMs } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { driftOf, type Drifts } from '../../market/forecast/drift.ts';
import type { Store } from '../../ports/store.ts';
import { earlierLife } from '../earlier-life.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

/** Interruptions as forecast and as they came, of the instances that the directory still knows; null where no engine ever worked. */
export async function ownDrift(dir: string, by: string | null): Promise<Drifts | null> {
  const path = join(dir, 'ebb.db');
  if (!existsSync(path)) return null;
  const store = openSqliteStore({ path });
  try {
    const { lastMs } = await earlierLife(store);
    return lastMs === null ? null : driftOf(await allInstances(store), epochMs(lastMs), by);
  } finally {
    await store.close();
  }
}

async function allInstances(store: Store): Promise<Instance[]> {
  const found: Instance[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Store['instances']>> = await store.instances(null, 1000, after);
    found.push(...page.items);
    after = page.next;
  } while (after !== null);
  return found;
}
