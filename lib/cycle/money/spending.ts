import type { AttemptId, InstanceId, JobId, PoolId } from '../../kernel/ids.ts';
import { most, raw, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import type { Attempt, Job } from '../../domain/job.ts';
import type { Bill, LedgerRow } from '../../domain/ledger.ts';
import { usdPerHourOf, type Pool } from '../../domain/pool.ts';
import type { Budget } from '../../domain/snapshot.ts';
import { billOf } from '../../market/billing.ts';
import type { Market } from '../../ports/market.ts';
import type { Store } from '../../ports/store.ts';
import { attribute } from './ledger.ts';
import { exitS, highestUsdPerHour, moreChargedS, sharedS, usdFor } from './worst-cost.ts';
import type { WorkingState } from '../state/working-state.ts';

/** Spending of one job with a limit. */
interface Account {
  /** From the ledger, of ended instances. */
  billedUsd: number;
  /** End of its last attempt; null: none ended. */
  lastEndMs: EpochMs | null;
}

/** Each is some reads of the store, which may be far away. */
const OPENED_AT_ONCE = 16;

/** Prices of instances whose bill is still to come. */
export interface Prices {
  readonly nowMs: EpochMs;
  readonly pools: ReadonlyMap<PoolId, Pool>;
  readonly quote: Market['quote'];
  readonly history: Market['history'];
  readonly config: Pick<SchedulerConfig, 'billing' | 'refundRule' | 'cyclePeriodS'>;
}

/** Part of one job in one live instance, US dollars. */
interface Part {
  accruedUsd: number;
  /** The most that it may still be charged before the instance is given back, were that decided in the next cycle. */
  reservedUsd: number;
  /** Part of the expected cost at purchase that is still to come; 0 once a task of the job has come there. */
  heldUsd: number;
}

/**
 * Accounts of active jobs with a limit: billed amounts, and their part of live instances by the rule of the ledger
 * (lib/cycle/money/ledger.ts), start-up and idle time included. Ledger and attempts of a job are read from the store
 * once, when the job first appears, attempts of an instance when the first of these jobs uses it; afterwards the
 * engine's own changes are followed. A cycle costs O(live instances + live attempts + attempts, ended ones included, on
 * instances of jobs with a limit).
 * Lifecycle: `settled` with each final bill, `update` once per cycle after its observations are committed, then
 * `budgets` and `lastEndMs`. `forget` if the store may lack events that were told here: all accounts are read again.
 */
export class Spending {
  readonly #accounts = new Map<JobId, Account>();
  /** Attempts on live instances that a job with an account uses, used, or was bought. */
  readonly #attempts = new Map<InstanceId, Map<AttemptId, Attempt>>();

  forget(): void {
    this.#accounts.clear();
    this.#attempts.clear();
  }

  /** The ledger of an instance that has ended. */
  settled(rows: readonly LedgerRow[]): void {
    for (const row of rows) {
      const account = row.job === null ? undefined : this.#accounts.get(row.job);
      if (account !== undefined) account.billedUsd += row.usd;
    }
  }

  async update(state: WorkingState, store: Pick<Store, 'ledger' | 'attempts' | 'attemptsOn'>): Promise<void> {
    const limited = new Set(state.activeJobs().flatMap((j) => (j.spec.maxCostUsd === null ? [] : [j.id])));
    if (this.#hasMissedAnEnd(state)) this.forget();
    for (const job of this.#accounts.keys()) if (!limited.has(job)) this.#accounts.delete(job);
    if (limited.size === 0) {
      this.#attempts.clear();
      return;
    }
    const concerned = new Set<InstanceId>(this.#attempts.keys());
    const fresh = [...limited].filter((job) => !this.#accounts.has(job));
    await inParts(fresh, async (job) => {
      for (const instance of await this.#open(job, store)) concerned.add(instance);
    });
    for (const { job, instance } of state.attempts.values()) if (limited.has(job)) concerned.add(instance);
    for (const instance of state.instances.values()) {
      const { boughtFor = [], reservations = [] } = instance;
      if ([...boughtFor, ...reservations].some((of) => limited.has(of.job))) concerned.add(instance.id);
    }
    for (const id of this.#attempts.keys()) if (!lives(state, id)) this.#attempts.delete(id);
    const unread = [...concerned].filter((id) => lives(state, id) && !this.#attempts.has(id));
    await inParts(unread, async (id) => {
      this.#attempts.set(id, new Map((await store.attemptsOn(id)).map((a) => [a.id, a])));
    });
    for (const attempt of state.attempts.values()) this.#note(attempt);
  }

  /** Budget of each job with a limit, accrued to now. */
  budgets(state: WorkingState, prices: Prices): ReadonlyMap<JobId, Budget> {
    const parts = new Map<JobId, Part[]>();
    for (const [id, attempts] of this.#attempts) {
      const instance = state.instances.get(id);
      const pool = instance === undefined ? undefined : prices.pools.get(instance.pool);
      if (instance === undefined || pool === undefined) continue;
      for (const [job, part] of this.#partsOf({ instance, pool, attempts: [...attempts.values()] }, state, prices)) {
        const known = parts.get(job);
        if (known === undefined) parts.set(job, [part]);
        else known.push(part);
      }
    }
    const budgets = new Map<JobId, Budget>();
    for (const [id, account] of this.#accounts) {
      const limitUsd = state.jobs.get(id)?.spec.maxCostUsd ?? null;
      if (limitUsd === null) continue;
      const sum = (of: (part: Part) => number): number => (parts.get(id) ?? []).reduce((total, p) => total + of(p), 0);
      budgets.set(id, {
        limitUsd: raw(limitUsd),
        spentUsd: account.billedUsd + sum((p) => p.accruedUsd),
        reservedUsd: sum((p) => p.reservedUsd),
        heldUsd: sum((p) => Math.max(0, p.heldUsd - p.reservedUsd)),
      });
    }
    return budgets;
  }

  lastEndMs(job: JobId): EpochMs | null {
    return this.#accounts.get(job)?.lastEndMs ?? null;
  }

  #partsOf(
    { instance, pool, attempts }: { instance: Instance; pool: Pool; attempts: readonly Attempt[] },
    state: WorkingState,
    prices: Prices,
  ): ReadonlyMap<JobId, Part> {
    const parts = new Map<JobId, Part>();
    const partOf = (job: JobId): Part => {
      let part = parts.get(job);
      if (part === undefined) parts.set(job, (part = { accruedUsd: 0, reservedUsd: 0, heldUsd: 0 }));
      return part;
    };
    let allUsd = 0;
    for (const row of accruedRows({ instance, pool, attempts }, prices)) {
      allUsd += row.usd;
      if (row.job !== null && this.#accounts.has(row.job)) partOf(row.job).accruedUsd += row.usd;
    }
    const usdPerHour = highestUsdPerHour(pool, instance.bid, prices.quote(pool.id, prices.nowMs));
    const reserveFor = (job: Job): number => {
      const { nowMs, config } = prices;
      const chargedUsd = usdFor(
        moreChargedS(instance.launchedMs, nowMs, exitS(job.spec.stages, config), config),
        usdPerHour,
      );
      const othersUsd = Math.max(0, allUsd - partOf(job.id).accruedUsd);
      const sharedUsd = usdFor(sharedS(instance.launchedMs, nowMs, config), usdPerHour);
      return chargedUsd + Math.min(othersUsd, sharedUsd);
    };
    const awaited = (instance.reservations ?? []).filter((r) => r.untilMs === null);
    const running = new Set([...attempts.filter((a) => a.state !== 'ended'), ...awaited].map((of) => of.job));
    for (const id of running) {
      const job = this.#accounts.has(id) ? state.jobs.get(id) : undefined;
      // Any job there may be the only one left soon, and then pays for all of it.
      if (job !== undefined) partOf(id).reservedUsd = reserveFor(job);
    }
    const boughtFor = instance.boughtFor ?? [];
    for (const { job: id, part, usd = 0 } of boughtFor) {
      const job = this.#accounts.has(id) ? state.jobs.get(id) : undefined;
      if (job === undefined || running.has(id)) continue;
      const mine = partOf(id);
      const wasThere = attempts.some((a) => a.job === id);
      if (!wasThere) mine.heldUsd = Math.max(0, usd - mine.accruedUsd);
      if (attempts.length === 0) mine.reservedUsd = part * reserveFor(job);
    }
    if (running.size === 0) {
      // A gap: the jobs that ran last share it.
      for (const id of new Set(attempts.map((a) => a.job))) {
        const job = this.#accounts.has(id) ? state.jobs.get(id) : undefined;
        if (job !== undefined) partOf(id).reservedUsd = reserveFor(job);
      }
    }
    return parts;
  }

  /** Live instances that its attempts came to. */
  async #open(job: JobId, store: Pick<Store, 'ledger' | 'attempts'>): Promise<readonly InstanceId[]> {
    const rows = await store.ledger({ job });
    const account: Account = { billedUsd: rows.reduce((sum, row) => sum + row.usd, 0), lastEndMs: null };
    this.#accounts.set(job, account);
    const attempts = await store.attempts(job);
    for (const { endedMs } of attempts) noteEnd(account, endedMs);
    return attempts.map((a) => a.instance);
  }

  #note(attempt: Attempt): void {
    this.#attempts.get(attempt.instance)?.set(attempt.id, attempt);
    const account = this.#accounts.get(attempt.job);
    if (account !== undefined) noteEnd(account, attempt.endedMs);
  }

  /** True if an attempt of the last update is missing in the state: it ended unobserved. */
  #hasMissedAnEnd({ attempts }: WorkingState): boolean {
    for (const known of this.#attempts.values()) {
      for (const { id, endedMs } of known.values()) if (endedMs === null && !attempts.has(id)) return true;
    }
    return false;
  }
}

function noteEnd(account: Account, endedMs: EpochMs | null): void {
  if (endedMs === null) return;
  account.lastEndMs = account.lastEndMs === null ? endedMs : most(account.lastEndMs, endedMs);
}

async function inParts<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += OPENED_AT_ONCE) {
    await Promise.all(all.slice(from, from + OPENED_AT_ONCE).map(act));
  }
}

function lives(state: WorkingState, id: InstanceId): boolean {
  const instance = state.instances.get(id);
  return instance !== undefined && isLive(instance);
}

/**
 * The ledger of a live instance until now, by the prices there were, none above the bid: the bill will say it exactly.
 */
function accruedRows(
  of: { readonly instance: Instance; readonly pool: Pool; readonly attempts: readonly Attempt[] },
  prices: Prices,
): readonly LedgerRow[] {
  const bill = accruedBill(of, prices);
  return bill === null ? [] : attribute({ ...of, bill, jobs: NO_JOBS, until: prices.nowMs });
}

/** Null before it launched. */
export function accruedBill(
  { instance, pool }: { readonly instance: Instance; readonly pool: Pool },
  { nowMs, history, quote, config }: Prices,
): Bill | null {
  const { launchedMs, bid } = instance;
  if (launchedMs === null) return null;
  const known = history(pool.id, launchedMs, nowMs);
  const flat = (): typeof known => ({
    atMs: Float64Array.of(raw(launchedMs)),
    usdPerHour: Float64Array.of(usdPerHourOf(pool, quote(pool.id, nowMs))),
  });
  const steps = pool.option === 'spot' && known.atMs.length > 0 ? known : flat();
  const use = { launchedMs, untilMs: nowMs, bid, takenByMarket: false };
  return billOf({ pools: [pool], prices: () => steps }, pool.id, use, config);
}

const NO_JOBS: ReadonlyMap<string, Job> = new Map();
