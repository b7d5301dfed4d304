import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from './files.ts';

/**
 * Running time that an attempt's checkpoint holds: up to the newest file in the checkpoint directory. Unfinished files
 * do not count if they are named so (a leading dot, or ending in `.tmp` or `.part`) until renamed. Imported by the
 * supervisor: node: imports only.
 */

/** A checkpoint of more files than this is judged by those found first: looking must stay cheap. */
const MAX_FILES = 2000;

/** Newest modification time (wall ms) of a finished file below `folder`; null: none. */
export function newestFileMs(folder: string): number | null {
  let newest: number | null = null;
  let seen = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && seen < MAX_FILES; next = folders.pop()) {
    for (const entry of entriesOf(next)) {
      if (++seen > MAX_FILES) break;
      if (entry.name.startsWith('.') || /\.(tmp|part)$/.test(entry.name)) continue;
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else newest = Math.max(newest ?? 0, modifiedMs(path) ?? 0);
    }
  }
  return newest;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return [];
    throw error;
  }
}

function modifiedMs(path: string): number | null {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return null;
  }
}

/**
 * Follows one attempt's checkpoint. Times of files are wall times, which may jump; a change is therefore placed between
 * two observations, and by the file's age only within them.
 */
export class KeptWork {
  readonly #folder: string;
  readonly #startedMs: number;
  readonly #speed: number;
  #newestMs: number | null;
  #updatedMs: number;
  #keptS = 0;

  /** Call at the start of the attempt, `startedMs` in engine time: existing files are from earlier attempts. */
  constructor(folder: string, startedMs: number, speed: number) {
    this.#folder = folder;
    this.#startedMs = startedMs;
    this.#speed = speed;
    this.#newestMs = newestFileMs(folder);
    this.#updatedMs = startedMs;
  }

  /** Running time kept, engine seconds, seen at `nowMs` engine time. Never falls. */
  update(nowMs: number): number {
    const newest = newestFileMs(this.#folder);
    if (newest !== null && newest !== this.#newestMs) {
      const writtenMs = nowMs - (Date.now() - newest) * this.#speed;
      const within = Math.min(Math.max(writtenMs, this.#updatedMs), nowMs);
      this.#keptS = Math.max(this.#keptS, (within - this.#startedMs) / 1000);
      this.#newestMs = newest;
    }
    this.#updatedMs = nowMs;
    return this.#keptS;
  }
}
