import { mkdirSync, rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { EbbError } from '../../../kernel/errors.ts';
import type { JobId } from '../../../kernel/ids.ts';
import { randomStream } from '../../../kernel/random.ts';
import { raw } from '../../../kernel/units.ts';
import { expectInstances } from '../../../market/fargate.ts';
import { neighbourLearner } from '../../../policy/colocation/neighbour-learner.ts';
import { presetNamed } from '../../../stages/registry.ts';
import { composeLearners } from '../../../cycle/learn/compose-learners.ts';
import { runtimeLearner } from '../../../stages/estimate/runtime-learner.ts';
import { capacityOf } from '../../../market/capacity-truth.ts';
import { s3Places } from '../../../domain/s3-uri.ts';
import { OWN_FOLDER, type Admission, type JobSpec } from '../../../domain/job.ts';
import type { Backend, Health, Placed } from '../../../ports/backend.ts';
import type { Store } from '../../../ports/store.ts';
import { admitter } from '../../../cycle/admit/admission.ts';
import { makeEngineFolder } from './engine-folder.ts';
import { diskWayOut } from '../../../domain/disk-budget.ts';
import { DATABASE } from './database-name.ts';
import { EngineThread, isFenced } from './engine-watch.ts';
import { loadPolicies, loadScalings } from '../policies/load-policies.ts';
import { DiskWatch } from '../disk/disk-watch.ts';
import { earlierLife } from './earlier-life.ts';
import { FoldersAtHand, refuseMissingFiles } from '../admit/files-at-hand.ts';
import { createLocalFleet } from '../fleet/local-fleet.ts';
import { endFleet, killFleet } from '../fleet/kill.ts';
import { localForecasts } from './local-forecasts.ts';
import { lockDirectory } from './engine-lock.ts';
import { replayMarket } from '../market/replay.ts';
import { NamedFolders, ownFolder } from '../admit/own-folders.ts';
import { refuseMissingSecrets } from '../admit/secrets-at-hand.ts';
import { openSqliteStore, type SqliteStore } from '../store/sqlite-store.ts';
import { unknownToFleet } from './unknown-instances.ts';
import { LocalTraffic } from '../traffic/local-traffic.ts';
import { localServices, type LocalServices } from '../services/local-services.ts';
import { VERSION } from './version.ts';
import { enterWorld } from '../market/world.ts';
import type { GivenWorld } from '../market/world-record.ts';
import { wallTime } from '../../wall.ts';

/** Options of an engine. */
export interface LocalEngineOptions extends GivenWorld {
  /** Absolute. Holds the database, logs, checkpoints and the lock. */
  readonly dir: string;
  /** Absolute path to write each plan's model to, or null. */
  readonly dumpModel: string | null;
  /**
   * The process allows calls of this thread to be ended when they do not come back (main-watch.ts), and is told so.
   * Absent: not allowed, because the thread does other work too.
   */
  readonly onInterrupted?: (afterS: number) => void;
  /** True if there must be work of an earlier engine: else nothing is opened or recorded, and `not-found` is thrown. */
  readonly resumes?: boolean;
  /** Receives lines that a person should see at once. Absent: events alone report. */
  readonly say?: (text: string) => void;
  /** Changes each job, and each replica, after its files are placed. Absent: they run as they were submitted. */
  readonly altered?: (spec: JobSpec) => JobSpec;
  /** Rows of the learner of neighbours, to begin with where it has learned nothing. Absent: none. */
  readonly learned?: ReadonlyMap<string, string>;
}

/**
 * drained: nothing is left to do, release everything. checkpoint: tasks are asked to save, then instances are released;
 * the directory can be resumed. at-once: end tasks and instances without waiting.
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

/** Interval at which admission's copy of the beliefs is refreshed, wall ms. */
const HISTORY_REFRESH_MS = 30_000;

/**
 * Ebbtide on one machine: store, market, capacity and API in this thread, the engine in another. Takes the directory
 * (throws `engine.running`, `store.newer`, `market.invalid`, `conflict`); nothing runs before `start`.
 */
export async function openEngine(options: LocalEngineOptions): Promise<LocalEngine> {
  const ownPolicies = await loadPolicies(options.config);
  if (options.preset !== null)
    expectInstances(options.preset, presetNamed(options.preset, options.config.presets, { ownPolicies }).stages);
  const folder = makeEngineFolder(options.dir);
  const lock = lockDirectory(join(options.dir, 'engine.lock'));
  try {
    return await compose(options, lock);
  } catch (error) {
    lock.release();
    // A folder made for an engine that could not begin holds nothing.
    folder.undo();
    throw error;
  }
}

/** Throws `usage` if the preset plans without an optimisation model, so that there is none to write. */
function expectModel({ record, config, ownPolicies }: World): void {
  const { plan } = presetNamed(record.preset, config.presets, { ownPolicies }).policies;
  if (plan === 'milp') return;
  throw new EbbError('usage', {
    what: `the preset ${record.preset} has no optimisation model to write: it plans by ${plan}`,
    got: '--dump-model',
    allowed: 'presets with `plan: milp`, e.g. ebbtide',
    next: 'leave --dump-model out, or choose another --preset',
  });
}

const nothingUnfinished = (dir: string): EbbError =>
  new EbbError('not-found', { what: `${dir} holds no unfinished job`, next: 'run a job: `ebb run FILE`' });

async function compose(options: LocalEngineOptions, lock: { release(): void }): Promise<LocalEngine> {
  const store = openSqliteStore({ path: join(options.dir, DATABASE) });
  const earlier = await earlierLife(store);
  if (options.resumes === true && !earlier.open && !earlier.live) {
    await store.close();
    throw nothingUnfinished(options.dir);
  }
  const world = await enterWorld(options.dir, options, earlier);
  if (options.learned !== undefined) await beginWith(options.learned, store);
  if (options.dumpModel !== null) expectModel(world);
  const market = replayMarket(world.trace, () => world.clock.now());
  const fleet = createLocalFleet({
    dir: options.dir,
    truth: capacityOf(world.trace, world.config),
    clock: world.clock,
    speed: world.record.speed,
  });
  fleet.recover(await unknownToFleet(store, fleet));
  const history = await HistoryCopy.open(store);
  const thread = threadOf(options, world, store);
  const disk = await watchDisk(options, world, thread);
  const traffic = new LocalTraffic();
  const parts = { store, world, market, fleet, history, thread, disk };
  const placing = placedHere(options, disk);
  const scalings = await loadScalings(world.config);
  const services = localServices({ ...parts, traffic, place: placing, scalings, say: options.say });
  const backend = backendOf(options, { ...parts, services, place: placing });
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    disk.close();
    await traffic.close();
    await fleet.close();
    await store.close();
    lock.release();
  };
  return {
    backend,
    start: async () => {
      await thread.start();
      services.start();
    },
    failed: thread.failed,
    stop: async (manner) => {
      await services.stop();
      // A thread that cannot give anything back any more leaves nothing running either.
      if (manner === 'at-once' || !(await thread.drain())) {
        await thread.terminate();
        killFleet(options.dir);
      } else {
        // An engine that gave up has left all as it is. Without an engine nobody would manage what runs on.
        const { gaveUp } = thread;
        if (manner === 'drained' && gaveUp !== null && !isFenced(gaveUp.error)) await endFleet(options.dir);
      }
      closed ??= close();
      await closed;
    },
  };
}

/** Stores rows of a learner, unless it has some. The engine takes the lease after this. */
async function beginWith(learned: ReadonlyMap<string, string>, store: SqliteStore): Promise<void> {
  const { prefix } = neighbourLearner({ isKept: false });
  if ((await store.memory(prefix)).size > 0) {
    throw new EbbError('usage', {
      what: '--neighbours is to begin with, and this engine has learned of neighbours already',
      got: 'a --dir with what it has learned',
      next: 'leave it out, or name a new --dir',
    });
  }
  const token = await store.takeLease('neighbours');
  await store.commit(
    token,
    [...learned].map(([key, value]) => ({ put: 'memory', key, value })),
  );
}

type World = Awaited<ReturnType<typeof enterWorld>>;

function threadOf(options: LocalEngineOptions, world: World, store: SqliteStore): EngineThread {
  const { onInterrupted } = options;
  return new EngineThread({
    dir: options.dir,
    database: join(options.dir, DATABASE),
    dumpModel: options.dumpModel,
    periodMs: (world.config.cyclePeriodS * 1000) / world.record.speed,
    ...(onInterrupted === undefined
      ? {}
      : {
          onInterrupted: (afterS) => {
            store.abandon();
            onInterrupted(afterS);
          },
        }),
  });
}

/** A watch of the disk that tells the engine's thread, and people, when it fills up or has room again. */
async function watchDisk(options: LocalEngineOptions, world: World, thread: EngineThread): Promise<DiskWatch> {
  const disk = await DiskWatch.open({
    dir: options.dir,
    limitBytes: world.record.diskBytes ?? null,
    isIdle: () => thread.isIdle,
  });
  disk.onLevel((state, before) => {
    thread.disk(state);
    const { level, text, use } = state;
    if (level !== 'enough') options.say?.(`warning: ${text}; ${diskWayOut(use, options.dir)}`);
    else if (before === 'used-up') options.say?.(`there is room on the disk again: ${text}`);
  });
  return disk;
}

/** Parts of the engine. */
interface Parts {
  readonly store: Store;
  readonly world: World;
  readonly market: Backend['market'];
  readonly fleet: Backend['fleet'];
  readonly history: HistoryCopy;
  readonly thread: EngineThread;
  readonly disk: DiskWatch;
  readonly services: LocalServices;
  readonly place: PlaceHere;
}

type PlaceHere = (spec: JobSpec, job: JobId) => Promise<Placed>;

/** Where files and secrets of a job are on this machine. */
function placedHere({ dir, altered = (spec) => spec }: LocalEngineOptions, disk: DiskWatch): PlaceHere {
  const named = new NamedFolders(dir);
  const folders = new FoldersAtHand(() => wallTime.monotonicMs());
  return async (spec, job) => {
    refuseOnFullDisk(disk, dir);
    refuseMissingSecrets(spec, dir);
    const placed = await onThisMachine(spec, { own: ownFolder(dir, job), folders, named });
    return { ...placed, spec: altered(placed.spec) };
  };
}

function backendOf(
  options: LocalEngineOptions,
  { store, world, market, fleet, history, thread, disk, services, place }: Parts,
): Backend {
  const admit = admitter({
    pools: market.pools(),
    limits: world.limits,
    config: world.config,
    history: history.runtimes,
  });
  const startedMs = wallTime.epochMs();
  const admitHere = async (spec: JobSpec): Promise<Admission> => {
    await history.refresh();
    return withoutImages(spec, admit(spec, world.clock.now()));
  };
  return {
    store,
    clock: world.clock,
    random: randomStream(world.record.seed, `ids/${startedMs}/${process.pid}`),
    market,
    fleet,
    limits: world.limits,
    submitter: { baseDir: null, defaultOwner: userInfo().username },
    history: { days: world.config.historyDays, archive: null },
    place,
    admit: admitHere,
    services: services.backend(admitHere),
    forecast: localForecasts({ dir: options.dir, world, market, store }),
    wake: () => thread.wake(),
    health: async (): Promise<Health> => ({
      ...healthWith(disk, thread.health(), options.dir),
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
      disk: disk.state === null ? null : { level: disk.state.level, ...disk.state.use },
    }),
  };
}

/** Nothing is made or stored for a job that could not start. */
function refuseOnFullDisk({ state }: DiskWatch, dir: string): void {
  if (state?.level !== 'used-up') return;
  throw new EbbError('store.full', { what: state.text, next: diskWayOut(state.use, dir) });
}

/** An engine that starts nothing does not work as it should. */
function healthWith(
  { state }: DiskWatch,
  { status, detail }: Pick<Health, 'status' | 'detail'>,
  dir: string,
): Pick<Health, 'status' | 'detail'> {
  if (status === 'degraded' || state?.level !== 'used-up') return { status, detail };
  return { status: 'degraded', detail: `${state.text}; ${diskWayOut(state.use, dir)}` };
}

/**
 * Tasks are processes here: a job that reads or writes in S3 is refused, and one whose files are missing on this
 * machine. `own`: the folder of a job that names none, made when there is such a stage.
 */
async function onThisMachine(
  spec: JobSpec,
  { own, folders, named }: { readonly own: string; readonly folders: FoldersAtHand; readonly named: NamedFolders },
): Promise<Placed> {
  const far = s3Places(spec.stages);
  if (far.length === 0) {
    const placed = withOwnFolder(spec, own);
    try {
      await refuseMissingFiles(placed.spec, folders);
      for (const { workdir } of spec.stages) if (workdir !== OWN_FOLDER) await named.note(workdir);
    } catch (error) {
      placed.undo?.();
      throw error;
    }
    return placed;
  }
  throw new EbbError('job-file.invalid', {
    what: 'local mode runs tasks on this machine and reaches no files in S3',
    at: far.join(', '),
    allowed: 'folders and patterns of this machine',
    next: 'name a local folder as `workdir`, or submit the job to a deployment: `ebb --stack NAME submit`',
  });
}

function withOwnFolder(spec: JobSpec, own: string): Placed {
  if (spec.stages.every((s) => s.workdir !== OWN_FOLDER)) return { spec, notes: [] };
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const stages = spec.stages.map((s) => (s.workdir === OWN_FOLDER ? { ...s, workdir: own } : s));
  const undo = (): void => rmSync(own, { recursive: true, force: true });
  return { spec: { ...spec, stages }, notes: [`the job works in ${own}`], undo };
}

/** Tasks are processes here: an image that a stage names is not used, which its submitter must know. */
function withoutImages(spec: JobSpec, admission: Admission): Admission {
  const named = spec.stages.filter((s) => s.image !== undefined).map((s) => s.name);
  if (named.length === 0) return admission;
  const note = `local mode runs commands on this machine: the image of ${named.join(', ')} is not used`;
  return { ...admission, notes: [...admission.notes, note] };
}

/** Admission's own copy of the beliefs of the engine's thread. */
class HistoryCopy {
  readonly #learners = composeLearners();
  readonly runtimes = this.#learners.of(runtimeLearner);
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
    await this.#learners.recall(this.#store, [runtimeLearner]);
  }
}
