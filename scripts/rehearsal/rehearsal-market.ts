/**
 * A market of one instance type in two zones. In the first it is cheaper, and no spot instance lives long: from when it
 * is opened there is capacity for a quarter of an hour, then none any more. In the second there always is. What runs
 * that long begins in the first zone, is interrupted, and goes on in the second: that leaves a scheduler no other
 * choice, so that it does the same however long its steps take.
 */
import { poolKey } from '../../lib/domain/pool.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../lib/kernel/units.ts';
import { capacityOf, type CapacityTruth } from '../../lib/market/capacity-truth.ts';
import { builtInCatalogue } from '../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../lib/market/price-steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../../lib/market/trace.ts';

const TYPE = 'c5.large';
export const FAMILIES = ['c5'];
export const REGION = 'us-east-1';
export const [BRIEF_ZONE, LASTING_ZONE] = [`${REGION}a`, `${REGION}b`];
/** With the time that an instance takes to start there is none for so much work, however soon it is bought. */
export const UP_S = 900;
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const HISTORY_S = 8 * 86_400;
const LENGTH_S = HISTORY_S + 2 * 86_400;
const END_MS = plus(START_MS, seconds(LENGTH_S));
/** EC2 repeats a price daily: one that nobody repeats is no price to a trained model. */
const DAYS_MS = Float64Array.from({ length: LENGTH_S / 86_400 }, (_, day) => raw(START_MS) + day * 86_400_000);
const entry = builtInCatalogue().entry(TYPE, START_MS);
if (entry === null) throw new Error(`${TYPE} is not in the catalogue`);
const { type } = entry;
const onDemandUsdPerHour = raw(entry.onDemandUsdPerHour);
/** Of spot, throughout: nothing is won by waiting for another. */
const USD_PER_HOUR = { [BRIEF_ZONE]: onDemandUsdPerHour * 0.3, [LASTING_ZONE]: onDemandUsdPerHour * 0.33 };
export const dearestSpotUsdPerHour = onDemandUsdPerHour * 0.33;

/** The first instant of the rehearsal: a week of prices lies behind it, in which capacity never ended. */
export const rehearsalStart: EpochMs = plus(START_MS, seconds(HISTORY_S));

/** Both billed as AWS does. */
const RULES = { billing: 'per-second', refundRule: 'first-hour' } as const;

/** Where the first zone has capacity for `UP_S` from `opened` on. */
export function marketOpenedAt(opened: EpochMs): MarketTrace {
  const until = plus(opened, seconds(UP_S));
  return marketWith({
    atMs: Float64Array.of(raw(START_MS), raw(rehearsalStart), raw(opened), raw(until)),
    available: Uint8Array.of(1, 0, 1, 0),
  });
}

/**
 * Where the first zone has capacity until so long after its first launch: nobody knows how long a deployment takes, and
 * a buyer.
 */
export function marketOpenedByLaunch(): { readonly trace: MarketTrace; readonly truth: CapacityTruth } {
  const trace = marketWith(always());
  let truth = capacityOf(trace, RULES);
  let isOpened = false;
  return {
    trace,
    truth: {
      knows: (pool) => truth.knows(pool),
      most: (pool) => truth.most(pool),
      launch: (pool, at, bid) => {
        if (pool === briefPool && !isOpened) {
          isOpened = true;
          truth = capacityOf(marketOpenedAt(at), RULES);
        }
        return truth.launch(pool, at, bid);
      },
      interruption: (pool, launched, bid) => truth.interruption(pool, launched, bid),
      rebalance: (pool, launched, bid) => truth.rebalance(pool, launched, bid),
      bill: (pool, use) => truth.bill(pool, use),
    },
  };
}

const briefPool = poolKey(TYPE, BRIEF_ZONE, 'spot');

function marketWith(brief: AvailabilitySteps): MarketTrace {
  const markets = Object.entries(USD_PER_HOUR).map(([zone, usdPerHour]): SpotMarket => {
    return {
      type,
      zone,
      onDemandUsdPerHour,
      prices: { atMs: DAYS_MS, usdPerHour: DAYS_MS.map(() => usdPerHour) },
      availability: zone === BRIEF_ZONE ? brief : always(),
    };
  });
  return traceOf({ name: 'rehearsal', startMs: START_MS, endMs: END_MS }, markets);
}

function always(): AvailabilitySteps {
  return { atMs: Float64Array.of(raw(START_MS)), available: Uint8Array.of(1) };
}
