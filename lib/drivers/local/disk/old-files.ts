import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { attemptId, jobId } from '../../../kernel/ids.ts';
import type { Store } from '../../../ports/store.ts';
import { hasCode } from '../fleet/files.ts';
import { newestFileMs } from '../fleet/kept-work.ts';
import { layout } from '../fleet/layout.ts';
import { isNamed, isOwnName, ownFolders } from '../admit/own-folders.ts';
import { DAY_MS } from '../../../kernel/units.ts';

export interface OldFilesParts {
  readonly dir: string;
  readonly store: Pick<Store, 'attempt' | 'job'>;
  readonly historyDays: number;
  /** Wall time. */
  readonly nowMs: number;
}

/**
 * Removes logs, checkpoints and own working directories of jobs that have aged out of the store. Files in folders that
 * a user named stay. A file written within `historyDays` is not looked up, so that one pass costs a stat per file and a
 * query per old one. May be repeated after a crash at any point. Returns the number of removed files.
 */
export async function removeOldFiles(parts: OldFilesParts): Promise<number> {
  const { dir, store } = parts;
  let removed = 0;
  for (const folder of await namesIn(layout.logs(dir))) {
    for (const name of await namesIn(join(layout.logs(dir), folder))) {
      const path = join(layout.logs(dir), folder, name);
      const id = idOf(name.replace(/\.(out|err)$/, ''));
      if (!(await isOld(path, parts)) || (id !== null && (await store.attempt(attemptId(id))) !== null)) continue;
      await rm(path, { force: true });
      removed++;
    }
  }
  for (const name of await namesIn(layout.checkpointsOfAll(dir))) {
    const path = join(layout.checkpointsOfAll(dir), name);
    const id = idOf(name);
    if (!(await isOld(path, parts)) || (id !== null && (await store.job(jobId(id))) !== null)) continue;
    await rm(path, { recursive: true, force: true });
    removed++;
  }
  for (const name of (await namesIn(ownFolders(dir))).filter(isOwnName)) {
    const path = join(ownFolders(dir), name);
    if (!(await isOld(path, parts)) || (await store.job(jobId(name))) !== null || (await isNamed(dir, name))) continue;
    // A folder is as old as its newest entry; files deeper down may be younger.
    if ((newestFileMs(path) ?? 0) > agedMs(parts)) continue;
    await rm(path, { recursive: true, force: true });
    removed++;
  }
  return removed;
}

/**
 * The id that a name was made of (`fileName`); null for one that was too long to be kept whole: its age decides alone.
 */
function idOf(name: string): string | null {
  if (name.includes('~')) return null;
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}

/** Time before which a file is old. */
const agedMs = ({ historyDays, nowMs }: OldFilesParts): number => nowMs - historyDays * DAY_MS;

async function isOld(path: string, parts: OldFilesParts): Promise<boolean> {
  try {
    return (await stat(path)).mtimeMs <= agedMs(parts);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
