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

  it('says why, by pool', () => {
    const reasons = (wanted: readonly Wanted[]): string[] =>
      priceCapacityOptimized(acquireInput(wanted, { pools, market: risks })).map((p) => `${p.pool}: ${p.reason}`);
    const two = [want({ id: 'a', count: 1 }), want({ id: 'b', count: 2, pools: [onDemand] })];
    const told = [
      `${id('d')}: one instance for each of 1 task, the lowest price among the pools of least risk`,
      `${onDemand.pool.id}: one instance for each of 2 tasks`,
    ].sort();
    expect(reasons(two)).toEqual(told);
    expect(reasons([...two].reverse())).toEqual(told);
  });

  it('serves deadlines before the rest, and then by id, within the limit', () => {
    const urgent = want({ id: 'z', count: 2, group: group({ id: 'z', count: 2, class: 'deadline' }) });
    const rest = want({ id: 'a', count: 2, pools: [onDemand] });
    for (const wanted of [
      [urgent, rest],
      [rest, urgent],
    ])
      expect(bought(wanted, { vcpus: 5 })).toEqual([[id('d'), 2, 'uncapped']]);
    const later = want({ id: 'b', count: 2 });
    for (const wanted of [
      [later, rest],
      [rest, later],
    ])
      expect(bought(wanted, { vcpus: 5 })).toEqual([[onDemand.pool.id, 2, 'uncapped']]);
    // Three of four vCPUs are not enough for a second instance.
    expect(bought([rest, later], { vcpus: 7 }).map(([, count]) => count)).toEqual([2, 1]);
  });

  it('takes as equal what is as safe as the last of the safest third, and the first name at one price', () => {
    const graded = market(pools, (p) => exponential(0.01 * (1 + zones.indexOf(p.zone.at(-1) ?? ''))));
    expect(bought([want({ id: 'a', count: 1 })], { market: graded })).toEqual([[id('a'), 1, 'uncapped']]);
    const reversed = market(pools, (p) => exponential(0.01 * (9 - zones.indexOf(p.zone.at(-1) ?? ''))));
    expect(bought([want({ id: 'a', count: 1 })], { market: reversed })).toEqual([[id('e'), 1, 'uncapped']]);
    const alike = market(pools, () => exponential(0.03));
    const same = [...spot].reverse().map((v) => view(v.pool, 0.03));
    expect(bought([want({ id: 'a', count: 1, pools: same })], { pools: same, market: alike })).toEqual([
      [id('a'), 1, 'uncapped'],
    ]);
  });

  it('leaves out pools without a price, and buys nothing where the chosen pool is gone', () => {
    const priceless = pools.map((v) => (v.pool.id === id('d') ? view(v.pool, null) : v));
    expect(bought([want({ id: 'a', count: 1 })], { pools: priceless })).toEqual([[id('e'), 1, 'uncapped']]);
    const gone = pools.filter((v) => v.pool.id !== id('a'));
    expect(bought([want({ id: 'a', count: 1 })], { pools: gone })).toEqual([]);
  });

  it('keeps to reserved capacity that the plan chose', () => {
    const mine = view(pool({ zone: 'r', option: 'reserved' }), 0);
    const cheaper = view(pool({ zone: 'a', option: 'reserved' }), 0);
    expect(bought([want({ id: 'a', count: 1, pools: [mine] })], { pools: [...pools, cheaper, mine] })).toEqual([
      [mine.pool.id, 1, 'uncapped'],
    ]);
  });

  it('stops at the vCPU limit, with gangs whole or not at all', () => {
    expect(bought([want({ id: 'a', count: 5 })], { vcpus: 6 })).toEqual([[id('d'), 3, 'uncapped']]);
    const gang = group({ id: 'a', count: 5, need: resources(1, 1) });
    const together = { ...gang, stage: { ...gang.stage, gang: true } };
    expect(bought([want({ id: 'a', count: 5, group: together })], { vcpus: 6 })).toEqual([]);
  });
});
