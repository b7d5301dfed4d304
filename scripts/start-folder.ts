/**
 * Folder of one `npm start`: makes a new one in FOLDER and prints it. Folders of earlier starts are removed, and
 * processes that a killed one left are ended. The newest folder with unfinished jobs stays, so that it can be resumed,
 * and so does one with a running engine. With --resume, prints that newest unfinished one and changes nothing.
 *
 *   node scripts/start-folder.ts FOLDER [--resume]
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../lib/kernel/errors.ts';
import { killFleet } from '../lib/drivers/local/fleet/kill.ts';
import { lockDirectory } from '../lib/drivers/local/engine/engine-lock.ts';
import { openSqliteStore } from '../lib/drivers/local/store/sqlite-store.ts';

const [, , base, mode] = process.argv;
try {
  process.stdout.write(await folderFor(base, mode === '--resume'));
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  process.stderr.write(`error: ${error.facts.what} (${error.code})\n  next:    ${error.facts.next ?? ''}\n`);
  process.exitCode = error.exit;
}

async function folderFor(below: string | undefined, resume: boolean): Promise<string> {
  if (below === undefined) throw new EbbError('usage', { what: 'no folder was named', next: 'name one' });
  mkdirSync(below, { recursive: true });
  const folders = readdirSync(below).map((name) => join(below, name));
  const unfinished = await newestUnfinished(folders);
  if (resume) {
    if (unfinished !== null) return unfinished;
    throw new EbbError('not-found', { what: 'no start is unfinished', next: 'begin one: `npm start`' });
  }
  for (const folder of folders) clear(folder, folder === unfinished);
  if (unfinished !== null)
    process.stderr.write(`An unfinished start is kept in ${unfinished}: \`npm start -- --resume\` goes on with it.\n`);
  return mkdtempSync(join(below, 'run-'));
}

async function newestUnfinished(folders: readonly string[]): Promise<string | null> {
  const newestFirst = folders
    .filter((folder) => existsSync(databaseOf(folder)))
    .map((folder) => ({ folder, usedMs: statSync(databaseOf(folder)).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { folder } of newestFirst) if (await isUnfinished(folder)) return folder;
  return null;
}

/** False for a folder with a running engine or an unreadable database: neither can be resumed. */
async function isUnfinished(folder: string): Promise<boolean> {
  try {
    const lock = lockDirectory(lockOf(folder));
    try {
      const store = openSqliteStore({ path: databaseOf(folder) });
      const { jobs } = await store.loadActive();
      await store.close();
      return jobs.length > 0;
    } finally {
      lock.release();
    }
  } catch (error) {
    if (error instanceof EbbError) return false;
    throw error;
  }
}

function clear(folder: string, keep: boolean): void {
  try {
    const lock = lockDirectory(lockOf(folder));
    if (existsSync(join(folder, 'instances'))) killFleet(folder);
    lock.release();
  } catch (error) {
    if (error instanceof EbbError && error.code === 'engine.running') return;
    throw error;
  }
  if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function databaseOf(folder: string): string {
  return join(folder, 'ebb.db');
}

function lockOf(folder: string): string {
  return join(folder, 'engine.lock');
}
