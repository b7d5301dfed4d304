/**
 * Beginning of a cycle: takes in reports of instances and attempts, settles the bills of ended ones, learns, and takes
 * one consistent snapshot.
 * Lifecycle: `recall` first, then per cycle `observe` (to be committed by the caller) and `snapshot`. Between cycles it
 * keeps a cache of readable data (`Remembered`).
 */
import { invariant, messageOf } from '../../kernel/errors.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { InstanceId, JobId, PoolId } from '../../kernel/ids.ts';
import { epochMs, lte, seconds, usd, type EpochMs } from '../../kernel/units.ts';
import { isLive, type Instance, type MarketCause } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job, type JobState } from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { Plan } from '../../domain/plan.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import { quotaOf } from '../../domain/quota.ts';
import type { Budget, Limits, Snapshot } from '../../domain/snapshot.ts';
import type { DiskState } from '../../domain/disk-budget.ts';
import type { Learners } from '../../policy/learners.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Market } from '../../ports/market.ts';
import type { Store } from '../../ports/store.ts';
import { neighbourLearner } from '../../policy/colocation/neighbour-learner.ts';
import { SlowedAttempts } from './slowed.ts';
import { Teaching } from '../learn/teaching.ts';
import { countSettled } from './breaker.ts';
import { needsOf } from '../replicas/service-plans.ts';
import { holdJob, releaseAll } from './holding.ts';
import { attribute, jobsNamed, type Attributed } from '../money/ledger.ts';
import { applyObservations, type Observed } from './observe.ts';
import { DeploymentLimits } from '../money/deployment-limits.ts';
import { DiskRoom } from './disk-room.ts';
import type { Prices } from '../money/spending.ts';
import { Remembered } from './remembered.ts';
import {
  boundQuotas,
  endQuotaBackOff,
  quotaUses,
  backOffsAt,
  backOffOf,
  refusedMsOf,
  storedBackOffs,
  type BackOffs,
} from './back-off.ts';
import { takeSnapshot } from '../state/snapshot.ts';
import { usdText } from '../money/worst-cost.ts';
import type { WorkingState } from '../state/working-state.ts';

export interface ObserverParts {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly market: Market;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly config: Pick<
    SchedulerConfig,
    'restoreS' | 'billing' | 'refundRule' | 'cyclePeriodS' | 'maxUsdPerDay' | 'maxUsdPerMonth' | 'neighbours'
  >;
  readonly learners: Learners;
  /** State of the disk that tasks write to; null: unknown yet. Absent: the driver has none. */
  readonly disk?: () => DiskState | null;
  /** Cache of a previous observer; absent: empty. */
  readonly remembered?: Remembered;
}

export class Observer {
  readonly #parts: ObserverParts;
  readonly #pools: ReadonlyMap<PoolId, Pool>;
  readonly #remembered: Remembered;
  readonly #deployment: DeploymentLimits;
  readonly #disk: DiskRoom | null;
  #backOffs: BackOffs = new Map();

  constructor(parts: ObserverParts) {
    this.#parts = parts;
    this.#pools = new Map(parts.market.pools().map((p) => [p.id, p]));
    this.#remembered = parts.remembered ?? new Remembered();
    this.#deployment = new DeploymentLimits(parts.config);
    this.#disk = parts.disk === undefined ? null : new DiskRoom(parts.disk);
  }

  /** Back-offs in force and over; confirming outcomes changes it. */
  get backOffs(): BackOffs {
    return this.#backOffs;
  }

  /** Reads beliefs and back-offs from the store; with 'all' it also empties the cache. */
  async recall(what: 'all' | 'learned' = 'all'): Promise<void> {
    const { store, learners } = this.#parts;
    await learners.recall(store);
    this.#backOffs = await storedBackOffs(store);
    await this.#deployment.recall(store);
    await this.#disk?.recall(store);
    if (what === 'all') this.#remembered.forget();
  }

  /**
   * Takes in reports, settles bills of ended instances, learns. To be committed in one piece: cursors are part of it.
   */
  async observe(state: WorkingState): Promise<Observed> {
    const { fleet, learners } = this.#parts;
    const slowdowns = learners.of(neighbourLearner);
    const ground = { state, pools: this.#pools, ...(this.#parts.config.neighbours ? { slowdowns } : {}) };
    const observed = applyObservations(ground, await fleet.observe(state.cursors));
    releaseAll(state, this.#parts.clock.now());
    this.#disk?.tell(state, this.#parts.clock.now());
    const teaching = new Teaching(learners);
    const slowed = new SlowedAttempts(slowdowns);
    for (const end of observed.ends) {
      slowed.add(end);
      teaching.tell(end);
    }
    slowed.note(state);
    const unsettled = new Set<InstanceId>(observed.ended);
    for (const id of state.endedInstances) if (state.instances.get(id)?.costUsd === null) unsettled.add(id);
    for (const id of unsettled) await this.#settle(state, id, teaching);
    boundQuotas(state, { backOffs: this.#backOffs, pools: this.#pools, at: this.#parts.clock.now() });
    teaching.keep(state, this.#parts.clock.now());
    return observed;
  }

  /** False while the disk has no room for files of tasks. */
  get mayStart(): boolean {
    return (this.#disk?.held ?? null) === null;
  }

  /** Live instances with their running tasks, now. O(changes + instances + running tasks). */
  whatRuns(state: WorkingState): Pick<Snapshot, 'instances'> {
    return state.whatRuns({ poolById: this.#pools, restoreS: seconds(this.#parts.config.restoreS) });
  }

  /** Snapshot of now. Jobs with an exhausted budget, or a failed dependency, are marked to be ended. */
  async snapshot(state: WorkingState): Promise<Snapshot> {
    const nowMs = this.#parts.clock.now();
    const prices = this.#pricesAt(nowMs);
    const budgets = await this.#enforceBudgets(state, prices);
    const spendingLimits = this.#deployment.limits(state, prices);
    const startsHeld = this.#disk?.held ?? null;
    return takeSnapshot({
      state,
      nowMs,
      pools: this.#poolViews(state, nowMs),
      poolById: this.#pools,
      dependencies: await this.#dependencies(state),
      spentUsd: new Map(budgets.entries().map(([job, b]) => [job, usd(b.spentUsd)])),
      ...(budgets.size === 0 ? {} : { budgets }),
      limits: this.#parts.limits,
      ...(spendingLimits.length === 0 ? {} : { spendingLimits }),
      ...(startsHeld === null ? {} : { startsHeld }),
      ...(await this.#services(state)),
      restoreS: this.#parts.config.restoreS,
      onFault: (job, error) => holdJob(state, { job, reason: messageOf(error) }, nowMs),
    });
  }

  /** What plans need to know of services, where replicas wait or run. */
  async #services(state: WorkingState): Promise<Pick<Snapshot, 'services'>> {
    if (!state.activeJobs().some((job) => job.spec.class === 'service')) return {};
    return { services: needsOf(await this.#parts.store.services()) };
  }

  /** Intents of a plan are recorded. */
  recorded(plan: Plan): void {
    this.#deployment.recorded(plan);
  }

  /** End of the last attempt of each job with a budget. */
  lastRanMs(snapshot: Snapshot): ReadonlyMap<JobId, EpochMs> {
    return new Map(
      [...snapshot.jobs.keys()].flatMap((job) => {
        const ended = this.#remembered.spending.lastEndMs(job);
        return ended === null ? [] : [[job, ended] as const];
      }),
    );
  }

  async #settle(state: WorkingState, id: InstanceId, teaching: Teaching): Promise<void> {
    const { fleet, store } = this.#parts;
    const instance = invariant(state.instances.get(id), `instance ${id} ended and is not known`);
    const endedMs = instance.endedMs ?? this.#parts.clock.now();
    const pool = this.#pool(instance);
    const bill = await fleet.bill(id, endedMs);
    const attempts = latestOf(await store.attemptsOn(id), state.attemptsOn(id));
    const jobs = await this.#jobsOf(state, jobsNamed(instance, attempts));
    const rows = this.#rows(state, { instance, pool, bill, attempts, jobs, until: endedMs });
    state.putLedger(id, rows);
    this.#remembered.spending.settled(rows);
    this.#deployment.settled(state, bill, this.#parts.clock.now());
    if (bill.refundedUsd !== undefined) noteRefund(state, instance, bill.refundedUsd, endedMs);
    const marketCause = this.#marketCause(instance);
    state.putInstance({ ...instance, costUsd: bill.totalUsd, ...(marketCause === null ? {} : { marketCause }) });
    const ran = attempts.some((a) => a.startedMs !== null);
    countSettled(state, { instance, ran, jobs }, { at: endedMs, backOffs: this.#backOffs });
    // An instance released without an attempt lacked another beside it, and the quota would refuse that again.
    if (ran) endQuotaBackOff(state, pool.id, this.#backOffs);
    const takenMs = marketCause === 'capacity' ? (instance.warnedMs ?? endedMs) : null;
    teaching.tell({ kind: 'instance-ended', instance, pool, launchedMs: instance.launchedMs, endedMs, takenMs });
  }

  /**
   * Ledger rows of a bill. If a faulty record prevents the attribution, the whole bill is nobody's, and an event says
   * why.
   */
  #rows(state: WorkingState, of: Attributed): readonly LedgerRow[] {
    try {
      return attribute(of);
    } catch (error) {
      const { boughtFor: _, reservations: __, ...instance } = of.instance;
      state.event('bill-of-nobody', this.#parts.clock.now(), {
        text: `the bill of instance ${instance.id} is booked on no job: what ran there cannot be read (${messageOf(error)})`,
        data: { instance: instance.id, jobs: [...of.jobs.keys()] },
      });
      return attribute({ ...of, instance, attempts: [], jobs: new Map() });
    }
  }

  /** Cause of an interruption: capacity if the price was still within the bid, else price. Null: not interrupted. */
  #marketCause(instance: Instance): MarketCause | null {
    if (instance.endCause !== 'interrupted') return null;
    const at = instance.warnedMs ?? instance.endedMs;
    const quote = at === null ? null : this.#parts.market.quote(instance.pool, at);
    const isWithin = instance.bid === 'uncapped' || quote === null || lte(quote, instance.bid);
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
    const uses = quotaUses(state, { backOffs: this.#backOffs, pools: this.#pools, at: nowMs });
    const backingOff = backOffsAt(this.#backOffs, nowMs);
    const reserved = reservationsLeft(state.instances.values(), this.#pools);
    return [...this.#pools.values()].map((pool) => {
      const backOff = backingOff.size === 0 ? null : backOffOf(backingOff, pool.id, nowMs);
      const refusedMs = this.#backOffs.size === 0 ? null : refusedMsOf(this.#backOffs, pool.id);
      const quota = uses.size === 0 ? undefined : uses.get(quotaOf(pool.id));
      const reservedLeft = reserved.get(pool.id);
      const isFull = reservedLeft !== undefined && reservedLeft <= 0;
      return {
        pool,
        quote: market.quote(pool.id, nowMs),
        open: backOff === null && !isFull,
        closedReason: backOff?.why ?? (isFull ? `all ${pool.reservedInstances} reserved instances are in use` : null),
        ...(reservedLeft === undefined ? {} : { reservedLeft }),
        ...(backOff === null ? {} : { backOff: backOffView(backOff) }),
        ...(refusedMs === null ? {} : { refusedMs }),
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

  /** Jobs that others wait for, and that are neither active nor known to have ended. */
  async #readEnds(waitedFor: ReadonlySet<JobId>, { jobs }: WorkingState): Promise<ReadonlyMap<string, Job>> {
    const { finishedJobs } = this.#remembered;
    for (const id of finishedJobs.keys()) if (!waitedFor.has(id)) finishedJobs.delete(id);
    const unknown = [...waitedFor].filter((id) => !jobs.has(id) && !finishedJobs.has(id));
    const found = unknown.length === 0 ? [] : await this.#parts.store.findJobs(unknown);
    // A lookup by an unknown id finds a job with that name, which is another job.
    return new Map([...found].filter(([id, job]) => job.id === id));
  }

  /**
   * Money of jobs with a limit, accrued to now. A job is ended while the highest cost of its instances until their
   * release is still within the limit.
   */
  async #enforceBudgets(state: WorkingState, prices: Prices): Promise<ReadonlyMap<JobId, Budget>> {
    const { spending } = this.#remembered;
    await spending.update(state, this.#parts.store);
    const budgets = spending.budgets(state, prices);
    for (const [id, { limitUsd, spentUsd, reservedUsd }] of budgets) {
      const job = state.jobs.get(id);
      if (job === undefined || job.stateReason !== null || spentUsd + reservedUsd < limitUsd) continue;
      const kept =
        reservedUsd > 0 ? `, and its instances may cost ${usdText(reservedUsd)} more until they are given back` : '';
      state.putJob({
        ...job,
        stateReason: `its budget of ${usdText(limitUsd)} is used up (maxCost): ${usdText(spentUsd)} spent${kept}`,
      });
    }
    return budgets;
  }

  #pricesAt(nowMs: EpochMs): Prices {
    const { market, config } = this.#parts;
    return {
      nowMs,
      pools: this.#pools,
      quote: (pool, at) => market.quote(pool, at),
      history: (pool, from, to) => market.history(pool, from, to),
      config,
    };
  }

  #pool(instance: Instance): Pool {
    return invariant(this.#pools.get(instance.pool), `instance ${instance.id} is in unknown pool ${instance.pool}`);
  }
}

const backOffView = ({
  untilMs,
  refusals,
  quota,
}: NonNullable<ReturnType<typeof backOffOf>>): PoolView['backOff'] & {} => ({
  untilMs: epochMs(untilMs),
  refusals,
  ...(quota === undefined ? {} : { quota }),
});

/** Attempts as the state has them, where it has them, and those that it only has last. */
function latestOf(stored: readonly Attempt[], known: readonly Attempt[]): readonly Attempt[] {
  if (known.length === 0) return stored;
  const attempts = new Map(stored.map((a) => [a.id, a]));
  for (const a of known) attempts.set(a.id, a);
  return [...attempts.values()];
}

/** A refund lowers the spending so far; an event says why. */
function noteRefund(state: WorkingState, { id, pool }: Instance, refundedUsd: number, at: EpochMs): void {
  state.event('instance-refunded', at, {
    text: `instance ${id} is not charged, for the market took it within its first hour: ${refundedUsd.toPrecision(2)} USD refunded`,
    data: { instance: id, pool, usd: refundedUsd },
  });
}

/** Instances of each reserved pool that may still be launched. O(instances) where there are reserved pools. */
function reservationsLeft(
  instances: Iterable<Instance>,
  pools: ReadonlyMap<PoolId, Pool>,
): ReadonlyMap<PoolId, number> {
  const left = new Map<PoolId, number>();
  for (const p of pools.values()) if (p.reservedInstances !== undefined) left.set(p.id, p.reservedInstances);
  if (left.size === 0) return left;
  for (const instance of instances) {
    const reserved = left.get(instance.pool);
    if (reserved !== undefined && isLive(instance)) left.set(instance.pool, reserved - 1);
  }
  return left;
}
