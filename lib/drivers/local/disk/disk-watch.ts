/**
 * Watches the disk budget of an engine's folder.
 * Lifecycle: `open` checks at once and waits for the answer, but not for long; then one check a second until `close`,
 * or one in five if the engine is idle. A check asks the file system for its free space (one call). The folder itself
 * is measured (O(files), folder-size.ts) only when the free space has moved by a two-hundredth of the budget since the
 * last time, or ten minutes have passed; never two at once, and for no more than a tenth of the time. So a folder
 * without changes costs one call a second, however many files there are.
 */
import { statfs } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  defaultBudget,
  diskLevel,
  diskText,
  reserveOf,
  type DiskLevel,
  type DiskState,
  type DiskUse,
} from '../../../domain/disk-budget.ts';
import { folderSize } from './folder-size.ts';
import { wallTime } from '../../wall.ts';

const CHECK_MS = 1000;
/** One check in this many is made while the engine is idle. */
const IDLE_CHECKS = 5;
/** Longest that the first measurement is waited for, ms: some 20,000 files. */
const FIRST_MS = 500;
/** Pause after each few entries, ms. */
const PAUSE_MS = 1;
const MOST_AGE_MS = 600_000;
/** Shortest time between two measurements: this, or ten times the duration of the last one. */
const LEAST_GAP_MS = 1500;
const GAP_TIMES = 10;
/** Change of free space that asks for no new measurement: less than this, or than that share of the budget. */
const NOTEWORTHY_BYTES = 64 * 1024;
const NOTEWORTHY_SHARE = 0.005;

type Space = Pick<DiskUse, 'freeBytes' | 'reserveBytes'>;

export interface DiskWatchOptions {
  /** Absolute. */
  readonly dir: string;
  /** Null: derived from the free space at the first measurement. */
  readonly limitBytes: number | null;
  /** True if the engine is idle, so that nothing is written either. */
  readonly isIdle: () => boolean;
}

/** Parts of a watch; tests give their own. */
export interface DiskWatchParts extends Omit<DiskWatchOptions, 'isIdle'> {
  /** Null: the file system does not say. */
  readonly space: () => Promise<Space | null>;
  /** Bytes that the folder uses. */
  readonly measure: (signal: AbortSignal) => Promise<number>;
  /** Monotonic, ms. */
  readonly nowMs: () => number;
}

/** `before`: null where it is the first level that is known. */
type LevelListener = (state: DiskState, before: DiskLevel | null) => void;

interface Measured {
  readonly usedBytes: number;
  /** Free space at its beginning. */
  readonly freeBytes: number;
  readonly tookMs: number;
  readonly endedMs: number;
}

export class DiskWatch {
  /** Null until the first measurement has ended. */
  state: DiskState | null = null;
  readonly #parts: DiskWatchParts;
  #budgetBytes: number | null;
  #measured: Measured | null = null;
  #measuring: Promise<void> | null = null;
  #isChecking = false;
  #tick: NodeJS.Timeout | null = null;
  #listener: LevelListener = () => undefined;
  readonly #closed = new AbortController();

  constructor(parts: DiskWatchParts) {
    this.#parts = parts;
    this.#budgetBytes = parts.limitBytes;
  }

  static async open(options: DiskWatchOptions): Promise<DiskWatch> {
    const { dir } = options;
    const watch = new DiskWatch({
      ...options,
      space: () => spaceOf(dir),
      measure: async (signal) => (await folderSize(dir, { pause: () => delay(PAUSE_MS), signal })).bytes,
      nowMs: () => wallTime.monotonicMs(),
    });
    await watch.check();
    const waiting = new AbortController();
    const enough = delay(FIRST_MS, undefined, { signal: waiting.signal }).catch(() => undefined);
    await Promise.race([watch.measured, enough]);
    waiting.abort();
    let passed = 0;
    watch.#tick = setInterval(() => {
      passed = options.isIdle() ? (passed + 1) % IDLE_CHECKS : 0;
      if (passed === 0) void watch.check();
    }, CHECK_MS).unref();
    return watch;
  }

  /** Resolves when the measurement that is under way has ended, if one is. */
  get measured(): Promise<void> {
    return this.#measuring ?? Promise.resolve();
  }

  /** Sets the one listener: called with the first level, at once if it is known, and with each change. */
  onLevel(listener: LevelListener): void {
    this.#listener = listener;
    if (this.state !== null) listener(this.state, null);
  }

  close(): void {
    if (this.#tick !== null) clearInterval(this.#tick);
    this.#listener = () => undefined;
    this.#closed.abort();
  }

  async check(): Promise<void> {
    if (this.#isChecking || this.#closed.signal.aborted) return;
    this.#isChecking = true;
    try {
      const space = await this.#parts.space();
      if (space === null) return;
      this.#judge(space);
      if (this.#isDue(space)) this.#measuring = this.#measure(space);
    } finally {
      this.#isChecking = false;
    }
  }

  #isDue({ freeBytes }: Space): boolean {
    if (this.#measuring !== null) return false;
    const known = this.#measured;
    if (known === null) return true;
    const ageMs = this.#parts.nowMs() - known.endedMs;
    if (ageMs < Math.max(LEAST_GAP_MS, GAP_TIMES * known.tookMs)) return false;
    const noteworthy = Math.max(NOTEWORTHY_BYTES, NOTEWORTHY_SHARE * (this.#budgetBytes ?? 0));
    return ageMs >= MOST_AGE_MS || Math.abs(freeBytes - known.freeBytes) >= noteworthy;
  }

  async #measure(space: Space): Promise<void> {
    const beganMs = this.#parts.nowMs();
    const { signal } = this.#closed;
    try {
      const usedBytes = await this.#parts.measure(signal);
      const endedMs = this.#parts.nowMs();
      this.#measured = { usedBytes, freeBytes: space.freeBytes, tookMs: endedMs - beganMs, endedMs };
      this.#budgetBytes ??= defaultBudget({ usedBytes, freeBytes: space.freeBytes });
      this.#judge(space);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#measuring = null;
    }
  }

  #judge(space: Space): void {
    if (this.#measured === null || this.#budgetBytes === null) return;
    const use: DiskUse = { ...space, usedBytes: this.#measured.usedBytes, budgetBytes: this.#budgetBytes };
    const before = this.state?.level ?? null;
    const level = diskLevel(use, before ?? 'enough');
    this.state = { level, use, text: diskText(use, level, this.#parts.dir) };
    if (level !== before) this.#listener(this.state, before);
  }
}

async function spaceOf(dir: string): Promise<Space | null> {
  // A file system that does not answer says so in every other place, too.
  const found = await statfs(dir).catch(() => null);
  if (found === null) return null;
  return { freeBytes: found.bavail * found.bsize, reserveBytes: reserveOf(found.blocks * found.bsize) };
}
