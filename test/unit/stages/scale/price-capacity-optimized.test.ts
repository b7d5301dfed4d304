import { describe, expect, it } from '@jest/globals';
import { priceCapacityOptimized } from '../../../../lib/stages/scale/price-capacity-optimized.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';
import { exponential, group, market, pool, resources, view } from '../../../support/decision-world.ts';

/** Six spot pools of one type, dearer from zone to zone; a to c are taken more often than d to f. */
const zones = ['a', 'b', 'c', 'd', 'e', 'f'];
const spot = zones.map((z, i) => view(pool({ zone: `us-east-1${z}` }), 0.03 + i / 1000));
const onDemand = view(pool({ option: 'on-demand', onDemand: 0.1 }), 0.1);
const pools = [...spot, onDemand];
const risks = market(pools, (p) => exponential('abc'.includes(p.zone.at(-1) ?? '') ? 0.5 : 0.01));

const want = (over: Partial<Wanted> & { id: string; count: number }): Wanted => ({
  group: group({ id: over.id, count: over.count, need: resources(1, 1), ...over.group }),
  runtimeS: 3600,
  pools: spot,
  ...over,
});
const bought = (wanted: readonly Wanted[], facts: Partial<Parameters<typeof acquireInput>[1]> = {}) =>
  priceCapacityOptimized(acquireInput(wanted, { pools, market: risks, ...facts })).map((p) => [p.pool, p.count, p.bid]);
const id = (zone: string): string => spot[zones.indexOf(zone)]?.pool.id ?? '';

describe('price-capacity-optimized', () => {
  it('buys in the cheapest of the pools with the least risk, whatever the plan chose, without a bid', () => {
    expect(bought([want({ id: 'a', count: 1 })])).toEqual([[id('d'), 1, 'uncapped']]);
  });

  it('goes by price alone where nothing is known of the risks', () => {
    const alike = market(pools, () => exponential(0.03));
    expect(bought([want({ id: 'a', count: 1 })], { market: alike })).toEqual([[id('a'), 1, 'uncapped']]);
  });

  it('buys an instance for each task, though two would fit on one', () => {
    expect(bought([want({ id: 'a', count: 5 })])).toEqual([[id('d'), 5, 'uncapped']]);
  });

  it('leaves pools out that rest', () => {
    const closed = pools.map((v) => (v.pool.id === id('d') ? { ...v, open: false, closedReason: 'capacity' } : v));
    expect(bought([want({ id: 'a', count: 1 })], { pools: closed })).toEqual([[id('e'), 1, 'uncapped']]);
  });

  it('buys capacity that stays where the plan chose it', () => {
    expect(bought([want({ id: 'a', count: 2, pools: [onDemand] })])).toEqual([[onDemand.pool.id, 2, 'uncapped']]);
  });

  it('then takes the cheapest machine that holds the task, though a share of a larger one were cheaper', () => {
    const large = view(pool({ type: 'm5.8xlarge', option: 'on-demand', vcpus: 32, gib: 128, onDemand: 1 }), 1);
    const facts = { pools: [...pools, large] };
    const need = resources(1, 1);
    expect(bought([want({ id: 'a', count: 2, pools: [large] })], facts)).toEqual([[onDemand.pool.id, 2, 'uncapped']]);
    const big = group({ id: 'b', count: 2, need: resources(8, 1) });
    expect(bought([want({ id: 'b', count: 2, group: big, pools: [large] })], facts)).toEqual([
      [large.pool.id, 2, 'uncapped'],
    ]);
    const bound = group({ id: 'c', count: 1, need });
    const typed = { ...bound, stage: { ...bound.stage, constraints: { instanceTypes: ['m5.8xlarge'] } } };
    expect(bought([want({ id: 'c', count: 1, group: typed, pools: [large] })], facts)).toEqual([
      [large.pool.id, 1, 'uncapped'],
    ]);
  });

  it('stops at the vCPU limit, with gangs whole or not at all', () => {
    expect(bought([want({ id: 'a', count: 5 })], { vcpus: 6 })).toEqual([[id('d'), 3, 'uncapped']]);
    const gang = group({ id: 'a', count: 5, need: resources(1, 1) });
    const together = { ...gang, stage: { ...gang.stage, gang: true } };
    expect(bought([want({ id: 'a', count: 5, group: together })], { vcpus: 6 })).toEqual([]);
  });
});
