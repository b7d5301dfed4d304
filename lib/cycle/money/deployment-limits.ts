/**
 * Limits on a deployment's spending per day and month (`maxUsdPerDay`, `maxUsdPerMonth`; UTC, the market's time).
 * Settled spending of the present day and month is kept in the store's memory; live instances count with their accrued
 * and their expected cost. The purse (purse.ts) refuses purchases that could pass a limit; running work is not stopped.
 * Lifecycle: `recall`, then per cycle `settled` with each final bill, `limits` once, and `recorded` with the plan.
 * Without limits nothing is kept, read or counted. O(live instances x price changes of the present month) per cycle
 * otherwise.
 */
import { epochMs, gt, gte, isoOf, msBetween, raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import type { Bill } from '../../domain/ledger.ts';
import type { Plan } from '../../domain/plan.ts';
import type { Period, SpendingLimit } from '../../domain/snapshot.ts';
import type { Store } from '../../ports/store.ts';
import { accruedBill, type Prices } from './spending.ts';
import { exitS, moreChargedS, usdFor, usdText } from './worst-cost.ts';
import type { WorkingState } from '../state/working-state.ts';
import { usdPerHourOf } from '../../domain/pool.ts';

/** Settled spending of one day or month. */
interface Settled {
  /** `2026-01-05` or `2026-01`. */
  readonly of: string;
  readonly usd: number;
  /** Per cent of the limit that people were told of. */
  readonly told: number;
}

export const SPENT_PREFIX = 'spent/';
const PERIODS: readonly Period[] = ['day', 'month'];
/** Per cent at which people are told first. */
const WARN_PERCENT = 80;

type Config = Pick<SchedulerConfig, 'maxUsdPerDay' | 'maxUsdPerMonth'>;

export class DeploymentLimits {
  readonly #limits: Readonly<Record<Period, number | null>>;
  #settled: Partial<Record<Period, Settled>> = {};

  constructor({ maxUsdPerDay, maxUsdPerMonth }: Config) {
    this.#limits = { day: maxUsdPerDay, month: maxUsdPerMonth };
  }

  get #limited(): readonly Period[] {
    return PERIODS.filter((p) => this.#limits[p] !== null);
  }

  async recall(store: Pick<Store, 'memory'>): Promise<void> {
    this.#settled = {};
    if (this.#limited.length === 0) return;
    const rows = await store.memory(SPENT_PREFIX);
    for (const period of this.#limited) {
      const text = rows.get(`${SPENT_PREFIX}${period}`);
      if (text !== undefined) this.#settled[period] = JSON.parse(text) as Settled;
    }
  }

  /** Adds the bill of an ended instance. Its part in earlier periods does not count. */
  settled(state: WorkingState, bill: Bill, nowMs: EpochMs): void {
    for (const period of this.#limited) {
      const { fromMs } = spanOf(period, nowMs);
      const known = this.#of(period, nowMs);
      const usd = known.usd + usdSince(bill, fromMs);
      if (usd !== known.usd) this.#put(state, period, { ...known, usd });
    }
  }

  /** Present spending; people are told when four fifths are used. */
  limits(state: WorkingState, prices: Prices): readonly SpendingLimit[] {
    const live: { readonly instance: Instance; readonly bill: Bill | null; readonly usdPerHour: number }[] = [];
    if (this.#limited.length === 0) return [];
    for (const instance of state.instances.values()) {
      const pool = prices.pools.get(instance.pool);
      if (!isLive(instance) || pool === undefined) continue;
      const usdPerHour = usdPerHourOf(pool, prices.quote(pool.id, prices.nowMs));
      live.push({ instance, bill: accruedBill({ instance, pool }, prices), usdPerHour });
    }
    return this.#limited.map((period): SpendingLimit => {
      const { fromMs, untilMs } = spanOf(period, prices.nowMs);
      const known = this.#of(period, prices.nowMs);
      const limitUsd = this.#limits[period] ?? Infinity;
      let spentUsd = known.usd;
      let committedUsd = 0;
      const leftS = secondsBetween(prices.nowMs, epochMs(untilMs));
      for (const { instance, bill, usdPerHour } of live) {
        if (bill !== null) spentUsd += usdSince(bill, fromMs);
        const goneS = secondsBetween(instance.requestedMs, prices.nowMs);
        const comingS = Math.max(exitS([], prices.config), (instance.expectedS ?? 0) - goneS);
        const chargedS = moreChargedS(instance.launchedMs, prices.nowMs, Math.min(comingS, leftS), prices.config);
        committedUsd += usdFor(chargedS, usdPerHour);
      }
      const percent = (100 * (spentUsd + committedUsd)) / limitUsd;
      if (percent >= WARN_PERCENT && known.told < WARN_PERCENT) {
        this.#put(state, period, { ...known, told: WARN_PERCENT });
        state.event('spending-limit', prices.nowMs, {
          text:
            `${Math.floor(percent)} % of ${limitText(period, limitUsd)} are used: ${usdText(spentUsd)} spent, ` +
            `${usdText(committedUsd)} committed to instances`,
          data: { period, percent: WARN_PERCENT, limitUsd, spentUsd, committedUsd },
        });
      }
      const told = Math.max(known.told, percent >= WARN_PERCENT ? WARN_PERCENT : 0);
      return {
        period,
        limitUsd,
        settledUsd: known.usd,
        spentUsd,
        committedUsd,
        untilMs: epochMs(untilMs),
        isReached: told >= 100,
      };
    });
  }

  /** Marks the messages of a recorded plan as told. */
  recorded({ atMs, limitsReached = [] }: Plan): void {
    for (const { period } of limitsReached) this.#settled[period] = { ...this.#of(period, atMs), told: 100 };
  }

  /** The same, written to the store for another process. */
  static record(state: WorkingState, { atMs, limitsReached = [] }: Plan): void {
    for (const { period, settledUsd, text, ...facts } of limitsReached) {
      const settled: Settled = { of: nameOf(period, atMs), usd: settledUsd, told: 100 };
      state.putMemory(`${SPENT_PREFIX}${period}`, JSON.stringify(settled));
      state.event('spending-limit', atMs, { text, data: { period, percent: 100, ...facts } });
    }
  }

  #of(period: Period, nowMs: EpochMs): Settled {
    const of = nameOf(period, nowMs);
    const known = this.#settled[period];
    return known?.of === of ? known : { of, usd: 0, told: 0 };
  }

  #put(state: WorkingState, period: Period, settled: Settled): void {
    this.#settled[period] = settled;
    state.putMemory(`${SPENT_PREFIX}${period}`, JSON.stringify(settled));
  }
}

/** `the limit of 5.00 USD a day (maxUsdPerDay)`. */
export const limitText = (period: Period, limitUsd: number): string =>
  `the limit of ${usdText(limitUsd)} a ${period} (${period === 'day' ? 'maxUsdPerDay' : 'maxUsdPerMonth'})`;

function spanOf(period: Period, nowMs: EpochMs): { readonly fromMs: number; readonly untilMs: number } {
  const now = new Date(raw(nowMs));
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  return period === 'day'
    ? { fromMs: Date.UTC(year, month, day), untilMs: Date.UTC(year, month, day + 1) }
    : { fromMs: Date.UTC(year, month, 1), untilMs: Date.UTC(year, month + 1, 1) };
}

const nameOf = (period: Period, nowMs: EpochMs): string => isoOf(nowMs).slice(0, period === 'day' ? 10 : 7);

/** The part of a bill for time since then; a charge without extent lies where it begins. */
function usdSince({ pieces }: Bill, fromMs: number): number {
  let total = 0;
  const since = epochMs(fromMs);
  for (const { fromMs: from, toMs: to, usd } of pieces) {
    if (gte(from, since)) total += usd;
    else if (gt(to, since)) total += (usd * msBetween(since, to)) / msBetween(from, to);
  }
  return total;
}
