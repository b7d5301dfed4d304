import type { AttemptId, InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import { most, raw, usd, type EpochMs, type Usd } from '../kernel/units.ts';
import { isLive } from '../domain/instance.ts';
import type { Attempt, Job } from '../domain/job.ts';
import type { LedgerRow } from '../domain/ledger.ts';
import type { Pool } from '../domain/pool.ts';
import { dominantShare } from '../domain/resources.ts';
import type { Market } from '../ports/market.ts';
import type { Store } from '../ports/store.ts';
import type { WorkingState } from './working-state.ts';

/** What one job with a budget has spent. */
interface Account {
  /** By the ledger, of instances that have ended. */
  billedUsd: number;
  /** Attempts on instances that live: their bill is still to come. */
  readonly unbilled: Map<AttemptId, Attempt>;
  /** When the last of its attempts ended; null when none did. */
  lastEndMs: EpochMs | null;
}

/** Each is some reads of the store, which may be far away. */
const OPENED_AT_ONCE = 16;

/** What prices attempts whose bill is still to come. */
export interface Prices {
  readonly nowMs: EpochMs;
  readonly pools: ReadonlyMap<PoolId, Pool>;
  readonly quote: Market['quote'];
  readonly history: Market['history'];
}

/**
 * Accounts of the active jobs that have a budget. Ledger and attempts of a job are read from the store once, when the
 * job is first seen; from then on the account follows the engine's own changes, so that a cycle costs O(attempts that
 * live or ran on an instance that lives), however long the jobs' histories are.
 *
 * Lifecycle: `settled` with each final bill, `update` once per cycle after its observations are committed, then
 * `spentUsd` and `lastEndMs`. `forget` when the store may not hold what was told here: all accounts are read again.
 */
export class Spending {
  readonly #accounts = new Map<JobId, Account>();

  forget(): void {
    this.#accounts.clear();
  }

  /** The ledger of an instance that has ended. */
  settled(rows: readonly LedgerRow[]): void {
    for (const row of rows) {
      const account = row.job === null ? undefined : this.#accounts.get(row.job);
      if (account !== undefined) account.billedUsd += row.usd;
    }
  }

  async update(state: WorkingState, store: Pick<Store, 'ledger' | 'attempts'>): Promise<void> {
    const limited = new Set(state.activeJobs().flatMap((j) => (j.spec.maxCostUsd === null ? [] : [j.id])));
    for (const [job, account] of this.#accounts) {
      if (!limited.has(job) || hasMissedAnEnd(account, state)) this.#accounts.delete(job);
    }
    const fresh = [...limited].filter((job) => !this.#accounts.has(job));
    for (let from = 0; from < fresh.length; from += OPENED_AT_ONCE) {
      await Promise.all(fresh.slice(from, from + OPENED_AT_ONCE).map((job) => this.#open(job, store)));
    }
    if (this.#accounts.size === 0) return;
    for (const attempt of state.attempts.values()) this.#note(attempt);
    for (const { unbilled } of this.#accounts.values()) {
      for (const { id, instance } of unbilled.values()) if (!lives(state, instance)) unbilled.delete(id);
    }
  }

  /** Billed and accrued to now. 0 for a job without an account. */
  spentUsd(job: Job, state: WorkingState, prices: Prices): Usd {
    const account = this.#accounts.get(job.id);
    if (account === undefined) return usd(0);
    let total = account.billedUsd;
    for (const attempt of account.unbilled.values()) total += accruedUsd(attempt, state, prices);
    return usd(total);
  }

  lastEndMs(job: JobId): EpochMs | null {
    return this.#accounts.get(job)?.lastEndMs ?? null;
  }

  async #open(job: JobId, store: Pick<Store, 'ledger' | 'attempts'>): Promise<void> {
    const rows = await store.ledger({ job });
    const billedUsd = rows.reduce((sum, row) => sum + row.usd, 0);
    this.#accounts.set(job, { billedUsd, unbilled: new Map(), lastEndMs: null });
    for (const attempt of await store.attempts(job)) this.#note(attempt);
  }

  #note(attempt: Attempt): void {
    const account = this.#accounts.get(attempt.job);
    if (account === undefined) return;
    account.unbilled.set(attempt.id, attempt);
    if (attempt.endedMs === null) return;
    account.lastEndMs = account.lastEndMs === null ? attempt.endedMs : most(account.lastEndMs, attempt.endedMs);
  }
}

/** An attempt that ran when it was last seen, and that the state does not have any more, has ended where nobody was looking. */
function hasMissedAnEnd({ unbilled }: Account, { attempts }: WorkingState): boolean {
  for (const { id, endedMs } of unbilled.values()) if (endedMs === null && !attempts.has(id)) return true;
  return false;
}

function lives(state: WorkingState, id: InstanceId): boolean {
  const instance = state.instances.get(id);
  return instance !== undefined && isLive(instance);
}

/** An attempt's share of its instance at the prices there were while it ran, none above the bid: the bill will say it exactly. */
function accruedUsd(attempt: Attempt, state: WorkingState, prices: Prices): number {
  const instance = state.instances.get(attempt.instance);
  const pool = instance === undefined ? undefined : prices.pools.get(instance.pool);
  if (instance === undefined || pool === undefined || attempt.startedMs === null) return 0;
  const from = attempt.startedMs;
  const to = attempt.endedMs ?? prices.nowMs;
  const cap = instance.bid === 'uncapped' ? Infinity : raw(instance.bid);
  const charged = pool.option === 'spot' ? pricesWithin(pool, from, to, prices) : [];
  const usdHours =
    charged.length === 0
      ? Math.min(cap, raw(prices.quote(pool.id, prices.nowMs) ?? pool.onDemandUsdPerHour)) * hours(raw(from), raw(to))
      : charged.reduce((sum, p) => sum + Math.min(cap, p.usdPerHour) * hours(p.fromMs, p.toMs), 0);
  return usdHours * dominantShare(attempt.resources, pool.type.capacity);
}

const hours = (fromMs: number, toMs: number): number => Math.max(0, toMs - fromMs) / 3_600_000;

/** Pieces of [from, to) with their price. O(changes in between). */
function pricesWithin(pool: Pool, from: EpochMs, to: EpochMs, { history }: Prices) {
  const { atMs, usdPerHour } = history(pool.id, from, to);
  return Array.from(atMs, (at, i) => ({
    fromMs: Math.max(raw(from), at),
    toMs: Math.min(raw(to), atMs[i + 1] ?? Infinity),
    usdPerHour: usdPerHour[i] ?? 0,
  }));
}
