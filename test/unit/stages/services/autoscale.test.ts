import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { NEVER_INTERRUPTED } from '../../../../lib/domain/forecast.ts';
import type { Pool } from '../../../../lib/domain/pool.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, usdPerHour } from '../../../../lib/kernel/units.ts';
import type { FootprintContext } from '../../../../lib/policy/services/contracts.ts';
import {
  autoscaleDiversified,
  autoscaleLowest,
  onDemandAutoscale,
  withBuffer,
} from '../../../../lib/stages/services/autoscale.ts';
import { pool as poolOf } from '../../../support/builders.ts';

const NOW = epochMs(Date.UTC(2017, 0, 23, 12));
const spot = (name: string, cpus: number): Pool => poolOf({ type: name, cpus, onDemand: 0.1 * cpus });
const [A, B, C] = [spot('a.large', 2), spot('b.large', 2), spot('c.xlarge', 4)] as const;
const ON_DEMAND = poolOf({ type: 'a.large', cpus: 2, onDemand: 0.2, option: 'on-demand' });
/** Per vCPU: a 0.015, b 0.02, c 0.0125. */
const PRICES = new Map([
  [A, 0.03],
  [B, 0.04],
  [C, 0.05],
  [ON_DEMAND, 0.2],
]);

function contextOf(needed: number, held: readonly Pool[] = [], closed: readonly Pool[] = []): FootprintContext {
  return {
    nowMs: NOW,
    config: schedulerConfig.parse({}),
    market: { interruption: () => NEVER_INTERRUPTED, expectedPrice: () => null, correlation: () => 0 },
    pools: [...PRICES].map(([pool, usd]) => ({
      pool,
      quote: usdPerHour(usd),
      open: !closed.includes(pool),
      closedReason: null,
    })),
    hourlyUsd: () => [],
    held: held.map((pool, i) => ({ id: instanceId(`i-${i}`), pool, bid: 'uncapped', launchedMs: NOW })),
    demand: { utility: (vcpus) => Math.min(1, vcpus / needed), target: 0.95 },
  };
}
const bought = ({ buy }: ReturnType<typeof autoscaleLowest>) => buy.map(({ pool, count }) => `${count} ${pool}`);

describe('AWS AutoScale', () => {
  it('buys the lowest price per vCPU, as much as is missing, and bids the on-demand price', () => {
    const change = autoscaleLowest(contextOf(9, [A]));
    expect(bought(change)).toEqual([`2 ${C.id}`]);
    expect(change.buy[0]?.bid).toBe(C.onDemandUsdPerHour);
    expect(bought(autoscaleLowest(contextOf(4, [], [C])))).toEqual([`2 ${A.id}`]);
    expect(bought(onDemandAutoscale(contextOf(3)))).toEqual([`2 ${ON_DEMAND.id}`]);
  });

  it('spreads instances evenly, counting those held', () => {
    expect(bought(autoscaleDiversified(contextOf(10, [C]))).sort()).toEqual(
      [`1 ${A.id}`, `1 ${B.id}`, `1 ${C.id}`].sort(),
    );
  });

  it('gives back the dearest as far as it is too much, and nothing beyond', () => {
    const { buy, release } = autoscaleLowest(contextOf(6, [A, B, C]));
    expect(buy).toEqual([]);
    // 2 of 8 vCPUs are too many: the one of b.
    expect(release.map((r) => r.instance)).toEqual([instanceId('i-1')]);
    expect(autoscaleLowest(contextOf(7, [A, B, C]))).toEqual({ buy: [], release: [] });
  });

  it('keeps a buffer of a share of what the load needs', () => {
    expect(bought(withBuffer(autoscaleLowest, 0.5)(contextOf(8)))).toEqual([`3 ${C.id}`]);
  });

  it('buys nothing where nothing is sold', () => {
    expect(autoscaleLowest(contextOf(8, [], [A, B, C]))).toEqual({ buy: [], release: [] });
    expect(autoscaleDiversified(contextOf(8, [], [A, B, C]))).toEqual({ buy: [], release: [] });
  });
});
