import { Engine, type CycleReport } from '../../lib/cycle/engine.ts';
import { presetNamed, type Beside } from '../../lib/stages/registry.ts';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import type { DiskState } from '../../lib/domain/disk-budget.ts';
import type { Job } from '../../lib/domain/job.ts';
import type { Observation } from '../../lib/domain/observation.ts';
import { capacityLearner } from '../../lib/stages/capacity-learner.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import { VirtualClock } from '../../lib/kernel/clock.ts';
import type { JobId } from '../../lib/kernel/ids.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { between, epochMs, plus, raw, seconds, type EpochMs, type Seconds } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { capacityOf } from '../../lib/market/capacity-truth.ts';
import type { Stages } from '../../lib/policy/contracts.ts';
import { FROM_HISTORY } from '../../lib/domain/forecast.ts';
import { Forecasting } from '../../lib/cycle/forecast/forecasting.ts';
import type { LearnerFactory } from '../../lib/policy/learner.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import type { Fleet, StartRequest } from '../../lib/ports/fleet.ts';
import type { Store } from '../../lib/ports/store.ts';
import { MemoryFleet, type TaskScript } from '../../lib/drivers/sim/memory-fleet.ts';
import { MemoryStore } from '../../lib/drivers/sim/memory-store.ts';
import { SteppedEngine, type Step, type SteppedParts } from './stepped-engine.ts';
import { noSolver } from '../../bench/load/no-solver.ts';

/** Time passes in steps of this between two looks at whether the fleet has something to tell. */
const STEP_S = 5;
/** An engine that died is up again after this. */
const RESTART_S = 7;
/** A task runs so long unless its environment says otherwise. */
const DEFAULT_RUNTIME_S = 600;

/**
 * What a task does is in its stage's environment: `RUNTIME_S` of work (of a copy: `COPY_RUNTIME_S`), of which the first
 * `FAILURES` tries fail. A stop for a move takes `MOVES_S`.
 */
export const work = (runtimeS: number, failures = 0): Record<string, string> => ({
  RUNTIME_S: String(runtimeS),
  FAILURES: String(failures),
});

export interface BenchOptions {
  readonly trace: MarketTrace;
  readonly startMs: EpochMs;
  readonly config?: Partial<SchedulerConfig>;
  readonly vcpus?: number;
  readonly preset?: string;
  /** Policies in place of the preset's. */
  readonly stages?: (of: Stages<Solver>) => Stages<Solver>;
  /** Learners beside those of every driver, which no policy declares. */
  readonly learners?: readonly LearnerFactory[];
  /** Policies and learners beside those of every driver. */
  readonly beside?: Pick<Beside, 'ownPolicies' | 'learners'>;
  readonly solver?: Solver;
  /** How full the disk is; absent: no driver measures one. */
  readonly disk?: () => DiskState | null;
  /** Between cycles places that come free are given on, as the engine's own loop does. */
  readonly reusesSlots?: boolean;
  /** The cycle in steps with data between them, as on AWS, instead of the engine of local mode. */
  readonly stepped?: boolean;
  /** Default: a new one in memory. */
  readonly store?: Store;
  /** Stepped: the store as the process of a step has it. Default: `store`. */
  readonly storeOf?: (step: Step) => Store;
}

/** Done by somebody else than the engine once time has come to `atMs`: a submission, a cancel request. */
export interface Deed {
  readonly atMs: EpochMs;
  readonly act: (store: Store) => Promise<unknown>;
}

/** The same ports with something between the engine and them. */
export interface Between {
  readonly store: (store: Store) => Store;
  readonly fleet: (fleet: Fleet) => Fleet;
}
export const NOTHING_BETWEEN: Between = { store: (s) => s, fleet: (f) => f };

type Driven = Pick<Engine<Solver>, 'start' | 'cycle' | 'drain'> & Partial<Pick<Engine<Solver>, 'reuseSlots'>>;

/** Thrown where an engine is to die. */
export class Crash extends Error {}
/** Thrown where a call is to fail that the engine survives: it tries the cycle again, at once. */
export class Fault extends Error {}

/**
 * The engine as local mode composes it, on a store and a fleet in memory and a virtual clock. Engines come and go;
 * store, fleet, clock and market stay.
 */
export class EngineBench {
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly fleet: MemoryFleet;
  readonly config: SchedulerConfig;
  readonly cycles: CycleReport[] = [];
  /** All that the fleet ever reported, by instance and sequence: what really happened, whatever the store says. */
  readonly reported = new Map<string, Observation>();
  /** How many engines were composed. */
  engines = 0;
  readonly #options: BenchOptions;
  readonly #taskOf = new Map<string, string>();
  #woken = false;

  constructor(options: BenchOptions) {
    this.#options = options;
    this.store = options.store ?? new MemoryStore();
    this.clock = new VirtualClock(options.startMs);
    this.config = schedulerConfig.parse({ hazardPriorPerHour: 0.01, ...options.config });
    const failures = new Map<string, number>();
    this.fleet = new MemoryFleet({
      truth: capacityOf(options.trace, this.config),
      clock: this.clock,
      script: (request, keptS) => this.#script(request, keptS, failures),
    });
    this.fleet.onChange(() => {
      this.#woken = true;
    });
  }

  #script(request: StartRequest, keptS: Seconds, failures: Map<string, number>): TaskScript {
    const task = `${request.task.job}/${request.task.stage}/${request.task.index}`;
    this.#taskOf.set(request.attempt, task);
    const tried = failures.get(task) ?? 0;
    const fails = tried < Number(request.env['FAILURES'] ?? 0);
    if (fails) failures.set(task, tried + 1);
    const { RUNTIME_S = DEFAULT_RUNTIME_S, COPY_RUNTIME_S = RUNTIME_S, MOVES_S } = request.env;
    return {
      runtimeS: seconds(Math.max(1, Number(request.role === 'copy' ? COPY_RUNTIME_S : RUNTIME_S) - raw(keptS))),
      exitCode: fails ? 1 : 0,
      checkpointEveryS: request.checkpoint?.everyS ?? null,
      stopsInS: seconds(2),
      ...(MOVES_S === undefined ? {} : { movesInS: seconds(Number(MOVES_S)) }),
    };
  }

  /** A new engine on what is there, as after a restart of its process. */
  engine(through: Between = NOTHING_BETWEEN): Engine<Solver> {
    return new Engine<Solver>(this.#composer(through)());
  }

  /** The same, in steps where this bench is of that kind. */
  driven(through: Between = NOTHING_BETWEEN): Driven {
    return this.#options.stepped === true ? new SteppedEngine(this.#composer(through)) : this.engine(through);
  }

  /** Composes the parts of one engine: each time with an empty memory of its own. */
  #composer(through: Between): (step?: Step) => SteppedParts {
    const number = ++this.engines;
    const random = randomStream(1, `plans/${number}`);
    const { storeOf } = this.#options;
    return (step) => {
      const store = step === undefined ? undefined : storeOf?.(step);
      return {
        ...this.#parts(through, number, random),
        ...(store === undefined ? {} : { store: through.store(store) }),
      };
    };
  }

  #parts(through: Between, number: number, random: Uniform): SteppedParts {
    const { trace, preset = 'greedy', vcpus = 64, solver = noSolver, stages = (of) => of, disk } = this.#options;
    const { beside = {}, learners: others = [] } = this.#options;
    const named = presetNamed(preset, this.config.presets, beside);
    const reuse = this.#options.reusesSlots === true ? { reuseGapS: seconds(1) } : {};
    const market = replayMarket(trace, () => this.clock.now());
    const learners = composeLearners({ more: [...others, ...Object.values(beside.learners ?? {})] });
    const evidence = learners.of(capacityLearner);
    const forecasting = new Forecasting({ chosen: FROM_HISTORY, config: this.config });
    return {
      store: through.store(this.store),
      fleet: through.fleet(this.#recorded()),
      market,
      clock: this.clock,
      random,
      solver,
      stages: stages(named.stages),
      ...(named.own && { own: named.own }),
      asks: named.asks,
      reads: named.learners,
      preset,
      config: this.config,
      limits: { vcpus },
      ...(disk === undefined ? {} : { disk }),
      learners,
      forecast: (scene) => forecasting.of(scene, { market, evidence }),
      holder: `engine ${number}`,
      minGapS: seconds(1),
      ...reuse,
      onCycle: (report) => this.cycles.push(report),
    };
  }

  async submit(jobs: readonly Job[]): Promise<void> {
    await this.store.submit(jobs.map((job) => ({ job, idempotency: null })));
  }

  /**
   * Runs engines, each until it dies of a Crash, until nothing is left to do and no deed is left. Fails when that takes
   * more than `withinS` engine seconds.
   */
  async drive(
    how: { readonly through?: () => Between; readonly deeds?: readonly Deed[]; readonly withinS?: number } = {},
  ): Promise<void> {
    const deeds = [...(how.deeds ?? [])].sort((a, b) => raw(a.atMs) - raw(b.atMs));
    const endMs = plus(this.clock.now(), seconds(how.withinS ?? 12 * 3600));
    let engine: Driven | null = null;
    /** When the next cycle is due if nothing happens; null: one is due, or none before a deed. */
    let dueMs: EpochMs | null = null;
    while (raw(this.clock.now()) < raw(endMs)) {
      let waitS: Seconds | null;
      try {
        if (engine === null) {
          engine = this.driven(how.through?.());
          await engine.start();
          dueMs = null;
        }
        const goesOn: boolean =
          this.#woken && dueMs !== null && raw(this.clock.now()) < raw(dueMs) && (await this.#reuse(engine));
        if (!goesOn) {
          this.#woken = false;
          waitS = await engine.cycle();
          dueMs = waitS === null ? null : plus(this.clock.now(), waitS);
        } else waitS = between(this.clock.now(), dueMs ?? endMs);
      } catch (error) {
        if (error instanceof Fault) continue;
        if (!(error instanceof Crash)) throw error;
        engine = null;
        await this.clock.advanceTo(plus(this.clock.now(), seconds(RESTART_S)));
        continue;
      }
      if (waitS === null && deeds.length === 0) return;
      if (await this.#passTime(waitS ?? between(this.clock.now(), deeds[0]?.atMs ?? endMs), deeds)) dueMs = null;
    }
    throw new Error(`not done within ${how.withinS ?? 'its'} engine seconds: ${await this.picture()}`);
  }

  /** What happened between two cycles, where no cycle is needed for it. */
  async #reuse(engine: Driven): Promise<boolean> {
    if (this.#options.reusesSlots !== true || engine.reuseSlots === undefined) return false;
    this.#woken = false;
    return !(await engine.reuseSlots());
  }

  /** Until the engine's next cycle is due, the fleet calls, or somebody did something: true then. */
  async #passTime(waitS: Seconds, deeds: Deed[]): Promise<boolean> {
    const untilMs = raw(plus(this.clock.now(), waitS));
    do {
      const next = Math.min(untilMs, raw(this.clock.now()) + STEP_S * 1000);
      await this.clock.advanceTo(epochMs(Math.max(next, raw(this.clock.now()) + 1)));
      const due = deeds[0];
      if (due !== undefined && raw(due.atMs) <= raw(this.clock.now())) {
        deeds.shift();
        await due.act(this.store);
        return true;
      }
    } while (!this.#woken && raw(this.clock.now()) < untilMs);
    return false;
  }

  /** How often each task ended with success in the world itself. */
  completions(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const o of this.reported.values()) {
      if (o.kind !== 'attempt-ended' || o.exitCode !== 0) continue;
      const task = this.#taskOf.get(o.attempt) ?? o.attempt;
      counts.set(task, (counts.get(task) ?? 0) + 1);
    }
    return counts;
  }

  async jobs(): Promise<readonly Job[]> {
    return (await this.store.jobs({}, 1000, null)).items;
  }

  async job(id: JobId): Promise<Job> {
    const job = await this.store.job(id);
    if (job === null) throw new Error(`no job ${id}`);
    return job;
  }

  /** For messages of failed tests. */
  async picture(): Promise<string> {
    const jobs = (await this.jobs()).map((j) => `${j.id} ${j.state} ${JSON.stringify(j.stages)}`);
    const live = (await this.fleet.list()).filter((i) => i.live).map((i) => i.instance);
    return [...jobs, `live instances: ${live.join(' ')}`].join('\n');
  }

  #recorded(): Fleet {
    const { fleet, reported } = this;
    return new Proxy<Fleet>(fleet, {
      get: (target, name: keyof Fleet) => {
        if (name !== 'observe') return target[name]?.bind(target);
        return async (after: Parameters<Fleet['observe']>[0]) => {
          const seen = await fleet.observe(after);
          for (const o of seen) reported.set(`${o.instance} ${o.sequence}`, o);
          return seen;
        };
      },
    });
  }
}

/** What is wrong at the end, when no engine has anything left to do; empty = all accounted for. */
export async function discrepancies(bench: EngineBench): Promise<string[]> {
  const wrong: string[] = [];
  const { store, fleet, clock } = bench;
  const known = new Map((await store.instances(null, 1000, null)).items.map((i) => [i.id, i]));
  let billedUsd = 0;
  for (const { instance, live } of await fleet.list()) {
    const record = known.get(instance);
    if (live) wrong.push(`instance ${instance} still lives`);
    if (record === undefined) wrong.push(`instance ${instance} is not in the store`);
    else if (record.state !== 'ended') wrong.push(`instance ${instance} is ${record.state} in the store`);
    const { totalUsd } = await fleet.bill(instance, clock.now());
    billedUsd += raw(totalUsd);
    const rowsUsd = (await store.ledger({ instance })).reduce((sum, row) => sum + row.usd, 0);
    if (Math.abs(rowsUsd - raw(totalUsd)) > 1e-6)
      wrong.push(`instance ${instance} cost ${raw(totalUsd)}, its ledger says ${rowsUsd}`);
  }
  const ledgerUsd = (await store.ledger('all')).reduce((sum, row) => sum + row.usd, 0);
  if (Math.abs(ledgerUsd - billedUsd) > 1e-6) wrong.push(`bills of ${billedUsd}, a ledger of ${ledgerUsd}`);
  for (const [task, times] of bench.completions()) if (times > 1) wrong.push(`${task} completed ${times} times`);
  for (const job of await bench.jobs()) {
    const attempts = await store.attempts(job.id);
    for (const a of attempts) if (a.state !== 'ended') wrong.push(`attempt ${a.id} is ${a.state}`);
    for (const stage of job.stages) {
      const recorded = attempts.filter((a) => a.stage === stage.name && a.outcome === 'succeeded');
      if (new Set(recorded.map((a) => a.index)).size !== recorded.length)
        wrong.push(`${job.id}/${stage.name}: a task has two successes`);
      if (recorded.length !== stage.succeeded)
        wrong.push(`${job.id}/${stage.name}: ${recorded.length} successes, ${stage.succeeded} counted`);
      const { nextFresh, waiting, running, succeeded, failed, cancelled } = stage;
      if (waiting + running + succeeded + failed + cancelled !== nextFresh)
        wrong.push(`${job.id}/${stage.name}: counters do not sum: ${JSON.stringify(stage)}`);
      if (job.state === 'succeeded' && succeeded !== stage.tasks)
        wrong.push(`${job.id} succeeded with ${succeeded} of ${stage.tasks} tasks`);
    }
  }
  const open = (await store.loadActive()).openEffects;
  if (open.length > 0) wrong.push(`${open.length} effect(s) never confirmed: ${open.map((e) => e.key).join(' ')}`);
  return wrong;
}
