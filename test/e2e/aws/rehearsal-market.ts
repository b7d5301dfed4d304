/**
 * A market of one instance type in two zones. In the first it is cheaper, and no spot instance lives long: there is capacity
 * for ten minutes, then none for a quarter of an hour, again and again. In the second there always is. What runs longer
 * than ten minutes begins in the first zone, is interrupted, and goes on in the second: that leaves a scheduler no other
 * choice, so that it does the same however long its steps take.
 */
import { between, epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../../../lib/market/trace.ts';

const TYPE = 'c5.large';
export const FAMILIES = ['c5'];
export const REGION = 'us-east-1';
export const [BRIEF_ZONE, STEADY_ZONE] = [`${REGION}a`, `${REGION}b`];
const UP_S = 600;
const DOWN_S = 900;
/** From the rehearsal's first instant to the first capacity: a deployment takes that long, at ten times the wall. */
const FIRST_S = 1400;
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const HISTORY_S = 8 * 86_400;
const LENGTH_S = HISTORY_S + 2 * 86_400;
const entry = builtInCatalogue().entry(TYPE, START_MS);
if (entry === null) throw new Error(`${TYPE} is not in the catalogue`);
const { type } = entry;
const onDemandUsdPerHour = raw(entry.onDemandUsdPerHour);
/** Of spot, throughout: nothing is won by waiting for another. */
const USD_PER_HOUR = { [BRIEF_ZONE]: onDemandUsdPerHour * 0.3, [STEADY_ZONE]: onDemandUsdPerHour * 0.33 };
export const dearestSpotUsdPerHour = onDemandUsdPerHour * 0.33;

/** The first instant of the rehearsal: a week of prices lies behind it, in which capacity never ended. */
export const rehearsalStart: EpochMs = plus(START_MS, seconds(HISTORY_S));

/** How long the first zone has had capacity at an instant, s; null while it has none. */
export function upForS(at: EpochMs): number | null {
  const sinceS = raw(between(rehearsalStart, at)) - FIRST_S;
  const inRoundS = sinceS % (UP_S + DOWN_S);
  return sinceS >= 0 && inRoundS < UP_S ? inRoundS : null;
}

export function rehearsalMarket(): MarketTrace {
  const markets = Object.entries(USD_PER_HOUR).map(([zone, usdPerHour]): SpotMarket => {
    return {
      type,
      zone,
      onDemandUsdPerHour,
      prices: { atMs: Float64Array.of(raw(START_MS)), usdPerHour: Float64Array.of(usdPerHour) },
      availability: zone === BRIEF_ZONE ? briefly() : always(),
    };
  });
  return traceOf({ name: 'rehearsal', startMs: START_MS, endMs: plus(START_MS, seconds(LENGTH_S)) }, markets);
}

const always = (): AvailabilitySteps => ({ atMs: Float64Array.of(raw(START_MS)), available: Uint8Array.of(1) });

function briefly(): AvailabilitySteps {
  const atMs = [raw(START_MS), raw(rehearsalStart)];
  const available = [1, 0];
  for (let s = HISTORY_S + FIRST_S; s < LENGTH_S; s += UP_S + DOWN_S) {
    atMs.push(raw(START_MS) + s * 1000, raw(START_MS) + (s + UP_S) * 1000);
    available.push(1, 0);
  }
  return { atMs: Float64Array.from(atMs), available: Uint8Array.from(available) };
}
