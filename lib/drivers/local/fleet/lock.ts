import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { hasCode, readIfThere, replaceFile } from './files.ts';
import { processStart } from './processes.ts';

/**
 * One supervisor per instance, for ever: the lock is made once and never passed on. Its maker writes the journal; when
 * the owner has died the instance is lost, and only then an engine goes on in its place. Imported by the supervisor:
 * node: imports only.
 */
interface LockOwner {
  readonly pid: number;
  readonly started: string;
}

/** Makes the lock with its whole content at once (a hard link cannot be seen half-written). False when there is one. */
export function takeLock(path: string): boolean {
  const owner: LockOwner = { pid: process.pid, started: processStart(process.pid) ?? '' };
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, JSON.stringify(owner));
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** free: nobody ever took it; held: its owner lives; dead: its owner has died. */
export function lockState(path: string): 'free' | 'held' | 'dead' {
  const text = readIfThere(path);
  if (text === null) return 'free';
  const owner = ownerIn(text);
  return owner !== null && processStart(owner.pid) === owner.started ? 'held' : 'dead';
}

/** Null for a text without an owner: a lock is written whole, so the power failed before it was on the disk. */
function ownerIn(text: string): LockOwner | null {
  try {
    return JSON.parse(text) as LockOwner;
  } catch {
    return null;
  }
}

/** The owner's process id while it lives, else null. */
export function lockOwner(path: string): number | null {
  return lockState(path) === 'held' ? (ownerIn(readIfThere(path) ?? '')?.pid ?? null) : null;
}

/** Makes the lock of an instance without a supervisor: from then on it counts as dead, and none can come up. */
export function lockAsDead(path: string): void {
  replaceFile(path, JSON.stringify({ pid: 0, started: 'nobody' } satisfies LockOwner));
}
