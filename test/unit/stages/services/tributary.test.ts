import { describe, expect, it } from '@jest/globals';
import { schedulerConfig, type SchedulerConfig } from '../../../../lib/domain/config.ts';
import { capUsd, vcpusOf, type Bid, type Pool, type PoolView } from '../../../../lib/domain/pool.ts';
import type { MarketForecast } from '../../../../lib/domain/forecasts.ts';
import { epochMs, plus, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { expectedUtility, remainingOf } from '../../../../lib/policy/footprint/remaining.ts';
import type { FootprintContext, HeldInstance } from '../../../../lib/policy/services/contracts.ts';
import { tributary } from '../../../../lib/stages/services/tributary.ts';
import { pool as poolOf } from '../../../support/builders.ts';

const NOW = epochMs(Date.UTC(2017, 0, 23, 12));
const ON_DEMAND_USD = 0.1;
/** Most bids at the price are lost within an hour, and hardly any at 0.05 USD above it. */
const pLost = (bid: Bid, priceUsd: number): number => 0.8 * Math.exp((priceUsd - capUsd(bid)) / 0.01);

interface Sold {
  readonly pool: Pool;
  readonly usd: number | null;
  readonly open?: boolean;
}
const sold = (name: string, usd: number | null, over: Partial<Sold> = {}): Sold => ({
  pool: poolOf({ type: `${name}.large`, cpus: 2, onDemand: ON_DEMAND_USD }),
  usd,
  ...over,
});

function contextOf(
  of: readonly Sold[],
  over: Partial<FootprintContext> & { readonly needed?: number; readonly correlation?: number } = {},
): FootprintContext {
  const { needed = 10, correlation = 0, ...rest } = over;
  const price = new Map(of.map(({ pool, usd }) => [pool.id, usd ?? NaN]));
  const market: MarketForecast = {
    interruption: (pool, bid) => ({
      horizonS: Float64Array.of(3600),
      pInterrupted: Float64Array.of(pLost(bid, price.get(pool.id) ?? NaN)),
      reason: 'a formula',
    }),
    expectedPrice: () => null,
    correlation: (a, b) => (a.id === b.id ? 1 : correlation),
  };
  return {
    nowMs: NOW,
    config: schedulerConfig.parse({}),
    market,
    pools: of.map(({ pool, usd, open = true }): PoolView => ({
      pool,
      quote: usd === null ? null : usdPerHour(usd),
      open,
      closedReason: null,
    })),
    hourlyUsd: () => [],
    held: [],
    demand: { utility: (vcpus) => Math.min(1, vcpus / needed), target: 0.95 },
    ...rest,
  };
}

let made = 0;
const held = (pool: Pool, over: Partial<HeldInstance> = {}): HeldInstance => ({
  id: instanceId(`i-${made++}`),
  pool,
  bid: usdPerHour(ON_DEMAND_USD),
  launchedMs: plus(NOW, seconds(-600)),
  ...over,
});

/** Expected share in time after a decision, by the definition. */
function reached(context: FootprintContext): number {
  const { buy, release } = tributary()(context);
  const gone = new Set(release.map((r) => r.instance));
  const kept = context.held.filter((h) => !gone.has(h.id)).map(({ pool, bid }) => ({ pool, bid, count: 1 }));
  const bought = buy.map(({ pool, bid, count }) => {
    const view = context.pools.find((v) => v.pool.id === pool);
    if (view === undefined) throw new Error(`bought in ${pool}, which is not sold`);
    return { pool: view.pool, bid, count };
  });
  const chains = Map.groupBy([...kept, ...bought], (of) => of.pool.id);
  const remaining = remainingOf(
    [...chains.values()].map((of) =>
      of
        .toSorted((a, b) => capUsd(a.bid) - capUsd(b.bid))
        .map(({ pool, bid, count }) => ({
          units: count * vcpusOf(pool),
          pLost: context.market.interruption(pool, bid).pInterrupted[0] ?? NaN,
        })),
    ),
  );
  return expectedUtility(remaining, context.demand.utility);
}

const three = [sold('a', 0.02), sold('b', 0.025), sold('c', 0.03)];
const config = (over: Partial<SchedulerConfig>): SchedulerConfig => ({ ...schedulerConfig.parse({}), ...over });

describe('Tributary’s acquisition', () => {
  it('buys until the target is met in expectation, and no more than a step beyond it', () => {
    const context = contextOf(three, { config: config({ correlationPenalty: 0 }) });
    expect(reached(context)).toBeGreaterThanOrEqual(0.95);
    const { buy } = tributary()(context);
    const vcpus = buy.reduce((sum, { count }) => sum + 2 * count, 0);
    expect(vcpus).toBeGreaterThanOrEqual(10);
    expect(vcpus).toBeLessThanOrEqual(24);
  });

  it('bids above the price, and at most the on-demand price', () => {
    const { buy } = tributary()(contextOf([sold('a', 0.02), sold('d', 0.0995)], { needed: 60 }));
    expect(buy.length).toBeGreaterThan(0);
    for (const { bid } of buy) expect(capUsd(bid)).toBeGreaterThan(0.02);
    for (const { bid } of buy) expect(capUsd(bid)).toBeLessThanOrEqual(ON_DEMAND_USD);
  });

  it('buys where prices do not move together', () => {
    const pairs = [sold('a', 0.02), sold('b', 0.0201)];
    const pools = (correlation: number, gamma: number): number =>
      new Set(
        tributary()(
          contextOf(pairs, { correlation, config: config({ correlationPenalty: gamma }), needed: 40 }),
        ).buy.map((b) => b.pool),
      ).size;
    expect(pools(0, 0.3)).toBe(2);
  });

  it('buys nothing in pools that are closed, without a price, or dearer than on demand', () => {
    const closed = [sold('a', 0.02, { open: false }), sold('b', null), sold('c', 0.2)];
    expect(tributary()(contextOf(closed))).toEqual({ buy: [], release: [] });
  });

  it('buys nothing for a target that no capacity reaches', () => {
    const demand = { utility: () => 0.5, target: 0.95 };
    expect(tributary()(contextOf(three, { demand })).buy).toEqual([]);
  });

  it('does nothing while the target is met and not passed', () => {
    const [a] = three;
    if (a === undefined) throw new Error('there is a pool');
    const of = Array.from({ length: 5 }, () => held(a.pool, { bid: 'uncapped' }));
    const decided = tributary()(contextOf(three, { held: of, config: config({ correlationPenalty: 0 }), needed: 10 }));
    expect(decided).toEqual({ buy: [], release: [] });
  });

  it('gives back, while the target holds, what has the least time left in its window', () => {
    const [a] = three;
    if (a === undefined) throw new Error('there is a pool');
    const launched = [40, 20, 30, 10, 5].map((minutes) => plus(NOW, seconds(-60 * minutes)));
    const of = launched.map((launchedMs) => held(a.pool, { bid: 'uncapped', launchedMs }));
    const context = contextOf(three, { held: of, config: config({ correlationPenalty: 0 }), needed: 6 });
    const { buy, release } = tributary()(context);
    expect(buy).toEqual([]);
    expect(release.map((r) => r.instance)).toEqual([of[0]?.id, of[2]?.id]);
    expect(reached(context)).toBeGreaterThanOrEqual(0.95);
  });

  it('keeps what is likely to be free', () => {
    const [a] = three;
    if (a === undefined) throw new Error('there is a pool');
    const bid = usdPerHour(0.0201);
    const launchedMs = plus(NOW, seconds(-30 * 60));
    const of = Array.from({ length: 8 }, () => held(a.pool, { bid, launchedMs }));
    const sure = Array.from({ length: 5 }, () => held(a.pool, { bid: 'uncapped', launchedMs }));
    const change = tributary()(contextOf(three, { held: [...of, ...sure], needed: 4 }));
    const released = new Set(change.release.map((r) => r.instance));
    expect(released.size).toBeGreaterThan(0);
    expect(of.filter((h) => released.has(h.id))).toEqual([]);
  });

  it('replaces what reaches the end of its window before that, and ends it then', () => {
    const [a] = three;
    if (a === undefined) throw new Error('there is a pool');
    const at = (secondsAgo: number) =>
      Array.from({ length: 5 }, () => held(a.pool, { bid: 'uncapped', launchedMs: plus(NOW, seconds(-secondsAgo)) }));
    const soon = tributary()(contextOf(three, { held: at(3590) }));
    expect(soon.release).toEqual([]);
    expect(soon.buy.length).toBeGreaterThan(0);
    const over = tributary()(contextOf(three, { held: at(3600) }));
    expect(over.release).toHaveLength(5);
    expect(over.buy.length).toBeGreaterThan(0);
    const noRefund = { held: at(7200), config: config({ refundRule: 'none', correlationPenalty: 0 }) };
    expect(tributary()(contextOf(three, noRefund))).toEqual({ buy: [], release: [] });
  });

  it('takes more risk, for refunds, where only losses until a replacement serves count', () => {
    const expectedUsd = (lossHorizonS: number): number =>
      tributary({ lossHorizonS })(contextOf(three, { needed: 100 })).buy.reduce((sum, { pool, bid, count }) => {
        const usd = three.find((of) => of.pool.id === pool)?.usd ?? NaN;
        return sum + count * usd * (1 - pLost(bid, usd));
      }, 0);
    expect(expectedUsd(300)).toBeLessThan(0.8 * expectedUsd(3600));
  });

  it('does not depend on the order of pools and instances', () => {
    const of = three.flatMap(({ pool }) => [held(pool), held(pool, { bid: usdPerHour(0.05) })]);
    const context = contextOf(three, { held: of, needed: 30 });
    const turned = { ...context, held: of.toReversed(), pools: context.pools.toReversed() };
    const sorted = ({ buy, release }: ReturnType<ReturnType<typeof tributary>>) => ({
      buy: buy.map((b) => `${b.pool} ${capUsd(b.bid)} ${b.count}`).sort(),
      release: release.map((r) => r.instance).sort(),
    });
    expect(sorted(tributary()(turned))).toEqual(sorted(tributary()(context)));
    expect(raw(context.nowMs)).toBe(raw(NOW));
  });
});
