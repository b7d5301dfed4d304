import { mkdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { EbbError } from '../kernel/errors.ts';
import { randomStream } from '../kernel/random.ts';
import { raw } from '../kernel/units.ts';
import { presetNamed } from '../cycle/presets.ts';
import { LoggedHistory } from '../estimate/logged-history.ts';
import { capacityOf } from '../market/capacity.ts';
import { s3Places } from '../domain/s3-uri.ts';
import type { Admission, JobSpec } from '../domain/job.ts';
import type { Backend, Health } from '../ports/backend.ts';
import type { Store } from '../ports/store.ts';
import { admitter } from '../cycle/admission.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './engine-messages.ts';
import { earlierLife } from './earlier-life.ts';
import { createLocalFleet } from './fleet/fleet.ts';
import { killFleet } from './fleet/kill.ts';
import { IdleMemory } from './idle-memory.ts';
import { localForecasts } from './forecasts.ts';
import { lockDirectory } from './lock.ts';
import { replayMarket } from './market-replay.ts';
import { openSqliteStore } from './store/sqlite-store.ts';
import { VERSION } from './version.ts';
import { enterWorld } from './world.ts';
import type { GivenWorld } from './world-record.ts';
import { wallTime } from './wall.ts';

/** What an engine is opened with. */
export interface LocalEngineOptions extends GivenWorld {
  /** Absolute. Holds the database, logs, checkpoints and the lock. */
  readonly dir: string;
  /** Absolute path to write each plan's model to, or null. */
  readonly dumpModel: string | null;
}

/**
 * drained: nothing is left to do, give everything back. checkpoint: tasks are asked to save, then instances are given
 * back; the directory can be resumed. at-once: end tasks and instances without waiting for anybody.
 */
export type StopManner = 'drained' | 'checkpoint' | 'at-once';

export interface LocalEngine {
  readonly backend: Backend;
  start(): Promise<void>;
  /** Rejects when the engine gives up; never resolves. */
  readonly failed: Promise<never>;
  /** Resolves when nothing is left running. A harder manner overtakes a softer one; repeating is harmless. */
  stop(manner: StopManner): Promise<void>;
}

/** How often the copy of what was learned that admission uses is refreshed, wall ms. */
const HISTORY_REFRESH_MS = 30_000;
/**
 * Young generation of the engine's thread, MiB (three semi-spaces of 16): without a limit the garbage of a large decision
 * (100,000 tasks) makes the peak about a tenth higher, 0.59 for 0.53 GiB, at the same speed.
 */
export const YOUNG_GENERATION_MIB = 48;
/** A cycle that lasts longer than this, wall ms, makes health say `stale`. */
const STALE_MS = 60_000;
const DATABASE = 'ebb.db';

/**
 * Ebbtide on one machine: store, market, capacity and API in this thread, the engine in another. Takes the directory
 * (throws `engine.running`, `store.newer`, `market.invalid`, `conflict`); nothing runs before `start`.
 */
export async function openEngine(options: LocalEngineOptions): Promise<LocalEngine> {
  if (options.preset !== null) presetNamed(options.preset);
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const lock = lockDirectory(join(options.dir, 'engine.lock'));
  try {
    return await compose(options, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function compose(options: LocalEngineOptions, lock: { release(): void }): Promise<LocalEngine> {
  const database = join(options.dir, DATABASE);
  const store = openSqliteStore({ path: database });
  const world = await enterWorld(options.dir, options, await earlierLife(store));
  const market = replayMarket(world.trace, () => world.clock.now());
  const fleet = createLocalFleet({
    dir: options.dir,
    truth: capacityOf(world.trace, world.config),
    clock: world.clock,
    speed: world.record.speed,
  });
  const history = await HistoryCopy.open(store);
  const admit = admitter({
    pools: market.pools(),
    vcpus: world.vcpus,
    config: world.config,
    history: history.predictor,
  });
  const thread = new EngineThread({
    dir: options.dir,
    database,
    dumpModel: options.dumpModel,
  });
  const startedMs = wallTime.epochMs();
  const backend: Backend = {
    store,
    clock: world.clock,
    random: randomStream(world.record.seed, `ids/${startedMs}/${process.pid}`),
    market,
    fleet,
    limits: { vcpus: world.vcpus },
    submitter: { baseDir: null, defaultOwner: userInfo().username },
    history: { days: world.config.historyDays, archive: null },
    place: onThisMachine,
    admit: async (spec) => {
      await history.refresh();
      return withoutImages(spec, admit(spec, world.clock.now()));
    },
    forecast: localForecasts({ dir: options.dir, world, market, store }),
    wake: () => thread.wake(),
    health: async (): Promise<Health> => ({
      status: thread.busySinceMs !== null && wallTime.monotonicMs() - thread.busySinceMs > STALE_MS ? 'stale' : 'ok',
      version: VERSION,
      engineStartedMs: startedMs,
      lastCycleMs: thread.lastCycleMs,
      market: {
        name: world.trace.name,
        fromMs: raw(world.trace.startMs),
        toMs: raw(world.trace.endMs),
        speed: world.record.speed,
      },
      preset: world.record.preset,
    }),
  };
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await fleet.close();
    await store.close();
    lock.release();
  };
  return {
    backend,
    start: () => thread.start(),
    failed: thread.failed,
    stop: async (manner) => {
      if (manner === 'at-once') {
        await thread.terminate();
        killFleet(options.dir);
      } else await thread.drain();
      closed ??= close();
      await closed;
    },
  };
}

/** Tasks are processes here, and nothing fetches from S3: a job that reads or writes there is refused. */
function onThisMachine(spec: JobSpec): { readonly spec: JobSpec; readonly notes: readonly string[] } {
  const far = s3Places(spec.stages);
  if (far.length === 0) return { spec, notes: [] };
  throw new EbbError('job-file.invalid', {
    what: 'local mode runs tasks on this machine and reaches no files in S3',
    at: far.join(', '),
    allowed: 'folders and patterns of this machine',
    next: 'name a local folder as `workdir`, or submit the job to a deployment: `ebb --stack NAME submit`',
  });
}

/** Tasks are processes here: an image that a stage names is not used, which its submitter must know. */
function withoutImages(spec: JobSpec, admission: Admission): Admission {
  const named = spec.stages.filter((s) => s.image !== undefined).map((s) => s.name);
  if (named.length === 0) return admission;
  const note = `local mode runs commands on this machine: the image of ${named.join(', ')} is not used`;
  return { ...admission, notes: [...admission.notes, note] };
}

/** Admission's own copy of what the engine's thread has learned. */
class HistoryCopy {
  readonly predictor = new LoggedHistory();
  readonly #store: Store;
  #readMs = 0;

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(store: Store): Promise<HistoryCopy> {
    const copy = new HistoryCopy(store);
    await copy.refresh();
    return copy;
  }

  async refresh(): Promise<void> {
    const now = wallTime.monotonicMs();
    if (this.#readMs !== 0 && now - this.#readMs < HISTORY_REFRESH_MS) return;
    this.#readMs = now;
    this.predictor.restore(await this.#store.memory(this.predictor.prefix));
  }
}

/** The engine's thread as this one sees it. */
class EngineThread {
  readonly failed: Promise<never>;
  lastCycleMs: number | null = null;
  busySinceMs: number | null = null;
  readonly #data: EngineThreadData;
  readonly #memory = new IdleMemory();
  #worker: Worker | null = null;
  #ended: Promise<void> = Promise.resolve();
  #fail: (error: unknown) => void = () => undefined;

  constructor(data: EngineThreadData) {
    this.#data = data;
    this.failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    // Whoever cares races with it; a failure that nobody waits for is reported by stop().
    this.failed.catch(() => undefined);
  }

  async start(): Promise<void> {
    if (this.#worker !== null) return;
    const url = new URL(`./engine-thread${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
    const worker = new Worker(url, {
      workerData: this.#data,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
    });
    this.#worker = worker;
    this.#ended = new Promise((resolve) => {
      worker.once('exit', () => {
        resolve();
      });
    });
    worker.once('error', (error) => {
      this.#fail(asEbbError(error));
    });
    const ready = new Promise<void>((resolve) => {
      worker.on('message', (message: FromEngine) => {
        if (message.is === 'ready') resolve();
        else if (message.is === 'cycle') {
          this.lastCycleMs = message.atMs;
          this.busySinceMs = null;
          if (message.idle) this.#memory.quiet();
        } else if (message.is === 'fault')
          process.stderr.write(`ebb: a scheduling cycle failed and is tried again: ${message.text}\n`);
      });
    });
    await Promise.race([ready, this.failed]);
  }

  wake(): void {
    this.busySinceMs ??= wallTime.monotonicMs();
    this.#memory.busy();
    this.#send({ do: 'wake' });
  }

  async drain(): Promise<void> {
    this.#send({ do: 'drain' });
    await this.#ended;
  }

  async terminate(): Promise<void> {
    await this.#worker?.terminate();
  }

  #send(message: ToEngine): void {
    this.#worker?.postMessage(message);
  }
}

/** Errors lose their class on the way between threads. */
function asEbbError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'fenced') return error;
  return new EbbError('fenced', { what: 'another engine took over this directory', next: 'use that one: `ebb jobs`' });
}
