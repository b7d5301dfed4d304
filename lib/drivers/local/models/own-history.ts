import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { EbbError } from '../../../kernel/errors.ts';
import { epochMs, most } from '../../../kernel/units.ts';
import { allInstances } from '../../../cycle/state/known-instances.ts';
import { recordOf } from '../../../market/capacity-record.ts';
import { knownUntil } from '../../../market/until.ts';
import type { RecordSource } from '../datasets/capacity-dataset-folder.ts';
import type { DatasetSource } from '../datasets/dataset-folder.ts';
import { earlierLife } from '../engine/earlier-life.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { readWorldRecord } from '../market/world-record.ts';
import { knownWorld } from '../market/world.ts';

/** Capacity record of an engine's own instances, up to the last instant of its work. Throws `not-found`. */
export async function ownRecord(dir: string): Promise<RecordSource> {
  const path = join(dir, 'ebb.db');
  if (!existsSync(path)) throw noEngine(dir, 'no engine has worked in this directory');
  const store = openSqliteStore({ path });
  try {
    const { lastMs } = await earlierLife(store);
    const record = lastMs === null ? null : recordOf(await allInstances(store, null), epochMs(lastMs));
    if (record === null) throw noEngine(dir, 'the engine of this directory has never asked for a spot instance');
    return { name: basename(dir), record };
  } finally {
    await store.close();
  }
}

const noEngine = (dir: string, what: string): EbbError =>
  new EbbError('not-found', {
    what,
    got: dir,
    next: 'name series of availability with --markets, or the --dir of an earlier `ebb up` or `ebb run`',
  });

/**
 * Prices seen by the engine of a directory: its market, up to the last instant of its work. Later prices are the future
 * of a replay. Reads only; an engine may be at work. Throws `not-found` for a directory without one.
 */
export async function ownHistory(dir: string): Promise<DatasetSource> {
  const record = readWorldRecord(dir);
  const lastMs = record === null ? null : await lastInstant(dir);
  if (record === null || lastMs === null) {
    throw new EbbError('not-found', {
      what: 'no engine has worked in this directory, so that it has no prices of its own',
      got: dir,
      next: 'name price histories with --markets, or the --dir of an earlier `ebb up` or `ebb run`',
    });
  }
  const { trace } = await knownWorld(dir);
  const name = record.market === null ? trace.name : basename(record.market);
  return { name, trace: knownUntil(trace, most(epochMs(lastMs), trace.startMs)) };
}

async function lastInstant(dir: string): Promise<number | null> {
  const store = openSqliteStore({ path: join(dir, 'ebb.db') });
  try {
    return (await earlierLife(store)).lastMs;
  } finally {
    await store.close();
  }
}
