import { epochMs, least, raw, type EpochMs } from '../kernel/units.ts';
import { indexAt } from './price-steps.ts';
import type { MarketTrace } from './trace.ts';

/** A market as known at a time: without later prices and changes of availability. */
export function knownUntil(trace: MarketTrace, at: EpochMs): MarketTrace {
  const endMs = raw(least(trace.endMs, at));
  return {
    ...trace,
    endMs: epochMs(endMs),
    prices: (pool) => {
      const { atMs, usdPerHour } = trace.prices(pool);
      const count = indexAt(atMs, endMs) + 1;
      return { atMs: atMs.subarray(0, count), usdPerHour: usdPerHour.subarray(0, count) };
    },
    availability: (pool) => {
      const steps = trace.availability(pool);
      if (steps === null) return null;
      // The first holds before itself as well.
      const count = Math.max(1, indexAt(steps.atMs, endMs) + 1);
      return { atMs: steps.atMs.subarray(0, count), available: steps.available.subarray(0, count) };
    },
  };
}
