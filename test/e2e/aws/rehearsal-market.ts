/**
 * A market of one instance type in two zones, in which no spot instance lives long: each zone has capacity for 12 minutes,
 * then none for 6, the two in turn. What runs for longer than 12 minutes on spot is interrupted, wherever it began.
 */
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../../../lib/market/trace.ts';

const TYPE = 'c5.large';
export const FAMILIES = ['c5'];
export const REGION = 'us-east-1';
/** Of on-demand. */
const PRICE_FRACTION = 0.3;
const UP_S = 720;
const DOWN_S = 360;
const START_MS = epochMs(Date.UTC(2026, 0, 5));
const HISTORY_S = 8 * 86_400;
const LENGTH_S = HISTORY_S + 2 * 86_400;

/** The first instant of the rehearsal: a week of prices lies behind it, in which capacity never ended. */
export const rehearsalStart: EpochMs = plus(START_MS, seconds(HISTORY_S));

export function rehearsalMarket(): MarketTrace {
  const entry = builtInCatalogue().entry(TYPE, START_MS);
  if (entry === null) throw new Error(`${TYPE} is not in the catalogue`);
  const onDemandUsdPerHour = raw(entry.onDemandUsdPerHour);
  const markets = ['a', 'b'].map((letter, n): SpotMarket => {
    return {
      type: entry.type,
      zone: `${REGION}${letter}`,
      onDemandUsdPerHour,
      // One price throughout: nothing is won by waiting for another.
      prices: {
        atMs: Float64Array.of(raw(START_MS)),
        usdPerHour: Float64Array.of(onDemandUsdPerHour * PRICE_FRACTION),
      },
      availability: inTurn(n * (UP_S - DOWN_S)),
    };
  });
  return traceOf({ name: 'rehearsal', startMs: START_MS, endMs: plus(START_MS, seconds(LENGTH_S)) }, markets);
}

function inTurn(shiftS: number): AvailabilitySteps {
  const atMs = [raw(START_MS)];
  const available = [1];
  for (let s = HISTORY_S + shiftS; s < LENGTH_S; s += UP_S + DOWN_S) {
    atMs.push(raw(START_MS) + (s + UP_S) * 1000, raw(START_MS) + (s + UP_S + DOWN_S) * 1000);
    available.push(0, 1);
  }
  return { atMs: Float64Array.from(atMs), available: Uint8Array.from(available) };
}
