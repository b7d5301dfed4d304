import { describe, expect, it } from '@jest/globals';
import { seconds } from '../../../../lib/kernel/units.ts';
import { cheapestSpot } from '../../../../lib/stages/scale/cheapest-spot.ts';
import { onDemandOnly } from '../../../../lib/stages/scale/on-demand-only.ts';
import { stratusTributary } from '../../../../lib/stages/scale/stratus-tributary.ts';
import { acquireInput, offer, type Wanted } from '../../../support/leftovers.ts';
import { group, instance, market, pool, resources, view } from '../../../support/decision-world.ts';

const small = view(pool({ type: 'm5.large', vcpus: 2, gib: 8 }), 0.04);
const big = view(pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32 }), 0.12);
const onDemand = view(pool({ option: 'on-demand', onDemand: 0.1 }), 0.1);
const bigOnDemand = view(pool({ type: 'm5.2xlarge', option: 'on-demand', vcpus: 8, gib: 32, onDemand: 0.4 }), 0.4);
const pools = [small, big, onDemand, bigOnDemand];

const want = (over: Partial<Wanted> & { id: string; count: number }): Wanted => ({
  group: group({ id: over.id, count: over.count, need: resources(1, 1), ...over.group }),
  runtimeS: 3600,
  pools: [small, big],
  ...over,
});
const counts = (purchases: readonly { pool: string; count: number }[]): Record<string, number> =>
  Object.fromEntries(purchases.map((p) => [p.pool, p.count]));

describe('scaler', () => {
  it('buys the large type for many tasks and the small one for one', () => {
    expect(counts(stratusTributary(acquireInput([want({ id: 'a', count: 16 })], { pools })))).toEqual({
      [big.pool.id]: 2,
    });
    expect(counts(stratusTributary(acquireInput([want({ id: 'a', count: 1 })], { pools })))).toEqual({
      [small.pool.id]: 1,
    });
  });

  it('puts short tasks beside long ones instead of buying for them', () => {
    const long = want({ id: 'long', count: 7, pools: [big] });
    const short = want({ id: 'short', count: 1, runtimeS: 60 });
    expect(counts(stratusTributary(acquireInput([short, long], { pools })))).toEqual({ [big.pool.id]: 1 });
  });

  it('does not share an instance with a task that has no offer there', () => {
    const a = want({ id: 'a', count: 4, pools: [big] });
    const b = want({ id: 'b', count: 4, pools: [small] });
    expect(counts(stratusTributary(acquireInput([a, b], { pools })))).toEqual({ [big.pool.id]: 1, [small.pool.id]: 2 });
  });

  it('stays off spot where the plan chose capacity that stays', () => {
    const safe = want({ id: 'a', count: 2, pools: [onDemand, small, big] });
    expect(counts(stratusTributary(acquireInput([safe], { pools })))).toEqual({ [onDemand.pool.id]: 1 });
  });

  it('leaves out offers that are later than both the plan chose and the configuration allows', () => {
    const wanted = want({ id: 'a', count: 2, pools: [onDemand, bigOnDemand] });
    const cheapButLate = (pLate: number) => {
      const input = acquireInput([wanted], { pools });
      const given = input.offers.get(wanted.group.id) ?? { offers: [], excluded: [], considered: [] };
      const offers = given.offers.map((o, i) => (i === 1 ? { ...o, pLate, expectedCostUsd: 1e-6 } : o));
      return counts(stratusTributary({ ...input, offers: new Map([[wanted.group.id, { ...given, offers }]]) }));
    };
    expect(cheapButLate(0.3)).toEqual({ [onDemand.pool.id]: 1 });
    expect(cheapButLate(0.01)).toEqual({ [bigOnDemand.pool.id]: 1 });
  });

  it('leaves out closed pools and pools without a price', () => {
    const shut = [view(small.pool, 0.04, false), view(big.pool, null), onDemand];
    expect(stratusTributary(acquireInput([want({ id: 'a', count: 2, pools: [small, big] })], { pools: shut }))).toEqual(
      [],
    );
  });

  it('keeps within the vCPU limit, live instances counted, and serves deadlines first', () => {
    const instances = [instance('i', big.pool, { state: 'starting' })];
    const urgent = want({
      id: 'z',
      count: 4,
      group: group({ id: 'z', count: 4, class: 'deadline', need: resources(1, 1) }),
    });
    const other = want({ id: 'a', count: 4, runtimeS: 90_000, pools: [small] });
    const input = acquireInput([other, urgent], { pools, instances, vcpus: 8 + 4 });
    expect(counts(stratusTributary(input))).toEqual({ [small.pool.id]: 2 });
    const only = acquireInput(
      [
        { ...urgent, pools: [small] },
        { ...other, pools: [onDemand] },
      ],
      { pools, instances, vcpus: 12 },
    );
    expect(counts(stratusTributary(only))).toEqual({ [small.pool.id]: 2 });
  });

  it('buys a gang whole or not at all, and the rest all the same', () => {
    const gang = want({
      id: 'g',
      count: 6,
      pools: [small],
      group: group({ id: 'g', count: 6, need: resources(1, 1), stage: { gang: true } }),
    });
    const rest = want({ id: 'r', count: 2, runtimeS: 60, pools: [small] });
    expect(counts(stratusTributary(acquireInput([gang, rest], { pools, vcpus: 4 })))).toEqual({ [small.pool.id]: 1 });
    expect(counts(stratusTributary(acquireInput([gang, rest], { pools, vcpus: 8 })))).toEqual({ [small.pool.id]: 4 });
  });

  it('says what was bought and why, by pool', () => {
    const reasons = (wanted: readonly Wanted[]): string[] =>
      stratusTributary(acquireInput(wanted, { pools }, { correlationPenalty: 0 })).map((p) => `${p.pool}: ${p.reason}`);
    // The price of an instance, 95 s of start-up on top: of one hour, and of two.
    expect(reasons([want({ id: 'a', count: 16 })])).toEqual([
      `${big.pool.id}: for 16 tasks on 2 instances, 100 % full, weighed at 0.1232 USD/h with all risks, P(interrupted before done) 0.0 %`,
    ]);
    const risky = { pInterrupted: 0.25 };
    expect(
      reasons([
        want({ id: 'a', count: 9, pools: [big], offer: risky }),
        want({ id: 'b', count: 1, pools: [small], runtimeS: 7200 }),
      ]),
    ).toEqual([
      `${big.pool.id}: for 9 tasks on 2 instances, 56 % full, weighed at 0.1232 USD/h with all risks, P(interrupted before done) 25.0 %`,
      `${small.pool.id}: for 1 task, 50 % full, weighed at 0.0405 USD/h with all risks, P(interrupted before done) 0.0 %`,
    ]);
  });
});

describe('diversification', () => {
  const twins = ['a', 'b'].map((zone) => view(pool({ zone, vcpus: 2 }), 0.04));
  const dearer = (factor: number) => view(pool({ zone: 'b', vcpus: 2 }), 0.04 * factor);
  const risky = { pInterrupted: 0.2, expectedLostS: seconds(360), startDelayS: seconds(95) };
  const wantRisky = (views: readonly (typeof small)[], over = risky): Wanted => ({
    group: group({ id: 'a', count: 16, need: resources(1, 1) }),
    runtimeS: 3600,
    pools: views,
    offer: over,
  });

  it('spreads a job over pools that cost the same', () => {
    const got = counts(stratusTributary(acquireInput([wantRisky(twins)], { pools: twins })));
    expect(got).toEqual({ [twins[0]?.pool.id ?? '']: 4, [twins[1]?.pool.id ?? '']: 4 });
  });

  it('spreads over a slightly dearer pool while the risk is worth it, and not over a much dearer one', () => {
    const near = [twins[0] ?? small, dearer(1.02)];
    const first = near.map((v) => v.pool.id);
    expect(Object.keys(counts(stratusTributary(withRisk(near, risky)))).sort()).toEqual([...first].sort());
    const far = [twins[0] ?? small, dearer(1.5)];
    expect(counts(stratusTributary(withRisk(far, risky)))).toEqual({ [far[0]?.pool.id ?? '']: 8 });
  });

  it('stays in the cheapest pool when nothing can be lost', () => {
    const near = [twins[0] ?? small, dearer(1.02)];
    const safe = { pInterrupted: 0, expectedLostS: seconds(0) };
    expect(counts(stratusTributary(withRisk(near, safe, { correlationPenalty: 0 })))).toEqual({
      [near[0]?.pool.id ?? '']: 8,
    });
  });

  it('prefers, among equals, the pool whose prices move apart from what is held (eq. 2.6)', () => {
    const held = pool({ zone: 'held', vcpus: 64, gib: 256 });
    const apart = market(twins, undefined, (x, y) => (x.id === y.id || [x.zone, y.zone].includes('b') ? 1 : -1));
    const wanted = wantRisky([twins[1] ?? small, twins[0] ?? small], { ...risky, pInterrupted: 0 });
    const one = { ...wanted, group: group({ id: 'a', count: 2, need: resources(1, 1) }) };
    const input = acquireInput([one], { pools: twins, instances: [instance('i', held)], market: apart });
    expect(counts(stratusTributary(input))).toEqual({ [twins[0]?.pool.id ?? '']: 1 });
    const blind = acquireInput([one], {
      pools: twins,
      instances: [instance('i', held)],
      market: market(twins, undefined, (x, y) => (x.id === y.id || [x.zone, y.zone].includes('a') ? 1 : -1)),
    });
    expect(counts(stratusTributary(blind))).toEqual({ [twins[1]?.pool.id ?? '']: 1 });
  });

  function withRisk(views: readonly (typeof small)[], risk: object, over = {}) {
    const wanted = wantRisky(views, { ...risky, ...risk });
    return acquireInput([wanted], { pools: views }, over);
  }
});

describe('baselines', () => {
  const one = want({ id: 'a', count: 10, pools: [small, big, onDemand, bigOnDemand] });

  it('on-demand only: cheapest for a task, nothing on spot', () => {
    expect(counts(onDemandOnly(acquireInput([one], { pools })))).toEqual({ [bigOnDemand.pool.id]: 2 });
    expect(onDemandOnly(acquireInput([want({ id: 'a', count: 10 })], { pools }))).toEqual([]);
  });

  it('cheapest spot: the lowest price per instance, all in one pool', () => {
    expect(counts(cheapestSpot(acquireInput([one], { pools })))).toEqual({ [small.pool.id]: 5 });
  });

  it('fill the last instance before the next, and stop at the limit', () => {
    const two = [
      want({ id: 'a', count: 3, pools: [small] }),
      want({ id: 'b', count: 1, runtimeS: 60, pools: [small] }),
    ];
    expect(counts(cheapestSpot(acquireInput(two, { pools })))).toEqual({ [small.pool.id]: 2 });
    expect(counts(cheapestSpot(acquireInput([one], { pools, vcpus: 5 })))).toEqual({ [small.pool.id]: 2 });
  });

  it('offers stand for themselves', () => {
    expect(offer(one, small).expectedCostUsd).toBeCloseTo(0.02, 12);
  });
});
