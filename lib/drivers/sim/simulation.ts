/**
 * The third driver: the engine of local mode and its use cases on a store and a fleet in memory, under a virtual clock.
 * Things happen in one total order (`inOrder`): by time, priority, sequence. Nothing reads the real time, and every
 * draw comes from a named stream of the seed, so the same input gives the same events, byte for byte.
 * A step costs O(log waiting events); a cycle costs as much as the engine's: O(active jobs, running tasks, live
 * instances, pools).
 */
import { EbbError } from '../../kernel/errors.ts';
import { VirtualClock } from '../../kernel/clock.ts';
import { jobId, timeOrderedText, type JobId } from '../../kernel/ids.ts';
import { randomStream, type Uniform } from '../../kernel/random.ts';
import { epochMs, gte, isoOf, lt, lte, most, raw, type EpochMs, type Seconds, seconds } from '../../kernel/units.ts';
import { admitter } from '../../cycle/admit/admission.ts';
import { Engine, type CycleReport } from '../../cycle/engine.ts';
import { Forecasting } from '../../cycle/forecast/forecasting.ts';
import type { BoundAsks, Scene } from '../../policy/asks.ts';
import { newJob } from '../../cycle/admit/new-job.ts';
import { capacityLearner } from '../../stages/capacity-learner.ts';
import { priceDriftLearner } from '../../stages/price-drift-learner.ts';
import { composeLearners } from '../../cycle/learn/compose-learners.ts';
import { runtimeLearner } from '../../stages/estimate/runtime-learner.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { JobSpec } from '../../domain/job.ts';
import { FROM_HISTORY, type ChosenCapacity, type ChosenForecast } from '../../domain/forecast.ts';
import type { Limits } from '../../domain/snapshot.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import type { Stages } from '../../policy/contracts.ts';
import { capacityOf } from '../../market/capacity-truth.ts';
import type { MarketTrace } from '../../market/trace.ts';
import type { LearnerFactory, LearningEvent } from '../../policy/learner.ts';
import type { OwnInUse } from '../../policy/own/refusals.ts';
import type { Solver } from '../../policy/solver.ts';
import type { Market } from '../../ports/market.ts';
import type { EventRecord, Retention } from '../../ports/store.ts';
import { MemoryFleet } from './memory-fleet.ts';
import { MemoryStore } from './memory-store.ts';
import { Collector, type Settled } from './collector.ts';
import { ORACLE_FORECAST, withTrueInterruptions } from './true-interruptions.ts';
import type { OwnScaling } from '../../policy/services/own-scaling.ts';
import { SimServices } from './services/sim-services.ts';
import type { RequestFigures, SimulatedService } from './services/sim-traffic.ts';
import type { Interference } from './interference/interference.ts';
import { Truth, type TrueRuntime } from './truth.ts';
import type { WorkloadJob } from '../../workload/workload.ts';
import {
  COUNTED_PAST_END,
  TEXTS_KEPT,
  type CycleTotals,
  type EndReason,
  type Refusal,
  type RefusedPolicy,
} from '../../report/outcome.ts';

/** Deciders: the stages of a preset, and their forecast of the market. */
export interface Deciders {
  readonly name: string;
  readonly stages: Stages<Solver>;
  /** Policies of the user's own among them; absent: there are none. */
  readonly own?: OwnInUse<Solver>;
  /** Questions of its policies to forecasts; default: every bid that is tried. */
  readonly asks?: readonly BoundAsks[];
  /** Absent: forecasts from prices and interruptions so far. */
  readonly forecast?: (at: EpochMs) => MarketForecast;
}

export interface SimulationInput {
  readonly trace: MarketTrace;
  /** The public side of the same trace. */
  readonly market: (now: () => EpochMs) => Market;
  /** Market time at the workload's time 0, and at the latest end of the simulation. */
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  readonly jobs: AsyncIterable<WorkloadJob> | Iterable<WorkloadJob>;
  /** True if jobs may wait for earlier ones by name: those are then kept to the end. */
  readonly namesJobs: boolean;
  /** Made from the truth of this run, which only an oracle may read. */
  readonly deciders: (truth: Truth) => Deciders;
  /** Forecast of prices; absent: from history. Deciders with a forecast of their own ignore it. */
  readonly forecast?: ChosenForecast;
  /** Forecast of capacity; absent: from observed interruptions. */
  readonly capacity?: ChosenCapacity;
  /** Learners beside those of every driver. */
  readonly learners?: readonly LearnerFactory[];
  /** Told to learners before the first job, as if it had happened earlier; absent: nothing is known. */
  readonly earlier?: readonly LearningEvent[];
  readonly solver: Solver;
  readonly config: SchedulerConfig;
  readonly vcpus: number;
  readonly seed: number;
  /** Least time between two cycles: triggers within it become one. */
  readonly minGapS: Seconds;
  /** Set-up of each attempt before its work begins; no trace has it. */
  readonly setupS: Seconds;
  /** Megabytes of a task's memory that a move transfers per second. Absent: 160. */
  readonly migrationMBPerS?: number;
  /**
   * Running times by task, attempt, instance type and neighbours; absent: the workload's. An oracle knows the
   * workload's alone. Slow attempts for policies that copy tasks (stragglers.ts), and slow-downs by neighbours for
   * packers that place tasks by interference.
   */
  readonly runtime?: TrueRuntime | null;
  /** How tasks of one instance slow one another down, and what is measured of it; absent: not at all. */
  readonly interference?: Interference;
  /** Services, each with its requests; absent: none. They are deleted when their requests are over. */
  readonly services?: readonly SimulatedService[];
  /** Scaling policies of the user's own. */
  readonly scalings?: readonly OwnScaling[];
  /** Called for each admitted job, in the order of submission. */
  readonly onAdmitted?: (job: WorkloadJob) => void;
  readonly onEvent?: (event: EventRecord) => void;
  readonly onSettled?: (settled: Settled) => void;
  readonly onProgress?: (progress: Progress) => void;
  /** Ends the simulation early; the result covers the time simulated until then. */
  readonly signal?: AbortSignal;
}

export interface Progress {
  readonly nowMs: EpochMs;
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  /** Things that happened, submissions and cycles. */
  readonly steps: number;
  readonly submitted: number;
  /** Submitted or refused. */
  readonly arrived: number;
}

export interface SimulationResult {
  readonly ended: EndReason;
  readonly endMs: EpochMs;
  readonly collected: Collector;
  /** Store at the end of the simulation: unfinished entities, and those that ended in the last cycle. */
  readonly store: MemoryStore;
  readonly fleet: MemoryFleet;
  readonly refused: readonly Refusal[];
  readonly refusedPolicies: readonly RefusedPolicy[];
  /** Jobs of the workload whose submission lies past the end of the simulation, counted up to COUNTED_PAST_END. */
  readonly notSubmitted: number;
  readonly steps: number;
  readonly cycles: CycleTotals;
  readonly services: readonly RequestFigures[];
}

/** Instants between two calls of the progress listener: often enough to watch, seldom enough to cost nothing. */
const PROGRESS_INSTANTS = 32;
/** Records that a simulation itself reads again: the log of events goes to its listener. */
const RETENTION: Retention = { plans: 1, events: 1000, historyDays: null };
/** Fields of Date end here (ECMAScript, section "Time Values and Time Range"). */
const LAST_INSTANT_MS = 8.64e15;

/**
 * Runs to the end of the work, of the window, or until aborted. Throws EbbError `usage` for a window that cannot be.
 */
export async function simulate(input: SimulationInput): Promise<SimulationResult> {
  const simulation = new Simulation(input);
  return simulation.run();
}

/** A source of events. Within a source the sequence number decides: first scheduled, first served. */
interface Source {
  /** Order at one instant: instances and tasks, then submissions, then the cycle, which sees both. */
  readonly priority: 0 | 1 | 2;
  readonly nextMs: () => number;
  readonly happen: (nowMs: number) => Promise<void> | void;
}

/** Running time of a replica: until it is told to stop. */
const ENDLESS = new Map([['replica', { runtimeS: Float64Array.of(1e9) }]]);

/** Way to raise the vCPU limit of a simulation. */
export const SIMULATED_LIMIT = 'start `ebb simulate` with a higher --vcpus';

function throwFault(_learner: string, error: unknown): never {
  throw error;
}

/** The event order: time, priority, sequence. */
const inOrder = (a: Source, b: Source): number => compare(a.nextMs(), b.nextMs()) || a.priority - b.priority;

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

class Simulation {
  readonly #input: SimulationInput;
  readonly #clock: VirtualClock;
  readonly #store: MemoryStore;
  readonly #fleet: MemoryFleet;
  readonly #engine: Engine<Solver>;
  readonly #truth: Truth;
  readonly #ids: Uniform;
  readonly #admit: (spec: JobSpec, at: EpochMs) => ReturnType<ReturnType<typeof admitter>>;
  readonly #collector: Collector;
  readonly #refused: Refusal[] = [];
  readonly #refusedPolicies = new Map<string, RefusedPolicy>();
  readonly #refusedOf = new Map<string, number>();
  readonly #teach: (event: LearningEvent) => void;
  readonly #arrivals: Arrivals;
  readonly #sources: readonly Source[];
  readonly #services: SimServices;
  #nextCycleMs = Infinity;
  #lastCycleMs = -Infinity;
  #instants = 0;
  #submitted = 0;
  #cycles: CycleTotals = { count: 0, solved: 0, solverMs: 0 };

  constructor(input: SimulationInput) {
    expectWindow(input);
    const { config, seed } = input;
    this.#input = input;
    this.#clock = new VirtualClock(input.fromMs);
    this.#store = new MemoryStore(RETENTION, {
      ...(input.onEvent && { event: input.onEvent }),
      job: (job) => this.#collector.job(job),
      instance: (instance) => this.#collector.instance(instance),
    });
    this.#truth = truthOf(input);
    this.#fleet = new MemoryFleet({
      truth: this.#truth.capacity,
      clock: this.#clock,
      script: (request, keptS, pool) => this.#truth.script(request, keptS, pool),
    });
    const market = input.market(() => this.#clock.now());
    this.#collector = this.#collectorOf(market);
    // Beliefs are never stored: a fault ends the simulation, and the next one learns from its own runs.
    const learners = composeLearners({ isKept: false, ...(input.learners && { more: input.learners }) });
    this.#teach = (event) => learners.observe(event, throwFault);
    const learned = { evidence: learners.of(capacityLearner), drift: learners.of(priceDriftLearner) };
    const deciders = input.deciders(this.#truth);
    const forecasting = new Forecasting({
      chosen: input.forecast ?? FROM_HISTORY,
      config,
      ...(deciders.asks && { asks: deciders.asks }),
      ...(input.capacity && { capacity: input.capacity }),
    });
    const forecast = async (scene: Scene): Promise<MarketForecast> => {
      if (deciders.forecast !== undefined) return deciders.forecast(scene.nowMs);
      return this.#inTruth(await forecasting.of(scene, { market, ...learned }), scene.nowMs);
    };
    const limits: Limits = { vcpus: input.vcpus, raisedBy: SIMULATED_LIMIT };
    this.#engine = new Engine<Solver>({
      store: this.#store,
      fleet: this.#fleet,
      market,
      clock: this.#clock,
      random: randomStream(seed, 'plans'),
      solver: input.solver,
      stages: deciders.stages,
      ...(deciders.own && { own: deciders.own }),
      preset: deciders.name,
      config,
      limits,
      learners,
      forecast,
      // Explanations of a simulated instant are never read.
      explains: false,
      holder: 'simulation',
      minGapS: input.minGapS,
      onCycle: (report) => this.#count(report),
    });
    this.#ids = randomStream(seed, 'ids');
    this.#admit = admitter({ pools: market.pools(), limits, config, history: learners.of(runtimeLearner) });
    this.#arrivals = new Arrivals(input.jobs, input.fromMs);
    this.#services = this.#servicesOf(input);
    this.#sources = this.#happenings();
  }

  /** Where interruptions are to be known, the forecast with the true ones. */
  #inTruth(made: MarketForecast, nowMs: EpochMs): MarketForecast {
    const { chosen } = this.#input.forecast ?? FROM_HISTORY;
    return chosen === ORACLE_FORECAST.chosen ? withTrueInterruptions(made, this.#truth.capacity, nowMs) : made;
  }

  #servicesOf({ services = [], scalings = [], fromMs, seed }: SimulationInput): SimServices {
    return new SimServices({
      services,
      scalings,
      store: this.#store,
      clock: this.#clock,
      fromMs,
      seed,
      onReplica: (id, spec) => this.#truth.add(id, ENDLESS, spec),
      wake: () => this.#trigger(raw(this.#clock.now())),
    });
  }

  #collectorOf(market: Market): Collector {
    return new Collector({
      store: this.#store,
      fleet: this.#fleet,
      pools: market.pools(),
      namesJobs: this.#input.namesJobs,
      onForget: (job) => {
        this.#truth.forget(job);
        this.#fleet.forgetTasks(job);
      },
      ...(this.#input.onSettled && { onSettled: this.#input.onSettled }),
    });
  }

  #happenings(): readonly Source[] {
    return [
      {
        // Events of instances and tasks.
        priority: 0,
        nextMs: () => raw(this.#fleet.nextMs() ?? epochMs(Infinity)),
        happen: (nowMs) => {
          // The controller of services sees what the engine has recorded.
          if (this.#fleet.catchUp() || this.#services.nextMs < Infinity) this.#trigger(nowMs);
        },
      },
      {
        priority: 1,
        nextMs: () => this.#arrivals.nextMs,
        happen: async (nowMs) => {
          await this.#submitDue(nowMs);
          this.#trigger(nowMs);
        },
      },
      { priority: 1, nextMs: () => this.#services.nextMs, happen: (nowMs) => this.#services.happen(nowMs) },
      { priority: 2, nextMs: () => this.#nextCycleMs, happen: (nowMs) => this.#cycle(nowMs) },
    ];
  }

  async run(): Promise<SimulationResult> {
    await this.#engine.start();
    for (const event of this.#input.earlier ?? []) this.#teach(event);
    await this.#arrivals.start();
    await this.#services.start();
    const ended = await this.#steppedToEnd();
    const notSubmitted = ended === 'time-over' ? await this.#arrivals.countRemaining(COUNTED_PAST_END) : 0;
    await this.#arrivals.close();
    await this.#collector.finish(this.#clock.now());
    return {
      ended,
      endMs: this.#clock.now(),
      collected: this.#collector,
      store: this.#store,
      fleet: this.#fleet,
      refused: this.#refused,
      refusedPolicies: [...this.#refusedPolicies.values()],
      notSubmitted,
      steps: this.#steps,
      cycles: this.#cycles,
      services: this.#services.figures,
    };
  }

  async #steppedToEnd(): Promise<EndReason> {
    const { signal, toMs } = this.#input;
    for (;;) {
      if (signal?.aborted === true) return 'aborted';
      // Without jobs and instances no cycle is due, and the remaining events of the fleet are void.
      const isOver = this.#arrivals.nextMs === Infinity && this.#services.nextMs === Infinity;
      if (isOver && this.#nextCycleMs === Infinity) return 'done';
      const next = this.#sources.reduce((a, b) => (inOrder(a, b) <= 0 ? a : b));
      const nextMs = next.nextMs();
      if (nextMs > raw(toMs)) {
        await this.#clock.advanceTo(toMs);
        return 'time-over';
      }
      if (nextMs > raw(this.#clock.now())) {
        await this.#clock.advanceTo(epochMs(nextMs));
        if (++this.#instants % PROGRESS_INSTANTS === 0) await this.#report();
      }
      await next.happen(nextMs);
    }
  }

  get #steps(): number {
    return this.#fleet.happened + this.#submitted + this.#cycles.count;
  }

  #trigger(nowMs: number): void {
    this.#nextCycleMs = Math.min(
      this.#nextCycleMs,
      Math.max(nowMs, this.#lastCycleMs + raw(this.#input.minGapS) * 1000),
    );
  }

  async #cycle(nowMs: number): Promise<void> {
    const waitS = await this.#engine.cycle();
    await this.#collector.fold();
    this.#lastCycleMs = nowMs;
    this.#nextCycleMs = waitS === null ? Infinity : nowMs + raw(most(waitS, this.#input.minGapS)) * 1000;
    if (this.#fleet.takeUntold()) this.#trigger(nowMs);
  }

  async #submitDue(nowMs: number): Promise<void> {
    while (this.#arrivals.nextMs <= nowMs) await this.#submit(await this.#arrivals.take());
  }

  async #submit(submitted: WorkloadJob): Promise<void> {
    const { key, spec, truth } = submitted;
    const at = this.#clock.now();
    try {
      const after = await this.#dependencies(spec);
      const admission = this.#admit(spec, at);
      const job = newJob(spec, { id: jobId(`j-${timeOrderedText(at, this.#ids)}`), at, after, admission });
      this.#truth.add(job.id, truth, spec);
      this.#collector.rows.name(job.id, key);
      this.#submitted++;
      this.#input.onAdmitted?.(submitted);
      await this.#store.submit([{ job, idempotency: null }]);
    } catch (error) {
      if (!(error instanceof EbbError) || error.code === 'internal') throw error;
      const before = this.#refusedOf.get(error.code) ?? 0;
      this.#refusedOf.set(error.code, before + 1);
      this.#refused.push({
        key,
        code: error.code,
        what: before < TEXTS_KEPT ? error.message : '',
        next: error.facts.next ?? '',
      });
    }
  }

  async #dependencies(spec: JobSpec): Promise<readonly JobId[]> {
    if (spec.after.length === 0) return [];
    const found = await this.#store.findJobs(spec.after);
    const missing = spec.after.filter((ref) => !found.has(ref));
    if (missing.length === 0) return [...found.values()].map((j) => j.id);
    throw new EbbError('job-file.dependency', {
      what: 'the job depends on a job that was not submitted before it, or was refused',
      got: missing.slice(0, 5).join(', '),
    });
  }

  #count({ plan }: CycleReport): void {
    const asked = plan !== null && plan.solve.elapsedMs > 0;
    for (const { stage, policy, why, standIn } of plan?.refusedPolicies ?? []) {
      const key = `${stage} ${policy}`;
      const { times = 0, firstWhy = why } = this.#refusedPolicies.get(key) ?? {};
      this.#refusedPolicies.set(key, { stage, policy, standIn, firstWhy, times: times + 1 });
    }
    this.#cycles = {
      count: this.#cycles.count + 1,
      solved: this.#cycles.solved + Number(asked),
      solverMs: this.#cycles.solverMs + (plan?.solve.elapsedMs ?? 0),
    };
  }

  /** Yields to the event loop, so that signals and messages of the thread are seen. */
  async #report(): Promise<void> {
    const { onProgress, fromMs, toMs } = this.#input;
    const [submitted, steps] = [this.#submitted, this.#steps];
    const arrived = submitted + this.#refused.length;
    onProgress?.({ nowMs: this.#clock.now(), fromMs, toMs, steps, submitted, arrived });
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** The workload one job ahead: the next job and its time. */
class Arrivals {
  readonly #jobs: AsyncIterator<WorkloadJob> | Iterator<WorkloadJob>;
  readonly #fromMs: number;
  #next: WorkloadJob | null = null;
  nextMs = Infinity;

  constructor(jobs: AsyncIterable<WorkloadJob> | Iterable<WorkloadJob>, fromMs: EpochMs) {
    this.#jobs = Symbol.asyncIterator in jobs ? jobs[Symbol.asyncIterator]() : jobs[Symbol.iterator]();
    this.#fromMs = raw(fromMs);
  }

  async start(): Promise<void> {
    const read: IteratorResult<WorkloadJob, unknown> = await this.#jobs.next();
    this.#next = read.done === true ? null : read.value;
    // A time too large for a number of milliseconds is still a time: only the end of the workload is never.
    this.nextMs =
      this.#next === null ? Infinity : Math.min(this.#fromMs + this.#next.submittedS * 1000, Number.MAX_VALUE);
  }

  /** The one that is due; reads the one after it. */
  async take(): Promise<WorkloadJob> {
    const taken = this.#next;
    if (taken === null) throw new RangeError('no job is due');
    await this.start();
    return taken;
  }

  /** Reads on, to the end or to `most` jobs. */
  async countRemaining(most: number): Promise<number> {
    let count = 0;
    while (this.#next !== null && count < most) {
      count++;
      await this.start();
    }
    return count;
  }

  async close(): Promise<void> {
    await this.#jobs.return?.();
  }
}

const truthOf = ({ trace, config, setupS, migrationMBPerS, runtime, interference }: SimulationInput): Truth =>
  new Truth(
    {
      trace,
      capacity: capacityOf(trace, config),
      setupS,
      migrationMBPerS,
      preemptionDelayS: seconds(config.preemptionDelayS),
      interference,
    },
    runtime,
  );

function expectWindow({ fromMs, toMs, trace }: SimulationInput): void {
  const iso = (t: EpochMs): string => (Math.abs(raw(t)) <= LAST_INSTANT_MS ? isoOf(t) : `${raw(t)} ms`);
  const within = gte(fromMs, trace.startMs) && lt(fromMs, trace.endMs);
  if (within && lte(toMs, fromMs)) {
    throw new EbbError('usage', {
      what: 'the simulation ends before it begins',
      got: `${iso(fromMs)} to ${iso(toMs)}`,
      allowed: `an end after the beginning; the market ends at ${iso(trace.endMs)}`,
      next: 'choose --to after --from; without --from it begins after a week or more of prices',
    });
  }
  if (within && Math.abs(raw(toMs)) <= LAST_INSTANT_MS) return;
  throw new EbbError('usage', {
    what: 'the simulation and the market do not overlap in time',
    got: `${iso(fromMs)} to ${iso(toMs)}`,
    allowed: `a time within ${iso(trace.startMs)} to ${iso(trace.endMs)}`,
    next: 'choose --from and --to within the market',
  });
}
