import type { PoolId } from '../kernel/ids.ts';
import { invariant } from '../kernel/errors.ts';
import { epochMs, raw, usd, type EpochMs } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Distribution } from '../domain/distribution.ts';
import type { Bill } from '../domain/ledger.ts';
import { capUsd, type Bid, onDemandUsdOf } from '../domain/pool.ts';
import { indexAt, type PriceArrays } from './price-steps.ts';
import type { MarketTrace } from './trace.ts';

/**
 * Bill of an instance by EC2's rules.
 * - `per-second` (Linux since 2017-10-02): every second at the price in force, at least 60 s.
 * - `per-hour` (before): every started instance-hour at the price in force when that hour starts.
 * - refund `first-hour`: a spot instance that the market takes within its first hour costs nothing (Tributary 2.1.1;
 *   EC2 User Guide, "Billing for interrupted Spot Instances"). One that its user ends is charged. Nobody pays more than
 *   the bid (EC2 User Guide, "Spot Instance pricing"), not even during the notice that a higher price causes.
 */
export type BillingRules = Pick<SchedulerConfig, 'billing' | 'refundRule'>;

export interface Use {
  readonly launchedMs: EpochMs;
  /** End of the instance, or now for a bill that accrues. */
  readonly untilMs: EpochMs;
  /** The most that is ever charged per hour, also while a price above it is taking the instance away. */
  readonly bid: Bid;
  /** True only for an interruption by the market, the condition of refunds. */
  readonly takenByMarket: boolean;
}

const HOUR_MS = 3_600_000;
const HOUR_S = 3600;
/** AWS News Blog, "New: Per-Second Billing for EC2 Instances". */
const PER_SECOND_SINCE_MS = Date.UTC(2017, 9, 2);

/** Billing of Linux instances at that time. */
export const billingAt = (at: EpochMs): SchedulerConfig['billing'] =>
  raw(at) < PER_SECOND_SINCE_MS ? 'per-hour' : 'per-second';
/** "60-second minimum": EC2 on-demand and spot pricing since 2017-10-02. */
export const MINIMUM_MS = 60_000;
const MINIMUM_S = MINIMUM_MS / 1000;

/** Seconds that are charged for an instance that is held so long. */
export const chargedS = (heldS: number, { billing }: Pick<BillingRules, 'billing'>): number =>
  billing === 'per-hour' ? Math.ceil(heldS / HOUR_S) * HOUR_S : Math.max(heldS, MINIMUM_S);

/**
 * Seconds that are charged, in expectation, for a new instance with one task. Hours begin with the start-up. By the
 * second the start-up is left out, for it is the same wherever the task runs, and it counts towards the first minute.
 */
export function chargedAloneS(
  runtime: Distribution,
  config: Pick<SchedulerConfig, 'billing' | 'startDelayMeanS'>,
): number {
  const startS = config.startDelayMeanS;
  const leftOutS = config.billing === 'per-hour' ? 0 : startS;
  return runtime.atS.reduce(
    (sum, s, i) => sum + (runtime.weight[i] ?? 0) * (chargedS(startS + s, config) - leftOutS),
    0,
  );
}

/** Seconds that are charged for so much time after the time that is charged already. */
export const furtherChargedS = (s: number, { billing }: Pick<BillingRules, 'billing'>): number =>
  billing === 'per-hour' ? Math.ceil(s / HOUR_S) * HOUR_S : s;

/** Seconds from now that are charged already: the rest of the started hour, or of the first minute. */
export const paidForS = (ageS: number, { billing }: Pick<BillingRules, 'billing'>): number =>
  billing === 'per-hour' ? (Math.floor(Math.max(0, ageS) / HOUR_S) + 1) * HOUR_S - ageS : Math.max(0, MINIMUM_S - ageS);

/**
 * The bill of one instance. Pieces tile [launched, until), cut at every full hour from the launch on and, under
 * per-second billing, at every price change. Time charged but not run (the rest of the minimum, or of a started hour)
 * is in the last piece. An instance that ended as it was launched has no piece and costs nothing. Spot prices are held
 * before the first and after the last step of the trace.
 */
export function billOf(
  trace: Pick<MarketTrace, 'pools' | 'prices'>,
  pool: PoolId,
  use: Use,
  rules: BillingRules,
): Bill {
  const launched = raw(use.launchedMs);
  const until = raw(use.untilMs);
  if (!(until > launched)) return { totalUsd: usd(0), pieces: [] };
  const prices = trace.prices(pool);
  const list = invariant(
    trace.pools.find((p) => p.id === pool),
    'a billed instance is of a pool of the trace',
  );
  const onDemand = onDemandUsdOf(list);
  const refunded =
    rules.refundRule === 'first-hour' && use.takenByMarket && list.option === 'spot' && until - launched < HOUR_MS;
  const most = capUsd(use.bid);
  const cuts = cutsBetween(rules.billing === 'per-hour' ? NO_CHANGES : prices.atMs, launched, until);
  let total = 0;
  let refundedUsd = 0;
  const pieces = cuts.map((from, i) => {
    const to = cuts[i + 1] ?? until;
    const hourStart = launched + Math.floor((from - launched) / HOUR_MS) * HOUR_MS;
    const last = i === cuts.length - 1;
    const chargedMs = (last ? chargedUntil(launched, until, rules) : to) - from;
    const price = Math.min(most, heldPrice(prices, rules.billing === 'per-hour' ? hourStart : from));
    const full = (price * chargedMs) / HOUR_MS;
    const charge = refunded ? 0 : full;
    total += charge;
    refundedUsd += full - charge;
    return {
      fromMs: epochMs(from),
      toMs: epochMs(to),
      usd: charge,
      onDemandUsd: (onDemand * chargedMs) / HOUR_MS,
    };
  });
  return { totalUsd: usd(total), ...(refundedUsd > 0 ? { refundedUsd } : {}), pieces };
}

/** End of the charged time: running time rounded up to the billing unit. */
function chargedUntil(launched: number, until: number, rules: BillingRules): number {
  if (rules.billing === 'per-hour') return launched + Math.ceil((until - launched) / HOUR_MS) * HOUR_MS;
  return Math.max(until, launched + MINIMUM_MS);
}

const NO_CHANGES = new Float64Array(0);

/** Starts of the pieces, ascending: the launch, every full hour after it and every change in between. */
function cutsBetween(changeMs: Float64Array, from: number, to: number): readonly number[] {
  const cuts: number[] = [from];
  let change = indexAt(changeMs, from) + 1;
  let hour = from + HOUR_MS;
  for (;;) {
    const next = Math.min(changeMs[change] ?? Infinity, hour);
    if (!(next < to)) return cuts;
    cuts.push(next);
    if (next === hour) hour += HOUR_MS;
    if (next === changeMs[change]) change++;
  }
}

const heldPrice = ({ atMs, usdPerHour }: PriceArrays, t: number): number =>
  usdPerHour[Math.max(0, indexAt(atMs, t))] ?? 0;
