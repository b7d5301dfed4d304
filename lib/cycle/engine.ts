import { EbbError, invariant } from '../kernel/errors.ts';
import { planId, type InstanceId, type JobId, type PoolId } from '../kernel/ids.ts';
import type { Clock } from '../kernel/clock.ts';
import { timeOrderedText } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import { between, gte, raw, seconds, type EpochMs, type Seconds, type Usd } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Instance } from '../domain/instance.ts';
import { isOver, type Job, type JobState } from '../domain/job.ts';
import type { Effect, Plan, SolveReport } from '../domain/plan.ts';
import type { Pool, PoolView } from '../domain/pool.ts';
import type { Limits, Snapshot } from '../domain/snapshot.ts';
import type { JobFeatures, MarketForecast, RuntimeHistory, Stages } from '../domain/stages.ts';
import { featuresOf } from '../estimate/template.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Market } from '../ports/market.ts';
import type { Store } from '../ports/store.ts';
import { act } from './act.ts';
import { decide, nextDecisionS } from './decide.ts';
import { drainEffects } from './drain.ts';
import { endingsOf, giveUp } from './endings.ts';
import { confirm, recordIntents, REST_PREFIX, settleAll, type PoolRest, type PoolRests } from './intents.ts';
import { attribute } from './ledger.ts';
import { applyObservations } from './observe.ts';
import type { RunningOffers } from './running-offers.ts';
import { takeSnapshot } from './snapshot.ts';
import { Spending, type Prices } from './spending.ts';
import { WorkingState } from './working-state.ts';

/** What is learned and must survive, as rows of the store's memory. */
export interface Remembering {
  /** Rows changed since the last call. */
  takeDirty(): ReadonlyMap<string, string>;
  /** Replaces all that is remembered, stored or not, by these rows. */
  restore(rows: ReadonlyMap<string, string>): void;
  /** Key prefix of its rows. */
  readonly prefix: string;
}
export interface LearningHistory extends RuntimeHistory, Remembering {
  learn(features: JobFeatures, runtimeS: Seconds): void;
}
/** Evidence about how often the market takes capacity back for its own reasons. */
export interface CapacityLearning extends Remembering {
  observe(pool: PoolId, exposureS: Seconds, interruptions: number): void;
}

export interface EngineParts<S> {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly market: Market;
  readonly clock: Clock;
  readonly random: Uniform;
  readonly solver: S;
  readonly stages: Stages<S>;
  readonly preset: string;
  readonly config: SchedulerConfig;
  readonly limits: Limits;
  readonly history: LearningHistory;
  readonly capacity: CapacityLearning;
  readonly forecast: (at: EpochMs) => MarketForecast;
  /** Names this engine in the lease. */
  readonly holder: string;
  /** Least engine time between two cycles: triggers within it become one. */
  readonly minGapS: Seconds;
  /** Told of each finished cycle. */
  readonly onCycle?: (report: CycleReport) => void;
  /** Told of a cycle that failed and will be tried again. */
  readonly onFault?: (error: unknown) => void;
}

export interface CycleReport {
  readonly atMs: EpochMs;
  readonly plan: Plan | null;
  readonly idle: boolean;
  /** Instances and attempts that have not ended. */
  readonly live: number;
}

/** Cycles that may fail in a row before the engine gives up: faults of the world pass, broken invariants do not. */
const MAX_FAULTS = 5;
const NO_SOLVE: SolveReport = {
  used: 'greedy',
  status: 'not-needed',
  objective: 0,
  greedyObjective: 0,
  bound: null,
  boundKind: null,
  gap: null,
  gapOfCost: null,
  variables: 0,
  constraints: 0,
  elapsedMs: 0,
};

/**
 * The scheduling engine: load, observe, decide, record intents, act, confirm; over and over, one cycle at a time.
 *
 * Lifecycle: `start` takes the lease (older engines are fenced off) and what was learned; `cycle` is one round; `run`
 * repeats it when woken, when the period is over, and when a pause ends. With nothing to do it waits without a timer.
 * Invariants: nothing is done to the world that is not recorded as an intent first; what is recorded is done under its
 * key until an outcome is confirmed. What is learned counts once: a cycle that did not come to its end may have learned
 * what no commit holds (or whose commit holds and was not answered), so the next one first recalls what is stored.
 * Crash points: after any store or fleet call. The next `start` finds intents without outcome and does them again.
 */
export class Engine<S> {
  readonly #parts: EngineParts<S>;
  readonly #pools: ReadonlyMap<PoolId, Pool>;
  readonly #rests: PoolRests = new Map();
  readonly #finishedJobs = new Map<JobId, JobState>();
  readonly #spending = new Spending();
  /** For explanations alone: nothing is decided by it. */
  #runningOffers: RunningOffers = new Map();
  #token = 0;
  #draining = false;
  #stopped = false;
  #wakeUp: (() => void) | null = null;
  #woken = false;
  #lastCycleMs: EpochMs | null = null;
  /** Whether memory may differ from what the store holds: a cycle is under way or ended with an error. */
  #inDoubt = false;

  constructor(parts: EngineParts<S>) {
    this.#parts = parts;
    this.#pools = new Map(parts.market.pools().map((p) => [p.id, p]));
  }

  get lastCycleMs(): EpochMs | null {
    return this.#lastCycleMs;
  }

  async start(): Promise<void> {
    this.#token = await this.#parts.store.takeLease(this.#parts.holder);
    await this.#recall();
    await this.#reconcile();
  }

  /** Takes what was learned, and which pools rest, from the store alone. */
  async #recall(): Promise<void> {
    const { store, history, capacity } = this.#parts;
    history.restore(await store.memory(history.prefix));
    capacity.restore(await store.memory(capacity.prefix));
    this.#rests.clear();
    for (const [key, value] of await store.memory(REST_PREFIX)) {
      if (value !== '') this.#rests.set(key.slice(REST_PREFIX.length) as PoolId, JSON.parse(value) as PoolRest);
    }
    this.#finishedJobs.clear();
    this.#spending.forget();
  }

  /** There may be something to do. */
  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Repeats cycles until `stop`, or rejects when it may not or cannot go on. */
  async run(): Promise<void> {
    const unsubscribe = this.#parts.fleet.onChange(() => this.wake());
    let faults = 0;
    try {
      while (!this.#stopped) {
        this.#woken = false;
        let waitS: Seconds | null = this.#parts.minGapS;
        try {
          waitS = await this.cycle();
          faults = 0;
        } catch (error) {
          faults += 1;
          this.#parts.onFault?.(error);
          if (faults >= MAX_FAULTS || (error instanceof EbbError && !error.retryable) || isFenced(error)) throw error;
          waitS = seconds(raw(this.#parts.minGapS) * 2 ** faults);
        }
        await this.#waitForTrigger(waitS);
      }
    } finally {
      unsubscribe();
    }
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** From now on nothing starts: tasks are asked to checkpoint and stop, instances are given back. */
  drain(): void {
    this.#draining = true;
    this.wake();
  }

  /** One round. Returns how long to wait for the next one unless woken; null when there is nothing to wait for. */
  async cycle(): Promise<Seconds | null> {
    if (this.#inDoubt) await this.#recall();
    this.#inDoubt = true;
    const waitS = await this.#round();
    this.#inDoubt = false;
    return waitS;
  }

  async #round(): Promise<Seconds | null> {
    const { store, clock, config } = this.#parts;
    const state = new WorkingState(await store.loadActive());
    await this.#observe(state);
    await this.#perform(state, state.openEffects);
    const at = clock.now();
    settleAll(state, at);
    if (state.activeJobs().length === 0 && state.liveInstances().length === 0) {
      await this.#commit(state);
      this.#done({ atMs: at, plan: null, idle: true, live: 0 });
      return null;
    }
    const snapshot = await this.#snapshot(state);
    const plan = await this.#decide(state, snapshot);
    const records = recordIntents(state, plan);
    await this.#commit(state);
    await this.#perform(state, records);
    this.#done({ atMs: at, plan, idle: false, live: state.liveInstances().length + state.liveAttempts().length });
    return nextDecisionS(snapshot, config);
  }

  async #decide(state: WorkingState, snapshot: Snapshot): Promise<Plan> {
    const { stages, preset, solver, config, history, random, forecast } = this.#parts;
    const id = planId(`p-${timeOrderedText(raw(snapshot.nowMs), random)}`);
    const shell = { id, token: this.#token, atMs: snapshot.nowMs, preset, explanations: [], solve: NO_SOLVE };
    if (this.#draining) return { ...shell, effects: drainEffects(snapshot, id) };
    // Nothing waits and nothing runs: give back what is left without asking the other stages.
    if (snapshot.groups.length === 0 && snapshot.running.length === 0 && snapshot.jobs.size === 0) {
      return { ...shell, effects: drainEffects(snapshot, id) };
    }
    const market = forecast(snapshot.nowMs);
    const attemptsOf = (t: { job: string; stage: string; index: number }): number =>
      state.tasks.get(`${t.job}/${t.stage}/${t.index}`)?.attempts ?? 0;
    const decided = await decide({
      snapshot,
      history,
      market,
      stages,
      preset,
      solver,
      config,
      plan: id,
      token: this.#token,
      attemptsOf,
      knownOffers: this.#runningOffers,
    });
    this.#runningOffers = decided.deliberation.runningOffers;
    const lastRanMs = (job: JobId): EpochMs | null => this.#spending.lastEndMs(job);
    giveUp(state, endingsOf(decided.deliberation, { config, lastRanMs }), snapshot.nowMs);
    return decided.plan;
  }

  /** Does the effects and confirms; effects that failed stay open for the next cycle. */
  async #perform(state: WorkingState, records: WorkingState['openEffects']): Promise<void> {
    if (records.length === 0) return;
    const outcomes = await act(this.#parts.fleet, state, records);
    confirm(state, outcomes, { records, at: this.#parts.clock.now(), rests: this.#rests });
    await this.#commit(state);
  }

  /** Takes in what happened, settles bills of ended instances, learns. Committed together with the cursors. */
  async #observe(state: WorkingState): Promise<void> {
    const { fleet, history } = this.#parts;
    const observed = applyObservations(state, await fleet.observe(state.cursors));
    for (const { job, stage, runtimeS } of observed.completions)
      history.learn(featuresOf(job.spec, stage, job.submittedMs), runtimeS);
    const unsettled = [...state.instances.values()]
      .filter((i) => i.state === 'ended' && i.costUsd === null)
      .map((i) => i.id);
    for (const id of new Set([...observed.ended, ...unsettled])) await this.#settle(state, id);
    this.#remember(state);
    await this.#commit(state);
  }

  async #settle(state: WorkingState, id: InstanceId): Promise<void> {
    const { fleet, store, capacity } = this.#parts;
    const instance = invariant(state.instances.get(id), `instance ${id} ended and is not known`);
    const endedMs = instance.endedMs ?? this.#parts.clock.now();
    const pool = this.#pool(instance);
    const bill = await fleet.bill(id, endedMs);
    const attempts = new Map((await store.attemptsOn(id)).map((a) => [a.id, a]));
    for (const a of state.attempts.values()) if (a.instance === id) attempts.set(a.id, a);
    const jobs = await this.#jobsOf(
      state,
      [...attempts.values()].map((a) => a.job),
    );
    const rows = attribute({ instance, pool, bill, attempts: [...attempts.values()], jobs, until: endedMs });
    state.putLedger(id, rows);
    this.#spending.settled(rows);
    state.putInstance({ ...instance, costUsd: bill.totalUsd });
    if (pool.option === 'spot' && instance.launchedMs !== null) {
      capacity.observe(pool.id, between(instance.launchedMs, endedMs), this.#takenForCapacity(instance) ? 1 : 0);
    }
  }

  /** An interruption while the price was still within the bid was about capacity, not price. */
  #takenForCapacity(instance: Instance): boolean {
    if (instance.endCause !== 'interrupted') return false;
    const at = instance.warnedMs ?? instance.endedMs;
    const quote = at === null ? null : this.#parts.market.quote(instance.pool, at);
    return instance.bid === 'uncapped' || quote === null || raw(quote) <= raw(instance.bid);
  }

  async #jobsOf(state: WorkingState, ids: readonly JobId[]): Promise<Map<string, Job>> {
    const jobs = new Map<string, Job>();
    for (const id of new Set(ids)) {
      const job = state.jobs.get(id) ?? (await this.#parts.store.job(id));
      if (job !== null) jobs.set(id, job);
    }
    return jobs;
  }

  #remember(state: WorkingState): void {
    for (const part of [this.#parts.history, this.#parts.capacity]) {
      for (const [key, value] of part.takeDirty()) state.putMemory(key, value);
    }
  }

  async #snapshot(state: WorkingState): Promise<Snapshot> {
    const nowMs = this.#parts.clock.now();
    const spentUsd = await this.#enforceBudgets(state, nowMs);
    return takeSnapshot({
      state,
      nowMs,
      pools: this.#poolViews(nowMs),
      poolById: this.#pools,
      dependencies: await this.#dependencies(state),
      spentUsd,
      limits: this.#parts.limits,
    });
  }

  #poolViews(nowMs: EpochMs): PoolView[] {
    const { market } = this.#parts;
    return [...this.#pools.values()].map((pool) => {
      const rest = this.#rests.get(pool.id);
      const resting = rest !== undefined && rest.untilMs > raw(nowMs);
      return {
        pool,
        quote: market.quote(pool.id, nowMs),
        open: !resting,
        closedReason: resting
          ? `rests until ${new Date(rest.untilMs).toISOString()} after ${rest.refusals} refusal(s)`
          : null,
      };
    });
  }

  /** States of jobs that active ones wait for. A job that depended on a failed one cannot start any more: it fails. */
  async #dependencies(state: WorkingState): Promise<Map<JobId, JobState>> {
    const states = new Map<JobId, JobState>();
    for (const job of state.activeJobs()) {
      for (const id of job.after) {
        const known =
          state.jobs.get(id)?.state ?? this.#finishedJobs.get(id) ?? (await this.#parts.store.job(id))?.state;
        if (known === undefined) continue;
        states.set(id, known);
        if (!isOver(known)) continue;
        this.#finishedJobs.set(id, known);
        if (known !== 'succeeded' && job.stateReason === null) {
          state.putJob({
            ...job,
            stateReason: `it depends on job ${id}, which ${known === 'failed' ? 'failed' : 'was cancelled'}`,
          });
        }
      }
    }
    return states;
  }

  /** Spending of jobs with a budget, accrued to now; a job that has used its budget up is brought to its end. */
  async #enforceBudgets(state: WorkingState, nowMs: EpochMs): Promise<ReadonlyMap<JobId, Usd>> {
    await this.#spending.update(state, this.#parts.store);
    const prices: Prices = { nowMs, pools: this.#pools, quote: (pool, at) => this.#parts.market.quote(pool, at) };
    const spent = new Map<JobId, Usd>();
    for (const job of state.activeJobs()) {
      const { maxCostUsd } = job.spec;
      if (maxCostUsd === null) continue;
      const total = this.#spending.spentUsd(job, state, prices);
      spent.set(job.id, total);
      if (gte(total, maxCostUsd) && job.stateReason === null) {
        state.putJob({ ...job, stateReason: `its budget of ${raw(maxCostUsd)} USD is used up (maxCost)` });
      }
    }
    return spent;
  }

  /** Instances the provider has and the store does not know of: given back, never ignored. */
  async #reconcile(): Promise<void> {
    const { fleet, store } = this.#parts;
    const known = new Set((await store.loadActive()).instances.map((i) => i.id));
    const unknown = (await fleet.list()).filter((i) => i.live && !known.has(i.instance));
    if (unknown.length === 0) return;
    await fleet.release(unknown.map((i) => ({ key: releaseKey(i.instance), instance: i.instance })));
  }

  async #commit(state: WorkingState): Promise<void> {
    const changes = state.takeChanges();
    if (changes.length > 0) await this.#parts.store.commit(this.#token, changes);
  }

  #pool(instance: Instance): Pool {
    return invariant(this.#pools.get(instance.pool), `instance ${instance.id} is in unknown pool ${instance.pool}`);
  }

  #done(report: CycleReport): void {
    this.#lastCycleMs = report.atMs;
    this.#parts.onCycle?.(report);
  }

  /** At least the least gap, then until woken, or until `waitS` of engine time has passed (null: only until woken). */
  async #waitForTrigger(waitS: Seconds | null): Promise<void> {
    if (this.#stopped) return;
    await this.#parts.clock.sleep(this.#parts.minGapS);
    if (this.#woken) return;
    const woken = new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    const timer = new AbortController();
    await (waitS === null ? woken : Promise.race([woken, this.#parts.clock.sleep(waitS, timer.signal)]));
    timer.abort();
    this.#wakeUp = null;
  }
}

const isFenced = (error: unknown): boolean => error instanceof EbbError && error.code === 'fenced';
const releaseKey = (id: InstanceId) => `release/${id}` as Extract<Effect, { kind: 'release' }>['key'];
