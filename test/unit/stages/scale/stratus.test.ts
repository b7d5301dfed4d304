import { describe, expect, it } from '@jest/globals';
import { raw } from '../../../../lib/kernel/units.ts';
import type { Purchase } from '../../../../lib/domain/plan.ts';
import { cheapestFit } from '../../../../lib/stages/scale/cheapest-fit.ts';
import { stratusScaler } from '../../../../lib/stages/scale/stratus.ts';
import { supercloud } from '../../../../lib/stages/scale/supercloud.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';
import { group, instance, pool, resources, view, type GroupFacts } from '../../../support/decision-world.ts';

/** Two sizes at one price per vCPU, spot at two fifths of on-demand. */
const small = view(pool({ type: 'm5.large', vcpus: 2, gib: 8, onDemand: 0.1 }), 0.04);
const large = view(pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4 }), 0.16);
const pools = [small, large];

const want = (id: string, over: Partial<GroupFacts> & { readonly runtimeS?: number } = {}): Wanted => {
  const { runtimeS = 3000, ...facts } = over;
  return { group: group({ need: resources(1, 1), ...facts, id }), runtimeS, pools: [small] };
};
const counts = (purchases: readonly Purchase[]): Record<string, number> =>
  Object.fromEntries(purchases.map((p) => [p.pool, p.count]));
const stratus = stratusScaler({ mostTasks: Infinity });
const bought = (wanted: readonly Wanted[], facts: Partial<Parameters<typeof acquireInput>[1]> = {}) =>
  counts(stratus(acquireInput(wanted, { pools, ...facts })));

describe('Stratus’ scaler', () => {
  it('takes the pair of most used constraining resource per dollar', () => {
    // 5 tasks of 1 vCPU. The large type holds all five: (5 / 2) / 0.16 = 15.6. The small one holds two:
    // (2 / 2) / 0.04 = 25. So it is bought twice; the last task scores (1 / 2) / 0.04 = 12.5 on it.
    expect(bought([want('a', { count: 5 })])).toEqual({ [small.pool.id]: 3 });
    // At 0.08 the large one scores (5 / 2) / 0.08 = 31.25.
    expect(bought([want('a', { count: 5 })], { pools: [small, view(large.pool, 0.08)] })).toEqual({
      [large.pool.id]: 1,
    });
  });

  it('normalises by the smallest type: the example of section 3.2.3', () => {
    // 4 vCPUs and 1 GiB on 8 vCPUs and 16 GiB: CPU constrains, 4 / 2 = 2. On 64 vCPUs and 16 GiB too.
    const eight = view(pool({ type: 'c5.2xlarge', vcpus: 8, gib: 16, onDemand: 1 }), 0.2);
    const sixtyFour = view(pool({ type: 'c5.16xlarge', vcpus: 64, gib: 16, onDemand: 1 }), 0.19);
    const one = want('a', { need: resources(4, 1) });
    expect(bought([one], { pools: [eight, sixtyFour] })).toEqual({ [sixtyFour.pool.id]: 1 });
    // With 15 GiB memory constrains: 15 / 16 in both, and the price decides again.
    const wide = want('a', { need: resources(4, 15) });
    expect(bought([wide], { pools: [eight, view(sixtyFour.pool, 0.21)] })).toEqual({ [eight.pool.id]: 1 });
  });

  it('does not mix runtime bins on one instance', () => {
    // 1 task of [2048, 4096) s and 1 of [32, 64) s would fit on one small instance.
    expect(bought([want('a'), want('b', { runtimeS: 60 })])).toEqual({ [small.pool.id]: 2 });
    expect(bought([want('a'), want('b', { runtimeS: 2100 })])).toEqual({ [small.pool.id]: 1 });
  });

  it('bids the on-demand price for spot, and leaves spot that costs more', () => {
    const purchases = stratus(acquireInput([want('a')], { pools }));
    expect(purchases.map(({ bid }) => (bid === 'uncapped' ? bid : raw(bid)))).toEqual([0.1]);
    const onDemand = view(pool({ type: 'm5.large', vcpus: 2, gib: 8, option: 'on-demand', onDemand: 0.1 }), 0.1);
    const spiked = stratus(acquireInput([want('a')], { pools: [view(small.pool, 0.11), onDemand] }));
    expect(spiked.map(({ pool: id, bid }) => [id, bid])).toEqual([[onDemand.pool.id, 'uncapped']]);
  });

  it('keeps to constraints: no group has a task that may not go there', () => {
    const zoned = want('z', { stage: { constraints: { zones: ['us-east-1b'] } } });
    const other = view(pool({ type: 'm5.large', vcpus: 2, gib: 8, zone: 'us-east-1b', onDemand: 0.1 }), 0.05);
    const elsewhere = want('a', { stage: { constraints: { zones: ['us-east-1a'] } } });
    const both = { [other.pool.id]: 1, [small.pool.id]: 1 };
    expect(bought([zoned, elsewhere], { pools: [small, other] })).toEqual(both);
    expect(bought([zoned, want('a')], { pools: [small, other] })).toEqual({ [other.pool.id]: 1 });
  });

  it('buys nothing where no pool fits, sells or has a price, and nothing for nothing', () => {
    expect(bought([want('a', { need: resources(9, 1) })])).toEqual({});
    expect(bought([want('a')], { pools: [view(small.pool, null), view(large.pool, 0.1, false)] })).toEqual({});
    expect(bought([want('a')], { pools: [] })).toEqual({});
    expect(bought([])).toEqual({});
    expect(bought([want('a', { need: resources(9, 1) }), want('b')])).toEqual({ [small.pool.id]: 1 });
  });

  it('stops at the vCPU limit, and buys gangs whole or not at all', () => {
    const held = [instance('i', large.pool)];
    expect(bought([want('a', { count: 8 })], { vcpus: 8 + 5, instances: held })).toEqual({ [small.pool.id]: 2 });
    const gang = want('g', { count: 8, stage: { gang: true } });
    expect(bought([gang, want('a')], { vcpus: 6 })).toEqual({ [small.pool.id]: 1 });
    // Of equal scores the larger group: 8 tasks on the large type, not 2 on the small one.
    expect(bought([gang], { vcpus: 8 })).toEqual({ [large.pool.id]: 1 });
  });

  it('buys for each task alone where it may not pack', () => {
    const alone = stratusScaler({ mostTasks: 1 });
    expect(counts(alone(acquireInput([want('a', { count: 5 })], { pools })))).toEqual({ [small.pool.id]: 5 });
  });

  it('says what for', () => {
    const [purchase] = stratus(acquireInput([want('a', { count: 4 })], { pools }));
    expect(purchase?.reason).toBe('for 4 tasks on 2 instances, 100 % full, at 0.0400 USD per instance-hour');
  });
});

describe('HotSpot’s purchase', () => {
  const hotspot = (wanted: readonly Wanted[], facts: Partial<Parameters<typeof acquireInput>[1]> = {}) =>
    counts(cheapestFit(acquireInput(wanted, { pools, ...facts })));

  it('is the cheapest instance that holds the task, for each task one', () => {
    expect(hotspot([want('a', { count: 3 })])).toEqual({ [small.pool.id]: 3 });
    expect(hotspot([want('a', { count: 3 })], { pools: [small, view(large.pool, 0.03)] })).toEqual({
      [large.pool.id]: 3,
    });
    expect(hotspot([want('a', { need: resources(3, 1) })])).toEqual({ [large.pool.id]: 1 });
  });

  it('is none where no pool fits or sells, and ends at the vCPU limit with gangs whole', () => {
    expect(hotspot([want('a', { need: resources(9, 1) })])).toEqual({});
    expect(hotspot([want('a')], { pools: [view(small.pool, null)] })).toEqual({});
    expect(hotspot([want('a', { count: 9 })], { vcpus: 5 })).toEqual({ [small.pool.id]: 2 });
    expect(hotspot([want('g', { count: 3, stage: { gang: true } }), want('h')], { vcpus: 4 })).toEqual({
      [small.pool.id]: 1,
    });
  });
});

describe('SuperCloud-Spot’s acquisition', () => {
  const greedy = (wanted: readonly Wanted[], facts: Partial<Parameters<typeof acquireInput>[1]> = {}) =>
    counts(supercloud(acquireInput(wanted, { pools, ...facts })));

  it('buys the most of the constrained resource per dollar, the larger type at one price per vCPU', () => {
    // 8 vCPUs: 8 / 0.16 = 50 on the large type and 2 / 0.04 = 50 on the small one.
    expect(greedy([want('a', { count: 8 })])).toEqual({ [large.pool.id]: 1 });
    // 1 vCPU: 1 / 0.16 on the large type, 1 / 0.04 on the small one.
    expect(greedy([want('a', { count: 9 })])).toEqual({ [large.pool.id]: 1, [small.pool.id]: 1 });
  });

  it('packs tasks of all running times together, the largest first', () => {
    const wanted = [want('a', { need: resources(5, 1), runtimeS: 5 }), want('b', { need: resources(3, 1) })];
    expect(greedy(wanted)).toEqual({ [large.pool.id]: 1 });
  });

  it('goes by memory where memory is what tasks take most of', () => {
    const memory = view(pool({ type: 'r5.large', vcpus: 2, gib: 16, onDemand: 0.2 }), 0.05);
    // 12 GiB fit on 16 for 0.05, or on 32 for 0.16.
    expect(greedy([want('a', { need: resources(1, 12) })], { pools: [large, memory] })).toEqual({
      [memory.pool.id]: 1,
    });
  });

  it('buys nothing where nothing fits, and gangs whole or not at all', () => {
    expect(greedy([want('a', { need: resources(9, 1) })])).toEqual({});
    expect(greedy([])).toEqual({});
    expect(greedy([want('g', { count: 9, stage: { gang: true } }), want('a')], { vcpus: 8 })).toEqual({
      [small.pool.id]: 1,
    });
  });
});
