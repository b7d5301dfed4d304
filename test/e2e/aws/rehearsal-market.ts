/**
 * A market of one instance type in two zones. In the first it is cheaper, and no spot instance lives long: from when it is
 * opened there is capacity for eight minutes, then none for a quarter of an hour, again and again. In the second there always
 * is. What runs that long begins in the first zone, is interrupted, and goes on in the second: that leaves a
 * scheduler no other choice, so that it does the same however long its steps take.
 */
import { poolKey } from '../../../lib/domain/pool.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../../../lib/market/trace.ts';

const TYPE = 'c5.large';
export const FAMILIES = ['c5'];
export const REGION = 'us-east-1';
export const [BRIEF_ZONE, STEADY_ZONE] = [`${REGION}a`, `${REGION}b`];
/** With the time that an instance takes to start there is none for so much work, however soon it is bought. */
export const UP_S = 480;
const DOWN_S = 900;
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
const USD_PER_HOUR = { [BRIEF_ZONE]: onDemandUsdPerHour * 0.3, [STEADY_ZONE]: onDemandUsdPerHour * 0.33 };
export const dearestSpotUsdPerHour = onDemandUsdPerHour * 0.33;

/** The first instant of the rehearsal: a week of prices lies behind it, in which capacity never ended. */
export const rehearsalStart: EpochMs = plus(START_MS, seconds(HISTORY_S));

export interface RehearsalMarket {
  readonly trace: MarketTrace;
  /** From `at` on the first zone has capacity, for a while. What the trace says of earlier instants stays as it was. */
  open(at: EpochMs): void;
}

/** Opened when the rehearsal wants it: nobody knows how long a deployment takes, and nobody should wait for the next round. */
export function rehearsalMarket(): RehearsalMarket {
  const markets = Object.entries(USD_PER_HOUR).map(([zone, usdPerHour]): SpotMarket => {
    return {
      type,
      zone,
      onDemandUsdPerHour,
      prices: { atMs: DAYS_MS, usdPerHour: DAYS_MS.map(() => usdPerHour) },
      availability: always(),
    };
  });
  const trace = traceOf({ name: 'rehearsal', startMs: START_MS, endMs: END_MS }, markets);
  const briefPool = poolKey(TYPE, BRIEF_ZONE, 'spot');
  let steps = briefly(null);
  return {
    trace: { ...trace, availability: (pool) => (pool === briefPool ? steps : trace.availability(pool)) },
    open: (at) => {
      steps = briefly(at);
    },
  };
}

const always = (): AvailabilitySteps => ({ atMs: Float64Array.of(raw(START_MS)), available: Uint8Array.of(1) });

/** None from the rehearsal's first instant until the first zone is opened. */
function briefly(opened: EpochMs | null): AvailabilitySteps {
  const atMs = [raw(START_MS), raw(rehearsalStart)];
  const available = [1, 0];
  for (let at = raw(opened ?? END_MS); at < raw(END_MS); at += (UP_S + DOWN_S) * 1000) {
    atMs.push(at, at + UP_S * 1000);
    available.push(1, 0);
  }
  return { atMs: Float64Array.from(atMs), available: Uint8Array.from(available) };
}
