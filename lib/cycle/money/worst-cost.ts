/** Highest cost of an instance until it can be released: the reserve that a limit on money needs. */
import { ZERO_S, most, raw, secondsBetween, type EpochMs, type UsdPerHour } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { StageSpec } from '../../domain/job.ts';
import { chargedS } from '../../market/billing.ts';
import { capUsd, usdPerHourOf, type Bid, type Pool, onDemandUsdOf } from '../../domain/pool.ts';

/** Time from SIGTERM to SIGKILL, and until the engine hears of it and releases the instance, seconds. */
const EXIT_S = 15;
const HOUR_S = 3600;
/** Per-second billing charges at least this long (EC2 since 2017-10-02). */
const MINIMUM_S = 60;

type Rules = Pick<SchedulerConfig, 'billing' | 'cyclePeriodS'>;

/**
 * Seconds until an instance is given back that the next decision is to give back: its tasks have their grace period
 * first.
 */
export const exitS = (stages: readonly StageSpec[], { cyclePeriodS }: Rules): number =>
  raw(stages.reduce((longest, { checkpoint }) => most(longest, checkpoint?.graceS ?? ZERO_S), ZERO_S)) +
  cyclePeriodS +
  EXIT_S;

/**
 * Highest price that an instance can be charged, US dollars per hour. Spot is charged at most its bid. Without a bid
 * EC2 charges at most the on-demand price; replayed markets of before 2018 charged more, so twice the present price is
 * reserved.
 */
export function highestUsdPerHour(pool: Pool, bid: Bid, quote: UsdPerHour | null): number {
  const nowUsd = usdPerHourOf(pool, quote);
  if (pool.option !== 'spot') return nowUsd;
  return bid === 'uncapped' ? Math.max(onDemandUsdOf(pool), 2 * nowUsd) : capUsd(bid);
}

/** Seconds that will be charged beyond those charged now, when an instance goes on for `forS` from now. */
export function moreChargedS(launchedMs: EpochMs | null, nowMs: EpochMs, forS: number, rules: Rules): number {
  const heldS = launchedMs === null ? 0 : Math.max(0, secondsBetween(launchedMs, nowMs));
  return chargedS(heldS + forS, rules) - (heldS > 0 ? chargedS(heldS, rules) : 0);
}

/**
 * Seconds of charges that running tasks still share: the started hour, or the first minute. Tasks that stay take over a
 * part from those that leave.
 */
export function sharedS(launchedMs: EpochMs | null, nowMs: EpochMs, { billing }: Rules): number {
  if (billing === 'per-hour') return HOUR_S;
  return launchedMs === null || secondsBetween(launchedMs, nowMs) < MINIMUM_S ? MINIMUM_S : 0;
}

export const usdFor = (seconds: number, usdPerHour: number): number => (seconds * usdPerHour) / HOUR_S;

/**
 * `1.20 USD`, `0.15 USD`, `0.0483 USD`: below a dollar three significant digits, so that a limit and an amount above it
 * differ.
 */
export const usdText = (x: number): string =>
  `${x >= 0.995 || x < 1e-6 ? x.toFixed(2) : Number(x.toPrecision(3)).toFixed(Math.max(2, decimalsOf(x)))} USD`;

/** Decimal places for three digits that count, without zeros at the end. */
const decimalsOf = (x: number): number => (Number(x.toPrecision(3)).toString().split('.')[1] ?? '').length;
