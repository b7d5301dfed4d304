import { epochMs } from '../../../lib/kernel/units.ts';
import { instanceType } from '../../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';

export const TYPE = instanceType({
  name: 'm5.large',
  arch: 'x86_64',
  vcpus: 2,
  memoryMiB: 8192,
  gpus: 0,
  localGb: 0,
  usdPerHour: 0.096,
});

export interface TraceFacts {
  readonly onDemand?: number;
  readonly prices: readonly (readonly [atMs: number, usd: number])[];
  readonly availability?: readonly (readonly [atMs: number, up: 0 | 1])[];
  readonly startMs?: number;
  readonly endMs: number;
}

/** A market of one pool, m5.large in us-east-1a, written out. */
export function tinyTrace(facts: TraceFacts): MarketTrace {
  const market: SpotMarket = {
    type: TYPE,
    zone: 'us-east-1a',
    onDemandUsdPerHour: facts.onDemand ?? 0.096,
    prices: {
      atMs: Float64Array.from(facts.prices, ([at]) => at),
      usdPerHour: Float64Array.from(facts.prices, ([, usd]) => usd),
    },
    availability:
      facts.availability === undefined
        ? null
        : {
            atMs: Float64Array.from(facts.availability, ([at]) => at),
            available: Uint8Array.from(facts.availability, ([, up]) => up),
          },
  };
  return traceOf({ name: 'tiny', startMs: epochMs(facts.startMs ?? 0), endMs: epochMs(facts.endMs) }, [market]);
}
