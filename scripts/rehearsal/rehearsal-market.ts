/**
 * Market of one instance type in two zones. The first zone is cheaper, but has capacity only for a quarter of an hour
 * after its opening. The second always has capacity. Longer work starts in the first, is interrupted, and goes on in
 * the second. The scheduler has no other choice, so it does the same however long its steps take.
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
/**
 * Seconds of capacity in the first zone: less than the work and an instance's start take, however soon it is bought.
 */
export const UP_S = 900;
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const HISTORY_S = 8 * 86_400;
const LENGTH_S = HISTORY_S + 2 * 86_400;
const END_MS = plus(START_MS, seconds(LENGTH_S));
/** Daily prices, because EC2 repeats a price daily, and a trained model ignores stale ones. */
const DAYS_MS = Float64Array.from({ length: LENGTH_S / 86_400 }, (_, day) => raw(START_MS) + day * 86_400_000);
const entry = builtInCatalogue().entry(TYPE, START_MS);
if (entry === null) throw new Error(`${TYPE} is not in the catalogue`);
const { type } = entry;
const onDemandUsdPerHour = raw(entry.onDemandUsdPerHour);
/** Constant spot prices: waiting for another gains nothing. */
const USD_PER_HOUR = { [BRIEF_ZONE]: onDemandUsdPerHour * 0.3, [LASTING_ZONE]: onDemandUsdPerHour * 0.33 };
export const dearestSpotUsdPerHour = onDemandUsdPerHour * 0.33;

/** Start of the rehearsal, after a week of prices without an end of capacity. */
export const rehearsalStart: EpochMs = plus(START_MS, seconds(HISTORY_S));

/** Rules of AWS for both. */
const RULES = { billing: 'per-second', refundRule: 'first-hour' } as const;

/** Market whose first zone has capacity for `UP_S` from `opened`. */
export function marketOpenedAt(opened: EpochMs): MarketTrace {
  const until = plus(opened, seconds(UP_S));
  return marketWith({
    atMs: Float64Array.of(raw(START_MS), raw(rehearsalStart), raw(opened), raw(until)),
    available: Uint8Array.of(1, 0, 1, 0),
  });
}

export interface OpenedMarket {
  readonly trace: MarketTrace;
  readonly truth: CapacityTruth;
  /** EC2 takes the next instance of the second zone back, so many market seconds after its launch. */
  takeNext(afterS: number): void;
}

/** Notice of EC2 before an interruption, market seconds. */
const NOTICE_S = 120;

/** Market whose first zone opens at its first launch: the times of deployment and purchase are unknown. */
export function marketOpenedByLaunch(): OpenedMarket {
  const trace = marketWith(always());
  let truth = capacityOf(trace, RULES);
  let isOpened = false;
  let takenAfterS: number | null = null;
  const taken = new Map<number, number>();
  return {
    trace,
    takeNext: (afterS) => {
      takenAfterS = afterS;
    },
    truth: {
      knows: (pool) => truth.knows(pool),
      most: (pool) => truth.most(pool),
      launch: (pool, at, bid) => {
        if (pool === briefPool && !isOpened) {
          isOpened = true;
          truth = capacityOf(marketOpenedAt(at), RULES);
        }
        if (pool === lastingPool && takenAfterS !== null) {
          taken.set(raw(at), takenAfterS);
          takenAfterS = null;
        }
        return truth.launch(pool, at, bid);
      },
      ready: (of, launched) => truth.ready(of, launched),
      interruption: (pool, launched, bid) => {
        const afterS = pool === lastingPool ? taken.get(raw(launched)) : undefined;
        if (afterS === undefined) return truth.interruption(pool, launched, bid);
        // One of several that are launched together; the engine asks once for each.
        taken.delete(raw(launched));
        const goneMs = plus(launched, seconds(afterS));
        return { warnMs: plus(goneMs, seconds(-NOTICE_S)), goneMs, cause: 'capacity' };
      },
      rebalance: (pool, launched, bid) => truth.rebalance(pool, launched, bid),
      bill: (pool, use) => truth.bill(pool, use),
    },
  };
}

const briefPool = poolKey(TYPE, BRIEF_ZONE, 'spot');
const lastingPool = poolKey(TYPE, LASTING_ZONE, 'spot');

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
