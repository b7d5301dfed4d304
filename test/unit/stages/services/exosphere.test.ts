import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { NEVER_INTERRUPTED } from '../../../../lib/domain/forecast.ts';
import type { Pool } from '../../../../lib/domain/pool.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, usdPerHour } from '../../../../lib/kernel/units.ts';
import type { FootprintContext } from '../../../../lib/policy/services/contracts.ts';
import { exosphere } from '../../../../lib/stages/services/exosphere.ts';
import { pool as poolOf } from '../../../support/builders.ts';

const NOW = epochMs(Date.UTC(2017, 0, 23, 12));
const CHEAP = poolOf({ type: 'a.large', cpus: 2, onDemand: 0.2 });
const OTHER = poolOf({ type: 'b.large', cpus: 2, onDemand: 0.2 });
const hours = (of: (hour: number) => number): readonly number[] => Array.from({ length: 48 }, (_, hour) => of(hour));
/** The cheap pool's price moves, the other one's against it. */
const PRICES = new Map<Pool['id'], readonly number[]>([
  [CHEAP.id, hours((h) => 0.05 + 0.02 * Math.sin(h))],
  [OTHER.id, hours((h) => 0.06 - 0.02 * Math.sin(h))],
]);

const contextOf = (needed: number, held: readonly Pool[] = []): FootprintContext => ({
  nowMs: NOW,
  config: schedulerConfig.parse({}),
  market: { interruption: () => NEVER_INTERRUPTED, expectedPrice: () => null, correlation: () => 0 },
  pools: [CHEAP, OTHER].map((pool) => ({
    pool,
    quote: usdPerHour(PRICES.get(pool.id)?.at(-1) ?? NaN),
    open: true,
    closedReason: null,
  })),
  hourlyUsd: ({ id }) => PRICES.get(id) ?? [],
  held: held.map((pool, i) => ({ id: instanceId(`i-${i}`), pool, bid: 'uncapped', launchedMs: NOW })),
  demand: { utility: (vcpus) => Math.min(1, vcpus / needed), target: 0.95 },
});
const bought = (alpha: number, context: FootprintContext) =>
  exosphere({ alpha })(context).buy.map(({ pool, count }) => `${count} ${pool}`);

describe('ExoSphere', () => {
  it('takes the cheapest pool with little aversion to risk, and spreads with much of it', () => {
    expect(bought(1, contextOf(20))).toEqual([`10 ${CHEAP.id}`]);
    expect(bought(1e9, contextOf(20))).toEqual([`5 ${CHEAP.id}`, `5 ${OTHER.id}`]);
  });

  it('buys what is missing of each share before it gives back what is beyond one', () => {
    const context = contextOf(8, [CHEAP, CHEAP, CHEAP, CHEAP]);
    expect(exosphere({ alpha: 1e9 })(context)).toMatchObject({ buy: [{ pool: OTHER.id, count: 2 }], release: [] });
    const complete = contextOf(8, [CHEAP, CHEAP, CHEAP, OTHER, OTHER]);
    const { buy, release } = exosphere({ alpha: 1e9 })(complete);
    expect(buy).toEqual([]);
    expect(release.map((r) => r.instance)).toEqual([instanceId('i-2')]);
  });

  it('knows no risk of pools without history, and buys nothing where nothing is sold', () => {
    const context = { ...contextOf(4), hourlyUsd: () => [] };
    expect(exosphere({ alpha: 1 })(context).buy.reduce((sum, b) => sum + b.count, 0)).toBeGreaterThanOrEqual(2);
    expect(exosphere({ alpha: 1 })({ ...context, pools: [] })).toEqual({ buy: [], release: [] });
  });
});
