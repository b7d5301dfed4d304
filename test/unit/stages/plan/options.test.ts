import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { certain, distribution } from '../../../../lib/domain/distribution.ts';
import type { Offer } from '../../../../lib/domain/forecast.ts';
import type { Worth } from '../../../../lib/domain/plan.ts';
import type { PlanInput } from '../../../../lib/policy/contracts.ts';
import {
  GUARDED,
  UNGUARDED,
  optionContext,
  startOptions,
  type OptionContext,
  type PlannedOption,
} from '../../../../lib/stages/plan/options.ts';
import { capacityOf } from '../../../../lib/stages/plan/supply.ts';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { pool } from '../../../support/builders.ts';
import {
  HOUR_S,
  ON_DEMAND,
  SPOT,
  at,
  flat,
  handmade,
  type Handmade,
  type Waiting,
} from '../../../support/handmade-plan.ts';

/**
 * One task takes a quarter of a machine for an hour: 2 cents on spot at $0.08, 5 cents on on-demand at $0.2, after 95 s
 * to start up. Three slots of ten minutes, decisions each minute.
 */
interface Scene extends Omit<Handmade, 'waiting'> {
  readonly waiting?: Partial<Waiting>;
  readonly worth?: Worth;
  readonly spot?: Partial<Offer>;
  readonly onDemand?: Partial<Offer>;
  readonly more?: readonly Partial<Offer>[];
  readonly forecast?: 'none';
  readonly rules?: typeof GUARDED;
}

function inputOf({ waiting, worth, spot, onDemand, more = [], forecast, ...of }: Scene): PlanInput {
  const input = handmade({
    ...of,
    waiting: [{ name: 'a', worthUsd: 1, ...waiting }],
    config: { lookAheadSlots: 3, ...of.config },
  });
  const offers = new Map(
    [...input.offers].map(([id, made]) => [
      id,
      {
        ...made,
        offers: [
          ...made.offers.map((o) => ({ ...o, ...(o.pool === SPOT.id ? spot : onDemand) })),
          ...more.map((o) => ({ ...invariant(made.offers[0], 'there is an offer'), ...o })),
        ],
      },
    ]),
  );
  return {
    ...input,
    offers,
    ...(forecast === 'none' ? { forecasts: { ...input.forecasts, runtime: new Map() } } : {}),
    ...(worth === undefined
      ? {}
      : { worths: { ...input.worths, groups: new Map([...input.worths.groups.keys()].map((id) => [id, worth])) } }),
  };
}

const contextOf = (input: PlanInput, rules = GUARDED): OptionContext =>
  optionContext(input, capacityOf(input, 0), rules);
function optionsOf(scene: Scene): readonly PlannedOption[] {
  const input = inputOf(scene);
  return startOptions(invariant(input.snapshot.groups[0], 'the group waits'), contextOf(input, scene.rules));
}
const listed = (scene: Scene): string[] => optionsOf(scene).map((o) => `${o.option.slot} ${o.pool.option}`);
function only(scene: Scene, slot: number, option: 'spot' | 'on-demand'): PlannedOption {
  const found = optionsOf(scene).filter((o) => o.option.slot === slot && o.pool.option === option);
  expect(found).toHaveLength(1);
  return invariant(found[0], 'there is one');
}

const OPENS = { atMs: at(100), p: 0.4 };
const UNKNOWN = pool({ type: 'm5.large', zone: 'elsewhere', option: 'on-demand' }).id;
const ALL = ['0 spot', '0 on-demand', '1 spot', '1 on-demand', '2 spot', '2 on-demand'];
const FIXED = ['0 on-demand', '1 on-demand', '2 on-demand'];
/** $1 whenever it ends. */
const safeUntil = (s: number): Worth => ({ ...flat(1), taskDeadlineMs: at(1e6), latestSafeStartMs: at(s) });
/** $10 now, a tenth of a cent less each second. */
const falling = (deadlineS: number | null = null): Worth => ({
  curve: {
    points: [
      { atMs: at(0), usd: 10 },
      { atMs: at(10_000), usd: 0 },
    ],
  },
  taskDeadlineMs: deadlineS === null ? null : at(deadlineS),
  latestSafeStartMs: null,
  reason: 'test',
});

describe('the price of a later slot', () => {
  it('is the expected one over the price now, of spot and not in this slot', () => {
    const context = contextOf(inputOf({ expectedSpotUsd: (s) => (s < 1200 ? 0.04 : 0.02) }));
    expect([0, 1, 2, 3].map((slot) => context.priceFactor(SPOT, slot))).toEqual([1, 0.5, 0.25, 1]);
  });

  it('stays what it is where capacity is not spot, whatever the market expects', () => {
    const input = inputOf({});
    const market = { ...input.forecasts.market, expectedPrice: () => usdPerHour(0.02) };
    const context = contextOf({ ...input, forecasts: { ...input.forecasts, market } });
    expect([0, 1, 2].map((slot) => context.priceFactor(ON_DEMAND, slot))).toEqual([1, 1, 1]);
    expect([0, 1, 2].map((slot) => context.priceFactor(SPOT, slot))).toEqual([1, 0.25, 0.25]);
  });

  it('has nothing to compare with where capacity is free, or nothing is expected', () => {
    const free = contextOf(inputOf({ spotUsd: 0, expectedSpotUsd: () => 0.04 }));
    expect([0, 1].map((slot) => free.priceFactor(SPOT, slot))).toEqual([1, 1]);
    const input = inputOf({});
    const market = { ...input.forecasts.market, expectedPrice: () => null };
    expect(contextOf({ ...input, forecasts: { ...input.forecasts, market } }).priceFactor(SPOT, 1)).toBe(1);
  });

  it('is over the on-demand price in a pool without a quote', () => {
    const gone = pool({ type: 'm5.large', zone: 'elsewhere', onDemand: 0.16 });
    expect(contextOf(inputOf({ expectedSpotUsd: () => 0.04 })).priceFactor(gone, 1)).toBe(0.25);
  });
});

describe('interrupted work can flee', () => {
  it.each([
    [7, true],
    [6.999, false],
    [2, false],
  ])('with %d free vCPUs, of seven that all waiting work needs: %s', (vcpus, canFlee) => {
    const input = handmade({
      waiting: [
        { name: 'a', count: 3, worthUsd: 1 },
        { name: 'b', count: 2, cpus: 2, worthUsd: 1 },
      ],
      vcpus,
    });
    expect(contextOf(input).canFlee).toBe(canFlee);
  });
});

describe('offers that a budget pays for', () => {
  const SPOTS = ['0 spot', '1 spot', '2 spot'];
  it.each([
    ['all without a limit', {}, ALL],
    ['all at their sum exactly', { maxCostUsd: 0.1 }, ALL],
    ['the cheaper one where the dearer one is for one task only', { maxCostUsd: 0.09 }, SPOTS],
    ['the cheaper one at its sum exactly', { maxCostUsd: 0.04 }, SPOTS],
    ['the cheaper one with what was spent before', { maxCostUsd: 1, spentUsd: 0.95 }, SPOTS],
    ['all where none is', { maxCostUsd: 0.039 }, ALL],
  ])('are %s', (_, limits, expected) => {
    expect(listed({ waiting: { count: 2, ...limits } })).toEqual(expected);
  });

  it('may pass it by a billionth of a dollar', () => {
    const dear = (expectedCostUsd: number): Scene => ({
      waiting: { maxCostUsd: 1 },
      spot: { expectedCostUsd },
      onDemand: { expectedCostUsd: 2 },
    });
    expect(listed(dear(1 + 1e-9))).toEqual(SPOTS);
    expect(listed(dear(1 + 1e-8))).toEqual(ALL);
  });
});

describe('options of a group', () => {
  it('are its offers in each slot', () => {
    expect(listed({})).toEqual(ALL);
  });

  it('are none without a worth, or without offers', () => {
    const input = inputOf({});
    const [group] = input.snapshot.groups;
    const of = (over: Partial<PlanInput>): readonly PlannedOption[] =>
      startOptions(invariant(group, 'it waits'), contextOf({ ...input, ...over }));
    expect(of({ worths: { ...input.worths, groups: new Map() } })).toEqual([]);
    expect(of({ offers: new Map() })).toEqual([]);
    expect(of({})).toHaveLength(6);
  });

  it('leave out pools that the market no longer knows', () => {
    const more = [{ pool: UNKNOWN, expectedCostUsd: 0.03 }];
    expect(listed({ more })).toEqual(ALL);
    expect(listed({ more, worth: safeUntil(100) })).toEqual(FIXED);
    expect(listed({ more, spot: { opens: OPENS } })).toEqual(['0 on-demand', '1 on-demand', '1 spot', '2 on-demand']);
  });

  it('are on capacity that stays from two decisions before the last safe start', () => {
    // The second slot begins at 600 s, and the third at 1200.
    expect(listed({ worth: safeUntil(1321) })).toEqual(ALL);
    expect(listed({ worth: safeUntil(1320) })).toEqual([
      '0 spot',
      '0 on-demand',
      '1 spot',
      '1 on-demand',
      '2 on-demand',
    ]);
    expect(listed({ worth: safeUntil(720) })).toEqual(['0 spot', '0 on-demand', '1 on-demand', '2 on-demand']);
    expect(listed({ worth: safeUntil(120) })).toEqual(FIXED);
    expect(listed({ worth: safeUntil(120), rules: UNGUARDED })).toEqual(ALL);
    expect(listed({ worth: safeUntil(120), waiting: { offers: ['spot'] } })).toEqual(['0 spot', '1 spot', '2 spot']);
  });

  it('occupy the slots of start-up and run, whole ones exactly', () => {
    const slotsOf = (s: number): number => only({ spot: { expectedDurationS: seconds(s) } }, 0, 'spot').slots;
    expect([1, 505, 506, 1105, 1106].map(slotsOf)).toEqual([1, 1, 2, 2, 3]);
  });
});

describe('a pool in back-off', () => {
  const running: Handmade['running'] = [{ name: 'r', instance: 'i-1', tasks: 2 }];
  const spot = { opens: OPENS };

  it('is waited for, in the second slot', () => {
    expect(listed({ spot })).toEqual(['0 on-demand', '1 on-demand', '1 spot', '2 on-demand']);
    expect(listed({ spot, waiting: { offers: ['spot'] } })).toEqual(['1 spot']);
  });

  it('has room on its instances now', () => {
    expect(listed({ spot, running })).toEqual(['0 on-demand', '0 spot', '1 on-demand', '1 spot', '2 on-demand']);
    const { option } = only({ spot, running }, 0, 'spot');
    expect(option.offer.opens).toBeUndefined();
    expect(option.startMs).toEqual(at(0));
    expect(option.costUsd).toBeCloseTo(0.02, 12);
    expect(listed({ running })).toEqual(ALL);
  });

  it('is none for work that must not be interrupted any more, unless there is no other', () => {
    const worth = safeUntil(100);
    expect(listed({ spot, running, worth })).toEqual(FIXED);
    expect(listed({ spot, running, worth, waiting: { offers: ['spot'] } })).toEqual(['0 spot']);
  });

  it('costs its price by the chance that it opens, and else that of the cheapest open offer', () => {
    const option = (scene: Scene) => only({ spot, ...scene }, 1, 'spot').option;
    // 0.4 x 2 cents + 0.6 x 5 cents.
    expect(option({}).costUsd).toBeCloseTo(0.038, 12);
    expect(option({}).startMs).toEqual(at(100));
    // Half the price by the second slot.
    expect(option({ expectedSpotUsd: (s) => (s > 0 ? 0.04 : 0.08) }).costUsd).toBeCloseTo(0.034, 12);
    expect(option({ waiting: { offers: ['spot'] } }).costUsd).toBeCloseTo(0.02, 12);
    const others = (...costs: number[]) => costs.map((expectedCostUsd) => ({ pool: ON_DEMAND.id, expectedCostUsd }));
    // 0.4 x 2 cents + 0.6 x 4 cents.
    expect(option({ more: others(0.07, 0.04, 0.06) }).costUsd).toBeCloseTo(0.032, 12);
    // What is closed itself is no way out.
    const closed = others(0.01).map((o) => ({ ...o, opens: OPENS }));
    expect(option({ more: closed }).costUsd).toBeCloseTo(0.038, 12);
  });

  it('is worth what a start in the next plan is, with no charge for patience or slack', () => {
    // It ends 60 + 95 + 3600 s from now.
    expect(only({ spot, worth: falling() }, 1, 'spot').option.worthUsd).toBeCloseTo(6.245, 12);
    const risky = { spot: { opens: OPENS, pInterrupted: 0.5 }, worth: safeUntil(3600) };
    expect(only(risky, 1, 'spot').netUsd).toBeCloseTo(1 - 0.038, 12);
  });
});

describe('waiting for a pool in back-off with a deadline', () => {
  interface Outage extends Scene {
    readonly safeS: number;
    readonly p?: number;
    readonly inS?: number;
  }
  const waits = ({ safeS, p = 0.5, inS = 40, spot, ...of }: Outage): boolean =>
    listed({ ...of, worth: safeUntil(safeS), spot: { ...spot, opens: { atMs: at(inS), p } } }).includes('1 spot');
  /** On spot for so short a time that nothing is lost by the way back. */
  const short = { waiting: { runtimeS: 300 } };

  it('is free while the next decision still has time to come back from on-demand', () => {
    // 60 s to it, changeovers of 170 s, a move of 30 + 160 + 10 + 120 s, and two cycles.
    const dear = { spotUsd: 0.24, ...short };
    expect(waits({ safeS: 671, ...dear })).toBe(true);
    expect(waits({ safeS: 670, ...dear })).toBe(false);
  });

  it('ends where the next decision is the last', () => {
    expect(waits({ safeS: 181, ...short })).toBe(true);
    expect(waits({ safeS: 180, ...short })).toBe(false);
  });

  it('is not for spot at the price of what stays, or above', () => {
    expect(waits({ safeS: 400, ...short, spotUsd: 0.199 })).toBe(true);
    expect(waits({ safeS: 400, ...short, spotUsd: 0.2 })).toBe(false);
    expect(waits({ safeS: 400, ...short, spotUsd: 0.21 })).toBe(false);
  });

  it('compares what a task pays: three quarters of a spot machine are dearer than a quarter that stays', () => {
    expect(waits({ safeS: 400, ...short, spot: { newShare: 0.75 } })).toBe(false);
    expect(waits({ safeS: 400, ...short, spot: { newShare: 0.5 } })).toBe(true);
  });

  it('is a bet on a short outage', () => {
    // Rates of 5 and 2 cents, 400 s left of which a try takes 100: four tries. Short: 3 x 200 + 170 x 7 = 1790; long:
    // 3 x 3600 - 170 x 7 = 9610. With 4 x 1790 = (1 / p - 1) x 9610: p = 0.5730.
    expect(waits({ safeS: 580, p: 0.574 })).toBe(true);
    expect(waits({ safeS: 580, p: 0.572 })).toBe(false);
  });

  it('counts the life on spot that an interruption leaves', () => {
    // At a constant hazard 3600 x 0.5 / ln 2 = 2596.9 s. Long: 3 x 2596.9 - 1190 = 6600.6, so p = 0.4797.
    const spot = { pInterrupted: 0.5 };
    expect(waits({ safeS: 580, p: 0.481, spot })).toBe(true);
    expect(waits({ safeS: 580, p: 0.478, spot })).toBe(false);
    // Interrupted for certain: 36000 / (9 ln 10) = 1737 s. Long: 5211 - 1190 = 4021, so p = 0.3596.
    const certainly = { spot: { pInterrupted: 1 }, waiting: { runtimeS: 36_000 } };
    expect(waits({ safeS: 580, p: 0.361, ...certainly })).toBe(true);
    expect(waits({ safeS: 580, p: 0.358, ...certainly })).toBe(false);
  });

  it('counts the running time that is forecast, and the offer only without a forecast', () => {
    const spot = { expectedDurationS: seconds(7200) };
    expect(waits({ safeS: 580, p: 0.574, spot })).toBe(true);
    expect(waits({ safeS: 580, p: 0.572, spot })).toBe(false);
    // Long: 3 x 7200 - 1190 = 20410, so p = 0.7403.
    expect(waits({ safeS: 580, p: 0.742, spot, forecast: 'none' })).toBe(true);
    expect(waits({ safeS: 580, p: 0.738, spot, forecast: 'none' })).toBe(false);
  });

  it('is taken where both sides weigh the same', () => {
    // Rates of 1 and 2, one try in 200 s with an even chance: short 100 + 170 x 3 = 610; long 1120 - 510 = 610.
    const even = (runtimeS: number, pInterrupted = 0): boolean =>
      waits({
        safeS: 380,
        inS: 140,
        waiting: { runtimeS },
        spotUsd: 4,
        spot: { pInterrupted },
        onDemand: { priceUsdPerHour: usdPerHour(8) },
      });
    expect(even(1120)).toBe(true);
    expect(even(1120.0002)).toBe(false);
    // One interruption in a million runs shortens the life by half a millionth.
    expect(even(1120.0002, 1e-6)).toBe(true);
    expect(even(1120.0008, 1e-6)).toBe(false);
  });
});

describe('what a start brings', () => {
  const net = (scene: Scene, slot: number, option: 'spot' | 'on-demand' = 'spot'): number =>
    only(scene, slot, option).netUsd;

  it('is the worth less the cost, and half a percent of it for each slot', () => {
    const spot = { pInterrupted: 0.5 };
    expect(net({ spot }, 0)).toBeCloseTo(1 - 0.02, 12);
    expect(net({ spot }, 1)).toBeCloseTo(1 - 0.0201, 12);
    expect(net({ spot }, 2)).toBeCloseTo(1 - 0.0202, 12);
    expect(net({ spot }, 2, 'on-demand')).toBeCloseTo(1 - 0.0505, 12);
    const later = only({}, 2, 'spot').option;
    expect(later.startMs).toEqual(at(1200));
    expect(later.costUsd).toBeCloseTo(0.02, 12);
  });

  it('is less the slack that an interruption would need', () => {
    // Half of the 3 cents that on-demand costs more, by the share of an hour of slack that is gone.
    const of = { spot: { pInterrupted: 0.5 }, worth: safeUntil(HOUR_S) };
    expect(net(of, 0)).toBeCloseTo(1 - 0.02, 12);
    expect(net(of, 1)).toBeCloseTo(1 - 0.0201 - 0.015 / 6, 12);
    expect(net(of, 2)).toBeCloseTo(1 - 0.0202 - 0.015 / 3, 12);
    expect(net(of, 2, 'on-demand')).toBeCloseTo(1 - 0.0505, 12);
    expect(net({ ...of, waiting: { offers: ['spot'] } }, 1)).toBeCloseTo(1 - 0.0201, 12);
  });

  it('has no slack left to lose at once, and all of it later, where the last safe start has passed', () => {
    const of = { spot: { pInterrupted: 0.5 }, worth: safeUntil(-1200), rules: UNGUARDED };
    expect(net(of, 0)).toBeCloseTo(1 - 0.02, 12);
    expect(net(of, 1)).toBeCloseTo(1 - 0.0201 - 0.015, 12);
  });

  it('feels cheaper on what the job prefers, down to nothing', () => {
    const prefer = (...weights: readonly (readonly [string, number])[]): Scene => ({
      waiting: { stage: { preferences: weights.map(([zone, weight]) => ({ prefer: { zones: [zone] }, weight })) } },
    });
    const here = 'us-east-1a';
    expect(net(prefer([here, 0.25]), 0)).toBeCloseTo(1 - 0.02 * 0.75, 12);
    expect(net(prefer([here, 0.25], ['us-east-1b', 0.5], [here, 0.125]), 0)).toBeCloseTo(1 - 0.02 * 0.625, 12);
    expect(net(prefer(['us-east-1b', 0.5]), 0)).toBeCloseTo(1 - 0.02, 12);
    expect(net(prefer([here, 0.75], [here, 0.5]), 0)).toBeCloseTo(1, 12);
    expect(net(prefer([here, 0.75], [here, 0.5]), 1)).toBeCloseTo(1 - 0.0001, 12);
  });
});

describe('the expected worth', () => {
  const worthUsd = (scene: Scene, slot = 0): number =>
    only({ worth: falling(), waiting: { offers: ['spot'] }, ...scene }, slot, 'spot').option.worthUsd;
  /** Half of the runs take 7200 s instead of 3600, so that all take 5400 on average. */
  const interrupted = (pLate = 0): Partial<Offer> => ({
    pInterrupted: 0.5,
    expectedDurationS: seconds(5400),
    pLate,
  });

  it('is that at the end, after the start-up, in the slot', () => {
    expect(worthUsd({})).toBeCloseTo(6.305, 12);
    expect(worthUsd({}, 2)).toBeCloseTo(5.105, 12);
  });

  it('counts the offer where no running time is forecast', () => {
    expect(worthUsd({ forecast: 'none', spot: { expectedDurationS: seconds(2000) } })).toBeCloseTo(7.905, 12);
  });

  it('counts reading the checkpoint in what is left', () => {
    // 3600 - 600 + 10 s.
    expect(worthUsd({ waiting: { offers: ['spot'], keptS: 600 } })).toBeCloseTo(6.895, 12);
  });

  it('stretches interrupted runs so that the expected duration comes out right', () => {
    // They end after 3695 or 7295 s.
    expect(worthUsd({ spot: interrupted() })).toBeCloseTo((6.305 + 2.705) / 2, 12);
    // A duration below the undisturbed one shortens none.
    expect(worthUsd({ spot: { pInterrupted: 0.5, expectedDurationS: seconds(3000) } })).toBeCloseTo(6.305, 12);
  });

  it('lets three in four stretched runs flee in time where a quarter of them is late', () => {
    const of = { spot: interrupted(0.125), worth: falling(5000) };
    expect(worthUsd(of)).toBeCloseTo((6.305 + 0.25 * 2.705 + 0.75 * 5) / 2, 12);
    // Without vCPUs to flee to all are.
    expect(worthUsd({ ...of, vcpus: 0.5 })).toBeCloseTo((6.305 + 2.705) / 2, 12);
  });

  it('leaves runs alone that end in time although they are stretched', () => {
    expect(worthUsd({ spot: interrupted(0.125), worth: falling(8000) })).toBeCloseTo((6.305 + 2.705) / 2, 12);
  });

  it('leaves runs alone that are late anyway', () => {
    expect(worthUsd({ spot: interrupted(1), worth: falling(3000) })).toBeCloseTo((6.305 + 2.705) / 2, 12);
    // Runs of half an hour end at 1895 s, or at 3695 s, which is in time; the others at 5495 s, or after all worth.
    const runtime = distribution([
      [1800, 0.5],
      [5400, 0.5],
    ]);
    const mixed = (pLate: number): number =>
      worthUsd({ waiting: { offers: ['spot'], runtime }, spot: interrupted(pLate), worth: falling(4000) });
    expect(mixed(0.625)).toBeCloseTo((8.105 + 4.505) / 4 + 6.305 / 4, 12);
  });

  it('takes a run for on time that ends at the deadline exactly', () => {
    const of = { spot: interrupted(0.125), worth: falling(3695) };
    expect(worthUsd(of)).toBeCloseTo((6.305 + 0.25 * 2.705 + 0.75 * 6.305) / 2, 12);
  });

  it('ignores interruptions of one run in a billion, and of runs that take no time', () => {
    const drops = (usd: number, atS: number): Worth => ({
      ...falling(),
      curve: {
        points: [
          { atMs: at(atS), usd },
          { atMs: epochMs(raw(at(atS)) + 1000), usd: 0 },
        ],
      },
    });
    const rare = (pInterrupted: number): number =>
      worthUsd({ worth: drops(1e9, 4000), spot: { pInterrupted, expectedDurationS: seconds(3601) } });
    expect(rare(1e-9)).toBe(1e9);
    expect(rare(2e-9)).toBeCloseTo(1e9 - 2, 3);
    const none = { offers: ['spot'], runtime: certain(seconds(0)) } as const;
    const spot = { pInterrupted: 0.5, expectedDurationS: seconds(100) };
    expect(worthUsd({ waiting: none, worth: drops(5, 200), spot })).toBe(5);
  });
});
