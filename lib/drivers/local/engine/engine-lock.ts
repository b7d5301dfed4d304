import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from '../store/faults.ts';

/**
 * One engine per directory. The lock is SQLite's exclusive file lock, which the operating system takes back when the
 * process dies, however it dies: there is no stale lock to guess about. `<path>.holder` names its holder, for people
 * only.
 */
export function lockDirectory(path: string): { release(): void } {
  const db = opened(path);
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    if (!isBusy(cause)) throw classify(cause, path);
    throw new EbbError('engine.running', {
      what: 'another engine works on this directory',
      got: `${holderOf(path)} holds ${path}`,
      next: 'use the running engine (ebb jobs, ebb submit), stop it, or choose another --dir',
      cause,
    });
  }
  try {
    writeFileSync(`${path}.holder`, `process ${process.pid}`);
  } catch (error) {
    db.close();
    throw error;
  }
  return {
    release: () => {
      rmSync(`${path}.holder`, { force: true });
      db.close();
    },
  };
}

function opened(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: 0 });
  } catch (error) {
    throw classify(error, path);
  }
}

/** https://www.sqlite.org/rescode.html: SQLITE_BUSY, by its primary code. */
const isBusy = (error: unknown): boolean => (((error as { errcode?: number }).errcode ?? 0) & 0xff) === 5;

function holderOf(path: string): string {
  try {
    return readFileSync(`${path}.holder`, 'utf8');
  } catch {
    // Between taking the lock and saying who has it.
    return 'another process';
  }
}
