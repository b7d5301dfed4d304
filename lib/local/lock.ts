import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { EbbError } from '../kernel/errors.ts';

/**
 * One engine per directory. The lock is SQLite's exclusive file lock, which the operating system takes back when the
 * process dies, however it dies: there is no stale lock to guess about. `<path>.holder` says who has it, for people only.
 */
export function lockDirectory(path: string): { release(): void } {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    throw new EbbError('engine.running', {
      what: 'another engine works on this directory',
      got: `${holderOf(path)} holds ${path}`,
      next: 'use the running engine (ebb jobs, ebb submit), stop it, or choose another --dir',
      cause,
    });
  }
  writeFileSync(`${path}.holder`, `process ${process.pid}`);
  return {
    release: () => {
      rmSync(`${path}.holder`, { force: true });
      db.close();
    },
  };
}

function holderOf(path: string): string {
  try {
    return readFileSync(`${path}.holder`, 'utf8');
  } catch {
    // Between taking the lock and saying who has it.
    return 'another process';
  }
}
