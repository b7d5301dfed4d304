import { statSync } from 'node:fs';
import { hasCode } from './files.ts';

/** Most silence that one check adds. After a pause of the whole machine supervisors must get a chance to be heard. */
const MOST_PER_CHECK_MS = 5000;

/**
 * Silence of a process: time without a touched heartbeat, as observed here. Counted from check to check, so that after
 * a sleep of the machine, or a stop of the engine, supervisors do not look hung.
 */
export class SignOfLife {
  readonly #path: string;
  #touchedMs: number | null = null;
  #checkedMs: number | null = null;
  #silentMs = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Silence so far, ms. `nowMs`: monotonic. */
  silentMs(nowMs: number): number {
    const touchedMs = modified(this.#path);
    if (this.#checkedMs === null || touchedMs !== this.#touchedMs) this.#silentMs = 0;
    else this.#silentMs += Math.min(nowMs - this.#checkedMs, MOST_PER_CHECK_MS);
    this.#touchedMs = touchedMs;
    this.#checkedMs = nowMs;
    return this.#silentMs;
  }
}

/** 0 for a file that is not there. */
function modified(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0;
    throw error;
  }
}
