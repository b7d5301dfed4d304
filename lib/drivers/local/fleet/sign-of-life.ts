import { statSync } from 'node:fs';
import { hasCode } from './files.ts';

/**
 * Silence that one look can add. After a pause of the whole machine the others must be heard again before they are
 * blamed.
 */
const MOST_PER_LOOK_MS = 5000;

/**
 * How long a process has not touched its heartbeat, as far as this one has watched. Counted from look to look, so that
 * a machine that slept, or an engine that was stopped, does not take every supervisor for one that hangs.
 */
export class SignOfLife {
  readonly #path: string;
  #touchedMs: number | null = null;
  #lookedMs: number | null = null;
  #silentMs = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Silence so far, ms. `nowMs`: monotonic. */
  silentMs(nowMs: number): number {
    const touchedMs = modified(this.#path);
    if (this.#lookedMs === null || touchedMs !== this.#touchedMs) this.#silentMs = 0;
    else this.#silentMs += Math.min(nowMs - this.#lookedMs, MOST_PER_LOOK_MS);
    this.#touchedMs = touchedMs;
    this.#lookedMs = nowMs;
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
