import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { epochMs, raw } from '../../kernel/units.ts';
import { allInstances } from '../../api/known-instances.ts';
import { knownUntil } from '../../market/until.ts';
import type { DatasetSource } from '../dataset-folder.ts';
import { earlierLife } from '../earlier-life.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { readWorldRecord } from '../world-record.ts';
import { knownWorld } from '../world.ts';

/** What an engine of a directory has seen of capacity, in words: spot instances that ended, interruptions, and over which time. */
export async function ownInterruptions(dir: string): Promise<string> {
  const path = join(dir, 'ebb.db');
  if (!existsSync(path)) return 'no engine has worked in this directory';
  const store = openSqliteStore({ path });
  try {
    const ended = (await allInstances(store, false)).filter((i) => i.pool.endsWith('/spot') && i.launchedMs !== null);
    const interrupted = ended.filter((i) => i.endCause === 'interrupted').length;
    const times = ended.flatMap((i) => [raw(i.launchedMs ?? i.requestedMs), raw(i.endedMs ?? i.requestedMs)]);
    const days = times.length === 0 ? 0 : (Math.max(...times) - Math.min(...times)) / 86_400_000;
    return `${ended.length} spot instances that ended within ${days.toFixed(1)} days, ${interrupted} of them interrupted`;
  } finally {
    await store.close();
  }
}

/**
 * The prices that the engine of a directory has seen: its market, up to the last instant that it worked at. What the market has after that
 * is the future of a replay. Reads only; an engine may be at work. Throws `not-found` where none ever was.
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
  return { name, trace: knownUntil(trace, epochMs(Math.max(lastMs, raw(trace.startMs)))) };
}

async function lastInstant(dir: string): Promise<number | null> {
  const store = openSqliteStore({ path: join(dir, 'ebb.db') });
  try {
    return (await earlierLife(store)).lastMs;
  } finally {
    await store.close();
  }
}
