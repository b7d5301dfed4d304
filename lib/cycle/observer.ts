/**
 * What a cycle begins with: takes in what happened to instances and attempts, settles the bills of those that ended, learns, and
 * takes one consistent picture of it all.
 *
 * Lifecycle: `recall` first, then per cycle `observe` (to be committed by the caller) and `snapshot`. Between cycles it
 * remembers what it may as well read again (`Remembered`).
 */
import { invariant } from '../kernel/errors.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Clock } from '../kernel/clock.ts';
import type { InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import { epochMs, gte, raw, type EpochMs, type Seconds, type Usd } from '../kernel/units.ts';
import type { Instance, MarketCause } from '../domain/instance.ts';
import { isOver, type Attempt, type Job, type JobState } from '../domain/job.ts';
import type { Pool, PoolView } from '../domain/pool.ts';
import { quotaOf } from '../domain/quota.ts';
import type { Limits, Snapshot } from '../domain/snapshot.ts';
import type { JobFeatures, RuntimeHistory } from '../domain/stages.ts';
import { featuresOf } from '../estimate/template.ts';
import type { EndedInstance } from '../market/forecast/hazard.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Market } from '../ports/market.ts';
import type { Store } from '../ports/store.ts';
import { attribute } from './ledger.ts';
import { applyObservations } from './observe.ts';
import { Remembered } from './remembered.ts';
import { boundQuotas, endQuotaRest, quotaUses, restingAt, restOf, storedRests, type PoolRests } from './rests.ts';
import { takeSnapshot } from './snapshot.ts';
import type { Prices } from './spending.ts';
import type { WorkingState } from './working-state.ts';

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
  /** A spot instance has ended. */
  ended(pool: PoolId, instance: EndedInstance): void;
  /** A launch was refused for want of capacity. */
  refused(pool: PoolId, at: EpochMs): void;
}

export interface ObserverParts {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly market: Market;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly config: Pick<SchedulerConfig, 'restoreS'>;
  readonly history: LearningHistory;
  readonly capacity: CapacityLearning;
  /** Of an observer before this one; absent: nothing is. */
  readonly remembered?: Remembered;
}

export class Observer {
  readonly #parts: ObserverParts;
  readonly #pools: ReadonlyMap<PoolId, Pool>;
  readonly #remembered: Remembered;
  #rests: PoolRests = new Map();

  constructor(parts: ObserverParts) {
    this.#parts = parts;
    this.#pools = new Map(parts.market.pools().map((p) => [p.id, p]));
    this.#remembered = parts.remembered ?? new Remembered();
  }

  /** What rests; confirming outcomes changes it. */
  get rests(): PoolRests {
    return this.#rests;
  }

  /** Takes what was learned, and which pools rest, from the store alone, and whatever else it remembers unless told that that holds. */
  async recall(what: 'all' | 'learned' = 'all'): Promise<void> {
    const { store, history, capacity } = this.#parts;
    history.restore(await store.memory(history.prefix));
    capacity.restore(await store.memory(capacity.prefix));
    this.#rests = await storedRests(store);
    if (what === 'all') this.#remembered.forget();
  }

  /** Takes in what happened, settles bills of ended instances, learns. To be committed in one piece: cursors are part of it. */
  async observe(state: WorkingState): Promise<void> {
    const { fleet, history } = this.#parts;
    const observed = applyObservations(state, await fleet.observe(state.cursors));
    for (const { job, stage, runtimeS } of observed.completions)
      history.learn(featuresOf(job.spec, stage, job.submittedMs), runtimeS);
    const unsettled = new Set<InstanceId>(observed.ended);
    for (const id of state.endedInstances) if (state.instances.get(id)?.costUsd === null) unsettled.add(id);
    for (const id of unsettled) await this.#settle(state, id);
    boundQuotas(state, { rests: this.#rests, pools: this.#pools, at: this.#parts.clock.now() });
    for (const part of [this.#parts.history, this.#parts.capacity]) {
      for (const [key, value] of part.takeDirty()) state.putMemory(key, value);
    }
  }

  /** One picture of now. Jobs whose budget is used up, or whose dependency failed, are marked to be brought to their end. */
  async snapshot(state: WorkingState): Promise<Snapshot> {
    const nowMs = this.#parts.clock.now();
    const spentUsd = await this.#enforceBudgets(state, nowMs);
    return takeSnapshot({
      state,
      nowMs,
      pools: this.#poolViews(state, nowMs),
      poolById: this.#pools,
      dependencies: await this.#dependencies(state),
      spentUsd,
      limits: this.#parts.limits,
      restoreS: this.#parts.config.restoreS,
    });
  }

  /** When the last attempt ended of each job that has a budget. */
  lastRanMs(snapshot: Snapshot): ReadonlyMap<JobId, EpochMs> {
    return new Map(
      [...snapshot.jobs.keys()].flatMap((job) => {
        const ended = this.#remembered.spending.lastEndMs(job);
        return ended === null ? [] : [[job, ended] as const];
      }),
    );
  }

  async #settle(state: WorkingState, id: InstanceId): Promise<void> {
    const { fleet, store, capacity } = this.#parts;
    const instance = invariant(state.instances.get(id), `instance ${id} ended and is not known`);
    const endedMs = instance.endedMs ?? this.#parts.clock.now();
    const pool = this.#pool(instance);
    const bill = await fleet.bill(id, endedMs);
    const attempts = latestOf(await store.attemptsOn(id), state.attemptsOn(id));
    const jobs = await this.#jobsOf(state, new Set(attempts.map((a) => a.job)));
    const rows = attribute({ instance, pool, bill, attempts, jobs, until: endedMs });
    state.putLedger(id, rows);
    this.#remembered.spending.settled(rows);
    const marketCause = this.#marketCause(instance);
    state.putInstance({ ...instance, costUsd: bill.totalUsd, ...(marketCause === null ? {} : { marketCause }) });
    // One that was given back without having run anything went for want of another beside it: that would be refused again.
    if (attempts.some((a) => a.startedMs !== null)) endQuotaRest(state, pool.id, this.#rests);
    if (pool.option === 'spot' && instance.launchedMs !== null) {
      const takenMs = marketCause === 'capacity' ? (instance.warnedMs ?? endedMs) : null;
      capacity.ended(pool.id, { launchedMs: instance.launchedMs, endedMs, takenMs });
    }
  }

  /** An interruption while the price was still within the bid was about capacity, not price. Null: it was none. */
  #marketCause(instance: Instance): MarketCause | null {
    if (instance.endCause !== 'interrupted') return null;
    const at = instance.warnedMs ?? instance.endedMs;
    const quote = at === null ? null : this.#parts.market.quote(instance.pool, at);
    const isWithin = instance.bid === 'uncapped' || quote === null || raw(quote) <= raw(instance.bid);
    return isWithin ? 'capacity' : 'price';
  }

  async #jobsOf(state: WorkingState, ids: ReadonlySet<JobId>): Promise<Map<string, Job>> {
    const over = [...ids].filter((id) => !state.jobs.has(id));
    const jobs = new Map<string, Job>(over.length === 0 ? [] : await this.#parts.store.findJobs(over));
    for (const id of ids) {
      const job = state.jobs.get(id);
      if (job !== undefined) jobs.set(id, job);
    }
    return jobs;
  }

  #poolViews(state: WorkingState, nowMs: EpochMs): PoolView[] {
    const { market } = this.#parts;
    const uses = quotaUses(state, { rests: this.#rests, pools: this.#pools, at: nowMs });
    const resting = restingAt(this.#rests, nowMs);
    return [...this.#pools.values()].map((pool) => {
      const rest = resting.size === 0 ? null : restOf(resting, pool.id, nowMs);
      const quota = uses.size === 0 ? undefined : uses.get(quotaOf(pool.id));
      return {
        pool,
        quote: market.quote(pool.id, nowMs),
        open: rest === null,
        closedReason: rest?.why ?? null,
        ...(rest === null ? {} : { rest: { untilMs: epochMs(rest.untilMs), refusals: rest.refusals } }),
        ...(quota === undefined ? {} : { quota }),
      };
    });
  }

  /** States of jobs that active ones wait for. A job that depended on a failed one cannot start any more: it fails. */
  async #dependencies(state: WorkingState): Promise<Map<JobId, JobState>> {
    const states = new Map<JobId, JobState>();
    const active = state.activeJobs();
    const { finishedJobs } = this.#remembered;
    const read = await this.#readEnds(new Set(active.flatMap((job) => job.after)), state);
    for (const job of active) {
      for (const id of job.after) {
        const known = state.jobs.get(id)?.state ?? finishedJobs.get(id) ?? read.get(id)?.state;
        if (known === undefined) continue;
        states.set(id, known);
        if (!isOver(known)) continue;
        finishedJobs.set(id, known);
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

  /** Jobs that others wait for, and that are neither active nor known to be over. */
  async #readEnds(waitedFor: ReadonlySet<JobId>, { jobs }: WorkingState): Promise<ReadonlyMap<string, Job>> {
    const { finishedJobs } = this.#remembered;
    for (const id of finishedJobs.keys()) if (!waitedFor.has(id)) finishedJobs.delete(id);
    const unknown = [...waitedFor].filter((id) => !jobs.has(id) && !finishedJobs.has(id));
    const found = unknown.length === 0 ? [] : await this.#parts.store.findJobs(unknown);
    // Where there is none of the id, one of that name is found, which is another.
    return new Map([...found].filter(([id, job]) => job.id === id));
  }

  /** Spending of jobs with a budget, accrued to now; a job that has used its budget up is brought to its end. */
  async #enforceBudgets(state: WorkingState, nowMs: EpochMs): Promise<ReadonlyMap<JobId, Usd>> {
    const { spending } = this.#remembered;
    await spending.update(state, this.#parts.store);
    const { market } = this.#parts;
    const prices: Prices = {
      nowMs,
      pools: this.#pools,
      quote: (pool, at) => market.quote(pool, at),
      history: (pool, from, to) => market.history(pool, from, to),
    };
    const spent = new Map<JobId, Usd>();
    for (const job of state.activeJobs()) {
      const { maxCostUsd } = job.spec;
      if (maxCostUsd === null) continue;
      const total = spending.spentUsd(job, state, prices);
      spent.set(job.id, total);
      if (gte(total, maxCostUsd) && job.stateReason === null) {
        state.putJob({ ...job, stateReason: `its budget of ${raw(maxCostUsd)} USD is used up (maxCost)` });
      }
    }
    return spent;
  }

  #pool(instance: Instance): Pool {
    return invariant(this.#pools.get(instance.pool), `instance ${instance.id} is in unknown pool ${instance.pool}`);
  }
}

/** Attempts as the state has them, where it has them, and those that it only has last. */
function latestOf(stored: readonly Attempt[], known: readonly Attempt[]): readonly Attempt[] {
  if (known.length === 0) return stored;
  const attempts = new Map(stored.map((a) => [a.id, a]));
  for (const a of known) attempts.set(a.id, a);
  return [...attempts.values()];
}
