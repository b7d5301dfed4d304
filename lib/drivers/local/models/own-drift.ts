import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { epochMs } from '../../../kernel/units.ts';
import { allInstances } from '../../../cycle/state/known-instances.ts';
import { driftOf, type DriftQuestion, type Drifts } from '../../../market/forecast/drift.ts';
import { earlierLife } from '../engine/earlier-life.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

/**
 * Interruptions as forecast and as they came, of the instances that the directory still knows; null where no engine
 * ever worked.
 */
export async function ownDrift(dir: string, asked: DriftQuestion): Promise<Drifts | null> {
  const path = join(dir, 'ebb.db');
  if (!existsSync(path)) return null;
  const store = openSqliteStore({ path });
  try {
    const { lastMs } = await earlierLife(store);
    return lastMs === null ? null : driftOf(await allInstances(store, null), epochMs(lastMs), asked);
  } finally {
    await store.close();
  }
}
