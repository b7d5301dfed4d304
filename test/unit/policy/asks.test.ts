import { describe, expect, it } from '@jest/globals';
import { Doubles } from '../../../lib/domain/distribution.ts';
import { pInterruptedWithin } from '../../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../../lib/domain/forecasts.ts';
import { bidNumber, type Bid, type Pool } from '../../../lib/domain/pool.ts';
import { raw, seconds, usdPerHour } from '../../../lib/kernel/units.ts';
import type { Stages } from '../../../lib/policy/contracts.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { forecastTable, tabledForecast } from '../../../lib/market/forecast/forecast-data.ts';
import { tabulate } from '../../../lib/stages/appraise/curve-table.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { settingsUnder } from '../../../lib/policy/preset-chain.ts';
import { bidsAsked, onlyAsked, type Asks, type BoundAsks } from '../../../lib/policy/asks.ts';
import { config, exponential, instance, market, NOW, pool, view } from '../../support/decision-world.ts';
import { job, snapshot } from '../../support/builders.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const spot = pool();
const other = pool({ zone: 'us-east-1b' });
const unpriced = pool({ zone: 'us-east-1c' });
const onDemand = pool({ option: 'on-demand' });
const pools = [view(spot, 0.03), view(other, 0.04), view(unpriced, null), view(onDemand, 0.1)];
const held = instance('i-held', other, { bid: usdPerHour(0.07) });
const scene = snapshot({ nowMs: NOW, pools, instances: new Map([[held.instance.id, held]]) });
const capacity = { ...exponential(0.1), by: 'observed' };
const whole: MarketForecast = {
  ...market(pools, () => exponential(0.1)),
  meanPrice: () => usdPerHour(0.05),
  capacity: () => capacity,
  drivers: () => null,
};
const asking = (asks: Asks, policy = 'curious', of: MarketForecast = whole): MarketForecast =>
  onlyAsked(of, { policy, asks }, { snapshot: scene, config: config() });
const twiceThePrice = (p: Pool, price: number): Bid[] =>
  p.option === 'spot' ? [usdPerHour(2 * price), 'uncapped'] : [];
const twice = { bids: twiceThePrice, horizon: 'any' } satisfies Asks;

describe('a forecast as one policy may ask it', () => {
  it('answers what is declared as the whole forecast does', () => {
    const all = asking({ ...twice, held: true, prices: true, correlations: true });
    for (const bid of [usdPerHour(0.06), 'uncapped'] as const)
      expect(all.interruption(spot, bid)).toEqual(whole.interruption(spot, bid));
    expect(all.interruption(other, usdPerHour(0.07))).toEqual(exponential(0.1));
    expect(all.expectedPrice(spot, NOW)).toEqual(usdPerHour(0.03));
    expect(all.meanPrice?.(spot)).toEqual(usdPerHour(0.05));
    expect(all.correlation(spot, spot)).toBe(1);
    const more = asking({ capacity: true, drivers: true });
    expect(more.capacity?.(spot)).toBe(capacity);
    expect(more.drivers?.(spot, 'uncapped')).toBe(null);
  });

  it.each<[string, Asks, (of: MarketForecast) => unknown, string]>([
    [
      'a bid',
      twice,
      (m) => m.interruption(spot, usdPerHour(0.05)),
      'the risk of m5.large/us-east-1a/spot at a bid of 0.05',
    ],
    ['a bid that only another pool has', twice, (m) => m.interruption(other, usdPerHour(0.06)), 'at a bid of 0.06'],
    ['any bid where there is no price', twice, (m) => m.interruption(unpriced, 'uncapped'), 'at a bid of uncapped'],
    ['a held bid', twice, (m) => m.interruption(other, usdPerHour(0.07)), 'at a bid of 0.07'],
    [
      'a held bid in another pool',
      { held: true, horizon: 'any' },
      (m) => m.interruption(spot, usdPerHour(0.07)),
      'at a bid of 0.07',
    ],
    ['an expected price', { held: true, horizon: 'any' }, (m) => m.expectedPrice(spot, NOW), 'the expected price of'],
    ['a mean price', { correlations: true }, (m) => m.meanPrice?.(spot), 'the mean price of'],
    ['a correlation', { prices: true }, (m) => m.correlation(spot, other), 'the correlation of'],
    ['capacity', twice, (m) => m.capacity?.(spot), 'the risk of the capacity of'],
    ['evidence', twice, (m) => m.drivers?.(spot, 'uncapped'), 'the evidence behind the risk of'],
  ])('refuses %s that is not declared, with the name of the policy', (_, asks, ask, text) => {
    expect(() => ask(asking(asks))).toThrow('the policy curious asks for ');
    expect(() => ask(asking(asks))).toThrow(text);
  });

  it('answers within the horizon that is declared, and refuses what lies beyond with the name of the policy', () => {
    const near = asking({ ...twice, held: true, horizon: seconds(3600) });
    for (const curve of [near.interruption(spot, 'uncapped'), near.interruption(other, usdPerHour(0.07))]) {
      for (const s of [60, 900, 3600])
        expect(pInterruptedWithin(curve, seconds(s))).toBe(pInterruptedWithin(exponential(0.1), seconds(s)));
      expect(() => pInterruptedWithin(curve, seconds(3601))).toThrow(
        'the policy curious asks for the risk within 3601 s, which it does not declare',
      );
      expect(() => tabulate(curve, new Doubles())).toThrow('the policy curious asks for the risk within any time');
    }
    expect(pInterruptedWithin(near.interruption(onDemand, 'uncapped'), seconds(86_400))).toBe(0);
    const far = asking(twice, 'far', near).interruption(spot, 'uncapped');
    expect(pInterruptedWithin(far, seconds(7200))).toBe(pInterruptedWithin(exponential(0.1), seconds(7200)));
  });

  it('asks nothing of capacity that stays: it needs no declaration', () => {
    expect(asking({}).interruption(onDemand, 'uncapped')).toEqual(whole.interruption(onDemand, 'uncapped'));
  });

  it('of another policy is not narrower for having been handed on', () => {
    const first = asking({}, 'first');
    expect(asking({ prices: true }, 'second', first).expectedPrice(spot, NOW)).toEqual(usdPerHour(0.03));
    expect(() => asking({}, 'third', asking({ prices: true })).expectedPrice(spot, NOW)).toThrow('the policy third');
  });
});

describe('the bids that are asked', () => {
  const bound = (policy: string, asks: Asks, configOf: BoundAsks['configOf'] = (c) => c): BoundAsks => ({
    policy,
    asks,
    configOf,
  });
  const text = (all: readonly BoundAsks[]): string[] =>
    bidsAsked(scene, all, config()).map(({ pool: { id }, bid }) => `${id} ${bid === 'uncapped' ? bid : raw(bid)}`);
  const HELD = `${other.id} 0.07`;

  it('are those of all policies in pools with a price, each once, and those of what is held', () => {
    expect(text([])).toEqual([HELD]);
    const uncapped: Asks = { bids: (p) => (p.option === 'spot' ? ['uncapped'] : []), horizon: 'any' };
    expect(text([bound('a', twice), bound('b', uncapped)])).toEqual([
      `${spot.id} 0.06`,
      `${spot.id} uncapped`,
      `${other.id} 0.08`,
      `${other.id} uncapped`,
      HELD,
    ]);
  });

  it('follow from the settings of the policy, not from those of the deployment alone', () => {
    const byDelta: Asks = {
      bids: (p: Pool, price, { bidDeltas }) => (p.id === spot.id ? bidDeltas.map((d) => usdPerHour(price + d)) : []),
      horizon: 'any',
    };
    const own = bound('a', byDelta, (of) => ({ ...of, bidDeltas: [1] }));
    expect(text([own])).toEqual([`${spot.id} 1.03`, HELD]);
  });

  it('follow from the settings of the preset', () => {
    const presets = { mine: { extends: 'ebbtide', settings: { bidDeltas: [0.02] } } };
    const { asks } = presetNamed('mine', presets);
    const bids = bidsAsked(scene, asks, settingsUnder('mine', config({ presets })));
    expect(bids.map(({ pool, bid }) => `${pool.id} ${bidNumber(bid)}`)).toContain(`${spot.id} 0.05`);
  });
});

describe('the horizons that are asked', () => {
  const bound = (asks: Asks): BoundAsks => ({ policy: 'a', asks, configOf: (c) => c });
  const horizons = (...all: readonly Asks[]): unknown =>
    bidsAsked(scene, all.map(bound), config()).map(({ horizon }) => (horizon === 'any' ? horizon : raw(horizon)));
  const uncapped = { bids: (p: Pool): Bid[] => (p.id === spot.id ? ['uncapped'] : []) };
  const DAY_S = 86_400;

  it('are the longest that a policy declares for a bid, and what a plan records at least', () => {
    expect(horizons()).toEqual([DAY_S]);
    expect(horizons({ ...uncapped, horizon: seconds(60) })).toEqual([DAY_S, DAY_S]);
    expect(horizons({ ...uncapped, horizon: seconds(60) }, { ...uncapped, horizon: seconds(100_000) })).toEqual([
      100_000,
      DAY_S,
    ]);
    expect(horizons({ ...uncapped, horizon: 'any' }, { held: true, horizon: seconds(90_000) })).toEqual([
      'any',
      90_000,
    ]);
  });

  it('are all that a forecast made elsewhere can be asked', () => {
    const asked = bidsAsked(scene, [bound({ ...uncapped, horizon: seconds(60) })], config());
    const elsewhere = tabledForecast(structuredClone(forecastTable({ ...whole, outlook: () => null }, NOW, asked)));
    const curve = elsewhere.interruption(spot, 'uncapped');
    expect(pInterruptedWithin(curve, seconds(DAY_S))).toBe(pInterruptedWithin(exponential(0.1), seconds(DAY_S)));
    expect(() => pInterruptedWithin(curve, seconds(DAY_S + 1))).toThrow(
      'the decision asks for the risk within 86401 s',
    );
  });
});

describe('a policy that asks what it does not declare', () => {
  /** The preset `greedy` whose scale stage declares nothing, and asks for a mean price. */
  const curious = (of: Stages<Solver>): Stages<Solver> => ({
    ...of,
    scale: (input) => {
      const { forecasts, snapshot: now } = input;
      const asked = onlyAsked(forecasts.market, { policy: 'curious', asks: {} }, input);
      for (const { pool: p } of now.pools) asked.meanPrice?.(p);
      return of.scale(input);
    },
  });
  /** The same, which declares an hour and asks for two. */
  const farSighted = (of: Stages<Solver>): Stages<Solver> => ({
    ...of,
    scale: (input) => {
      const { forecasts, snapshot: now } = input;
      const asks: Asks = { bids: (p) => (p.option === 'spot' ? ['uncapped'] : []), horizon: seconds(3600) };
      const asked = onlyAsked(forecasts.market, { policy: 'far-sighted', asks }, input);
      for (const { pool: p, quote } of now.pools)
        if (p.option === 'spot' && quote !== null) pInterruptedWithin(asked.interruption(p, 'uncapped'), seconds(7200));
      return of.scale(input);
    },
  });
  const POLICIES = [
    [curious, 'the policy curious asks for the mean price of'],
    [farSighted, 'the policy far-sighted asks for the risk within 7200 s'],
  ] as const;

  describe.each(POLICIES)('%p', (stages, says) => {
    it.each([
      ['the local engine', false],
      ['steps', true],
    ])('fails with its name in %s', async (_, stepped) => {
      const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped, stages });
      await bench.submit([job({ submittedMs: START_MS })]);
      await expect(bench.drive()).rejects.toThrow(says);
    });

    it('fails with its name in the simulator', async () => {
      const deciders = () => ({ name: 'asking', stages: stages(presetNamed('greedy').stages) });
      await expect(simulated([simulatedJob('a', 0, [600])], { deciders })).rejects.toThrow(says);
    });
  });
});
