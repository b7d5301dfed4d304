/**
 * The engine's thread, managed by the main thread: started, watched, replaced when it hangs, ended.
 * The thread reports the step of its cycle (`step`). Between two cycles it may be silent without limit; within one it
 * must report within STUCK_S, or later if the machine is too busy (silence.ts). A silent thread is ended and replaced;
 * the new one makes its first decision in trials and so finds the job behind the fault (lib/cycle/decide/isolate.ts).
 * An ended thread leaves nothing half done: commits are transactions, and effects are recorded as intents first.
 * Silence is counted in ticks of this thread's timer, so that a sleeping machine, or a stopped process, does not look
 * like a hung thread.
 */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { CycleStep } from '../../../cycle/engine.ts';
import type { DiskState } from '../../../domain/disk-budget.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { textFor } from '../../../kernel/terminal-text.ts';
import type { Health } from '../../../ports/backend.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './engine-messages.ts';
import { IdleMemory } from './idle-memory.ts';
import { Heart } from './main-watch.ts';
import { Silence } from './silence.ts';
import { wallTime } from '../../wall.ts';

/**
 * Young generation of the engine's thread, MiB (three semi-spaces of 16): without a limit the garbage of a large
 * decision (100,000 tasks) makes the peak about a tenth higher, 0.59 for 0.53 GiB, at the same speed.
 */
export const YOUNG_GENERATION_MIB = 48;

const TICK_MS = 1000;
/**
 * Silence within a cycle after which the thread is ended, s, unless the machine has no time for it. A decision over
 * 100,000 tasks takes some seconds.
 */
const STUCK_S = 30;
/** The same while the engine is told to stop: somebody waits for it, and no decisions are made any more. */
const STUCK_STOPPING_S = 10;
/** Replacements in a row without a cycle that came to its end: then no job is to blame. */
const MAX_REPLACED = 3;
/** Health is degraded after two periods without an answer, but no sooner and no later than this, ms. */
const DEGRADED_MS = { least: 5_000, most: 30_000 } as const;

export interface EngineThreadOptions extends Pick<EngineThreadData, 'dir' | 'database' | 'dumpModel'> {
  /** Longest wall time between two cycles while there is work. */
  readonly periodMs: number;
  /** Called after a call of this thread was ended because it did not come back. Absent: this thread is not watched. */
  readonly onInterrupted?: (afterS: number) => void;
}

export class EngineThread {
  readonly failed: Promise<never>;
  lastCycleMs: number | null = null;
  /** Why it ended by itself; null while it did not. */
  gaveUp: { readonly error: unknown } | null = null;
  readonly #options: EngineThreadOptions;
  readonly #memory = new IdleMemory();
  readonly #over: Promise<void>;
  readonly #heart: Heart | null;
  #worker: Worker | null = null;
  #tick: NodeJS.Timeout | null = null;
  #step: CycleStep = 'waiting';
  readonly #silence = new Silence();
  /** Since when something is to be done that no cycle has come to the end of; null: nothing is. */
  #busySinceMs: number | null = null;
  /** Time by which the next cycle must have begun by itself; null: none. */
  #dueMs: number | null = null;
  #replaced = 0;
  #lastFault: string | null = null;
  #isDraining = false;
  #disk: DiskState | null = null;
  #isOver = false;
  /** The thread hung again and again, and was given up. */
  #isStuck = false;
  #fail: (error: unknown) => void = () => undefined;
  #end: () => void = () => undefined;

  constructor(options: EngineThreadOptions) {
    this.#options = options;
    this.#heart = options.onInterrupted === undefined ? null : new Heart();
    this.failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    // Callers race with it. A failure without a waiter is reported by stop().
    this.failed.catch(() => undefined);
    this.#over = new Promise((resolve) => {
      this.#end = () => {
        this.#isOver = true;
        if (this.#tick !== null) clearInterval(this.#tick);
        this.#heart?.stop();
        resolve();
      };
    });
  }

  async start(): Promise<void> {
    if (this.#worker !== null) return;
    this.#tick = setInterval(() => this.#check(), TICK_MS).unref();
    await Promise.race([this.#begin(null), this.failed]);
  }

  /** Resolves when the thread is ready. */
  #begin(replaces: string | null): Promise<void> {
    const { dir, database, dumpModel } = this.#options;
    const beats = this.#heart?.beats ?? null;
    const isDraining = this.#isDraining;
    const workerData: EngineThreadData = { dir, database, dumpModel, replaces, isDraining, beats, disk: this.#disk };
    const worker = new Worker(new URL(`./engine-thread${extname(fileURLToPath(import.meta.url))}`, import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
    });
    this.#worker = worker;
    this.#heard('observe');
    const isCurrent = (): boolean => this.#worker === worker;
    worker.once('exit', () => {
      if (isCurrent()) this.#end();
    });
    worker.on('error', (error) => {
      if (isCurrent()) this.#giveUp(error);
    });
    return new Promise<void>((resolve) => {
      worker.on('message', (message: FromEngine) => {
        if (!isCurrent()) return;
        if (message.is === 'ready') resolve();
        this.#take(message);
      });
    });
  }

  #take(message: FromEngine): void {
    switch (message.is) {
      case 'ready':
        // A cycle follows at once.
        this.#heard('observe');
        return;
      case 'step':
        this.#heard(message.step);
        return;
      case 'cycle':
        this.#heard('waiting');
        this.lastCycleMs = message.atMs;
        this.#busySinceMs = null;
        this.#dueMs = message.idle ? null : wallTime.monotonicMs() + this.#options.periodMs;
        this.#replaced = 0;
        this.#lastFault = null;
        if (message.idle) this.#memory.quiet();
        return;
      case 'remark':
        process.stderr.write(textFor(process.stderr, `ebb: ${message.text}\n`));
        return;
      case 'fault':
        this.#sayFault(message.text);
        return;
      case 'interrupted':
        this.#options.onInterrupted?.(message.afterS);
        return;
      case 'gave-up':
        this.#giveUp(new EbbError(message.code, message.facts));
        return;
      case 'ended':
        return;
    }
  }

  /** Once for each thing that goes wrong, however often a cycle is tried again. */
  #sayFault(text: string): void {
    const [first = text] = text.split('\n', 1);
    if (first === this.#lastFault) return;
    this.#lastFault = first;
    const where = `a scheduling cycle failed at "${this.#step}" and is tried again`;
    process.stderr.write(textFor(process.stderr, `ebb: ${where}: ${text}\n`));
  }

  /** The first reason counts: the worker's end follows it. */
  #giveUp(error: unknown): void {
    this.gaveUp ??= { error: asEngineFault(error) };
    this.#fail(this.gaveUp.error);
  }

  #heard(step: CycleStep): void {
    this.#step = step;
    this.#silence.broken();
    if (step !== 'waiting') this.#busySinceMs ??= wallTime.monotonicMs();
  }

  #check(): void {
    if (this.#isOver || this.#step === 'waiting') return;
    this.#askForTime();
    if (this.#silence.isTooLong(this.#isDraining ? STUCK_STOPPING_S : STUCK_S)) this.#replace();
  }

  #askForTime(): void {
    const worker: (Omit<Worker, 'cpuUsage'> & Partial<Pick<Worker, 'cpuUsage'>>) | null = this.#worker;
    // Node 24.6 has it and later ones.
    if (worker?.cpuUsage === undefined) return;
    worker.cpuUsage().then(
      ({ user, system }) => {
        if (this.#worker === worker) this.#silence.used((user + system) / 1e6);
      },
      // It has ended.
      () => undefined,
    );
  }

  #replace(): void {
    const stuck = this.#worker;
    const why = `the scheduling cycle did not come back from "${this.#step}" within ${this.#silence.seconds} s`;
    this.#replaced += 1;
    if (this.#replaced > MAX_REPLACED) {
      this.#isStuck = true;
      this.#giveUp(
        new EbbError('internal', {
          what: `${why}, ${this.#replaced} times in a row`,
          next: 'start ebb again; tasks that run go on meanwhile. Report it with what `ebb jobs` shows',
        }),
      );
      this.#worker = null;
      void stuck?.terminate().finally(this.#end);
      return;
    }
    process.stderr.write(`ebb: ${why}; the engine's thread is replaced, and looks for the job behind it\n`);
    this.#lastFault = why;
    this.#worker = null;
    this.#heard('observe');
    // Its connection to the store is closed with it, and so is its transaction.
    void stuck?.terminate().then(
      () => {
        if (!this.#isOver) void this.#begin(why);
      },
      (error: unknown) => this.#giveUp(error),
    );
  }

  /** Health of the engine. A cycle that is long, overdue or failed makes it degraded. */
  health(): Pick<Health, 'status' | 'detail'> {
    const nowMs = wallTime.monotonicMs();
    const { least, most } = DEGRADED_MS;
    const patienceMs = Math.min(most, Math.max(least, 2 * this.#options.periodMs));
    const busyMs = this.#busySinceMs === null ? 0 : nowMs - this.#busySinceMs;
    const lateMs = this.#dueMs === null ? 0 : nowMs - this.#dueMs;
    const detail =
      this.#lastFault ??
      (busyMs > patienceMs ? `no cycle has come to its end for ${Math.round(busyMs / 1000)} s` : null) ??
      (lateMs > patienceMs ? `the next cycle is ${Math.round(lateMs / 1000)} s late` : null);
    return { status: detail === null ? 'ok' : 'degraded', detail };
  }

  /** Nothing is to be done until the next wake. */
  get isIdle(): boolean {
    return this.#busySinceMs === null && this.#dueMs === null;
  }

  wake(): void {
    this.#busySinceMs ??= wallTime.monotonicMs();
    this.#memory.busy();
    this.#send({ do: 'wake' });
  }

  /** Reports a change of the disk's level. */
  disk(disk: DiskState): void {
    this.#disk = disk;
    this.#memory.busy();
    this.#send({ do: 'disk', disk });
  }

  /** Resolves when the thread has ended; false if it hung, so that another process must clean up. */
  async drain(): Promise<boolean> {
    this.#isDraining = true;
    this.#send({ do: 'drain' });
    if (this.#worker === null && this.#tick === null) return true;
    await Promise.race([this.#over, this.failed.catch(() => this.#over)]);
    return !this.#isStuck;
  }

  async terminate(): Promise<void> {
    const worker = this.#worker;
    this.#end();
    await worker?.terminate();
  }

  #send(message: ToEngine): void {
    this.#worker?.postMessage(message);
  }
}

/** Fencing, in words of a directory. */
const asEngineFault = (error: unknown): unknown =>
  isFenced(error)
    ? new EbbError('fenced', { what: 'another engine took over this directory', next: 'use that one: `ebb jobs`' })
    : error;

export const isFenced = (error: unknown): boolean => error instanceof EbbError && error.code === 'fenced';
