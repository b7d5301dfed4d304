import { describe, expect, it } from '@jest/globals';
import { usdPerHour } from '../../../../lib/kernel/units.ts';
import { cheapestSpot } from '../../../../lib/stages/scale/cheapest-spot.ts';
import { fillInOrder } from '../../../../lib/stages/scale/fill.ts';
import { onDemandOnly } from '../../../../lib/stages/scale/on-demand-only.ts';
import { scaling } from '../../../../lib/stages/scale/acquire.ts';
import type { Purchase } from '../../../../lib/domain/plan.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { group, pool, resources, view } from '../../../support/decision-world.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';

/** Instances that hold four tasks of one vCPU each, or two of two. */
const a = view(pool({ zone: 'a', vcpus: 4, gib: 16 }), 0.04);
const b = view(pool({ zone: 'b', vcpus: 4, gib: 16 }), 0.05);
const small = view(pool({ type: 'm5.small', zone: 'a', vcpus: 1, gib: 4 }), 0.02);
const onDemand = view(pool({ zone: 'a', option: 'on-demand', vcpus: 4, gib: 16, onDemand: 0.1 }), 0.1);
const dearOnDemand = view(pool({ zone: 'b', option: 'on-demand', vcpus: 4, gib: 16, onDemand: 0.2 }), 0.2);
const pools = [a, b, small, onDemand, dearOnDemand];

const want = (id: string, count: number, over: Partial<Wanted> & { gang?: true; vcpus?: number } = {}): Wanted => ({
  group: group({
    id,
    count,
    need: resources(over.vcpus ?? 1, 1),
    ...(over.gang === true ? { stage: { gang: true } } : {}),
  }),
  runtimeS: 3600,
  pools: [a],
  ...over,
});
const told = (of: readonly Purchase[]): string[] => of.map((p) => `${p.count} ${p.pool}: ${p.reason}`);
const filled = (wanted: readonly Wanted[], vcpus = 1000): string[] =>
  told(
    fillInOrder(
      acquireInput(wanted, { pools, vcpus }),
      () => 0,
      () => true,
    ),
  );
const room = (tasks: number, usd: number): string =>
  `room for ${tasks} task(s) at ${usd.toFixed(4)} USD per instance-hour`;

describe('purchases in order', () => {
  it('are instances for all tasks of a group, by pool and bid, with how many they hold', () => {
    expect(filled([want('x', 9), want('y', 3, { pools: [b] })])).toEqual([
      `3 ${a.pool.id}: ${room(9, 0.04)}`,
      `1 ${b.pool.id}: ${room(3, 0.05)}`,
    ]);
    expect(filled([want('y', 3, { pools: [b] }), want('x', 9)])).toEqual(
      filled([want('x', 9), want('y', 3, { pools: [b] })]),
    );
  });

  it('fill the newest instance before the next one', () => {
    const rest = (first: number, then: number): string[] =>
      filled([want('x', first, { runtimeS: 7200 }), want('y', then)]);
    expect(rest(3, 1)).toEqual([`1 ${a.pool.id}: ${room(4, 0.04)}`]);
    expect(rest(3, 2)).toEqual([`2 ${a.pool.id}: ${room(5, 0.04)}`]);
    expect(rest(5, 3)).toEqual([`2 ${a.pool.id}: ${room(8, 0.04)}`]);
    expect(rest(5, 4)).toEqual([`3 ${a.pool.id}: ${room(9, 0.04)}`]);
    expect(rest(4, 1)).toEqual([`2 ${a.pool.id}: ${room(5, 0.04)}`]);
    // What went into the room of the first is not there for a third.
    expect(filled([want('x', 2, { runtimeS: 7200 }), want('y', 1), want('z', 2, { runtimeS: 60 })])).toEqual([
      `2 ${a.pool.id}: ${room(5, 0.04)}`,
    ]);
    expect(filled([want('x', 1, { runtimeS: 7200, vcpus: 3 }), want('y', 1, { vcpus: 2 })])).toEqual([
      `2 ${a.pool.id}: ${room(2, 0.04)}`,
    ]);
  });

  it('go to the longest running first, then by id', () => {
    const long = want('z', 4, { runtimeS: 7200 });
    expect(filled([want('x', 4, { pools: [b] }), long], 4)).toEqual([`1 ${a.pool.id}: ${room(4, 0.04)}`]);
    for (const wanted of [
      [want('y', 4), want('x', 4, { pools: [b] })],
      [want('x', 4, { pools: [b] }), want('y', 4)],
    ])
      expect(filled(wanted, 4)).toEqual([`1 ${b.pool.id}: ${room(4, 0.05)}`]);
  });

  it('stop at the vCPU limit, exactly', () => {
    expect(filled([want('x', 9)], 8)).toEqual([`2 ${a.pool.id}: ${room(8, 0.04)}`]);
    expect(filled([want('x', 9)], 7)).toEqual([`1 ${a.pool.id}: ${room(4, 0.04)}`]);
    expect(filled([want('x', 9)], 3)).toEqual([]);
    // A later group has what is left of the limit, and of the room.
    expect(filled([want('x', 5, { runtimeS: 7200 }), want('y', 9, { pools: [b] })], 12)).toEqual([
      `2 ${a.pool.id}: ${room(5, 0.04)}`,
      `1 ${b.pool.id}: ${room(4, 0.05)}`,
    ]);
  });

  it('are whole gangs or none, with room of others counted', () => {
    const gang = (count: number, over = {}): Wanted => want('g', count, { gang: true, ...over });
    expect(filled([gang(5)], 7)).toEqual([]);
    expect(filled([gang(4)], 4)).toEqual([`1 ${a.pool.id}: ${room(4, 0.04)}`]);
    const first = want('x', 2, { runtimeS: 7200 });
    expect(filled([first, gang(6)], 8)).toEqual([`2 ${a.pool.id}: ${room(8, 0.04)}`]);
    expect(filled([first, gang(7)], 8)).toEqual([`1 ${a.pool.id}: ${room(2, 0.04)}`]);
  });

  it('leave out what no instance of the pool holds', () => {
    expect(filled([want('x', 1, { vcpus: 2, pools: [small] }), want('y', 1, { runtimeS: 60 })])).toEqual([
      `1 ${a.pool.id}: ${room(1, 0.04)}`,
    ]);
  });

  it('take the preferred offer, on equal terms the pool of the first name, and there the highest bid', () => {
    const both = [want('x', 1, { pools: [b, a] })];
    const byPrice = (sign: number): string[] =>
      told(
        fillInOrder(
          acquireInput(both, { pools }),
          (x, y) => sign * (Number(x.pool.zone === 'b') - Number(y.pool.zone === 'b')),
          () => true,
        ),
      );
    expect(byPrice(1)).toEqual([`1 ${a.pool.id}: ${room(1, 0.04)}`]);
    expect(byPrice(-1)).toEqual([`1 ${b.pool.id}: ${room(1, 0.05)}`]);
    expect(filled(both)).toEqual([`1 ${a.pool.id}: ${room(1, 0.04)}`]);
    const input = acquireInput([want('x', 1)], { pools });
    const [offer] = input.offers.values().next().value?.offers ?? [];
    if (offer === undefined) throw new Error('there is an offer');
    const capped = [0.06, 0.09].map((usd) => ({ ...offer, bid: usdPerHour(usd) }));
    const bids = new Map([
      [offer.group, { offers: [capped[0] ?? offer, capped[1] ?? offer], excluded: [], considered: [] }],
    ]);
    const chosen = input.leftovers.map((l) => ({ ...l, option: { ...l.option, offer: capped[0] ?? offer } }));
    const bought = fillInOrder(
      { ...input, offers: bids, leftovers: chosen },
      () => 0,
      () => true,
    );
    expect(bought.map((p) => p.bid)).toEqual([usdPerHour(0.09)]);
  });
});

describe('baselines that fill in order', () => {
  it('cheapest spot: spot before what stays, and the lowest price of an instance', () => {
    const over = { pools: [b, onDemand, a] };
    expect(told(cheapestSpot(acquireInput([want('x', 1, over)], { pools })))).toEqual([
      `1 ${a.pool.id}: ${room(1, 0.04)}`,
    ]);
    const cheapOnDemand = view(pool({ zone: 'c', option: 'on-demand', vcpus: 4, gib: 16, onDemand: 0.01 }), 0.01);
    for (const order of [
      [b, cheapOnDemand],
      [b, cheapOnDemand, onDemand],
    ])
      expect(
        told(cheapestSpot(acquireInput([want('x', 1, { pools: order })], { pools: [...pools, cheapOnDemand] }))),
      ).toEqual([`1 ${b.pool.id}: ${room(1, 0.05)}`]);
  });

  it('on-demand only: the lowest price of a task’s part, in any order of the offers', () => {
    const half = view(pool({ type: 'm5.half', option: 'on-demand', vcpus: 2, gib: 8, onDemand: 0.06 }), 0.06);
    for (const order of [
      [dearOnDemand, half, onDemand],
      [onDemand, half, dearOnDemand],
      [half, dearOnDemand, onDemand],
    ])
      expect(told(onDemandOnly(acquireInput([want('x', 2, { pools: order })], { pools: [...pools, half] })))).toEqual([
        `1 ${onDemand.pool.id}: ${room(2, 0.1)}`,
      ]);
  });
});

describe('scaling', () => {
  const bought: readonly Purchase[] = [{ pool: a.pool.id, bid: 'uncapped', count: 1, reason: 'of the test' }];
  const given = [{ instance: instanceId('i'), reason: 'of the test' }];
  const input = (wanted: readonly Wanted[]) => ({
    ...acquireInput(wanted, { pools }),
    used: new Set<ReturnType<typeof instanceId>>(),
    later: () => [],
  });

  it('buys for demand alone, and gives back either way', () => {
    const scale = scaling(
      () => bought,
      () => given,
    );
    expect(scale(input([want('x', 1)]))).toEqual({ purchases: bought, releases: given });
    expect(scale(input([]))).toEqual({ purchases: [], releases: given });
  });
});
