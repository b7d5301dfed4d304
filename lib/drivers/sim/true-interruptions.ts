import { FROM_HISTORY, NEVER_INTERRUPTED, type ChosenForecast, type InterruptionCurve } from '../../domain/forecast.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { CapacityTruth } from '../../market/capacity-truth.ts';

/**
 * Forecast choice of a simulation that knows when each instance bought now will be taken; prices are forecast as ever.
 */
export const ORACLE_FORECAST: ChosenForecast = { ...FROM_HISTORY, chosen: 'oracle' };

/** Either side of an interruption, seconds: its curve is a step. */
const EDGE_S = 1;

/** A forecast with the truth about interruptions in it. */
export function withTrueInterruptions(forecast: MarketForecast, truth: CapacityTruth, now: EpochMs): MarketForecast {
  return {
    ...forecast,
    capacity: () => null,
    interruption: (pool, bid) => {
      if (pool.option !== 'spot') return NEVER_INTERRUPTED;
      const taken = truth.interruption(pool.id, now, bid);
      return taken === null ? NEVER_INTERRUPTED : takenAt(secondsBetween(now, taken.warnMs));
    },
  };
}

function takenAt(s: number): InterruptionCurve {
  const reason = 'what will happen';
  if (s <= EDGE_S) return { horizonS: Float64Array.of(EDGE_S), pInterrupted: Float64Array.of(1), reason };
  return { horizonS: Float64Array.of(s - EDGE_S, s), pInterrupted: Float64Array.of(0, 1), reason };
}
