import { epochMs } from '../../lib/kernel/units.ts';
import { traceOf } from '../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { pool } from './builders.ts';

export const START = Date.UTC(2026, 0, 5);
const HOUR_MS = 3_600_000;

interface OnOff {
  readonly days?: number;
  /** Between these hours the price is five times on-demand. */
  readonly dearHours?: readonly [number, number] | readonly [];
}

/** One pool of 4 vCPUs at 0.3 of on-demand, with capacity from the first hour of each pair until the second. */
export function onOffMarket(
  spotHours: readonly (readonly [number, number])[],
  { days = 4, dearHours = [] }: OnOff = {},
): MarketTrace {
  const steps = spotHours.flatMap(([from, until]) => [
    [START + from * HOUR_MS, 1],
    [START + until * HOUR_MS, 0],
  ]);
  const before = spotHours[0]?.[0] === 0 ? [] : [[START - HOUR_MS, 0]];
  const all = [...before, ...steps];
  const { type } = pool();
  return traceOf(
    { name: 'on and off', startMs: epochMs(START - HOUR_MS), endMs: epochMs(START + days * 24 * HOUR_MS) },
    [
      {
        type,
        zone: 'test-1a',
        onDemandUsdPerHour: 1,
        prices: {
          atMs: Float64Array.of(START - HOUR_MS, ...dearHours.map((h) => START + h * HOUR_MS)),
          usdPerHour: Float64Array.of(0.3, 5, 0.3).subarray(0, 1 + dearHours.length),
        },
        availability: {
          atMs: Float64Array.from(all, ([at]) => at ?? 0),
          available: Uint8Array.from(all, ([, up]) => up ?? 0),
        },
      },
    ],
  );
}
