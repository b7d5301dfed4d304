import { describe, expect, it } from '@jest/globals';
import type { MarketForecast } from '../../../lib/domain/forecasts.ts';
import type { Pool } from '../../../lib/domain/pool.ts';
import { raw, usdPerHour } from '../../../lib/kernel/units.ts';
import type { Stages } from '../../../lib/policy/contracts.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { bidsAsked, onlyAsked, type Asks, type BoundAsks } from '../../../lib/policy/asks.ts';
import { config, exponential, instance, market, NOW, pool, view } from '../../support/decision-world.ts';
import { job, snapshot } from '../../support/builders.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const spot = pool();
const other = pool({ zone: 'us-east-1b' });
const unpriced = pool({ zone: 'us-east-1c' });
const steady = pool({ option: 'on-demand' });
const pools = [view(spot, 0.03), view(other, 0.04), view(unpriced, null), view(steady, 0.1)];
const held = instance('i-held', other, { bid: usdPerHour(0.07) });
const scene = snapshot({ nowMs: NOW, pools, instances: new Map([[held.instance.id, held]]) });
const whole: MarketForecast = {
  ...market(pools, () => exponential(0.1)),
  meanPrice: () => usdPerHour(0.05),
};
const asking = (asks: Asks, policy = 'curious', of: MarketForecast = whole): MarketForecast =>
  onlyAsked(of, { policy, asks }, { snapshot: scene, config: config() });
const twice: Asks = { bids: (p, price) => (p.option === 'spot' ? [usdPerHour(2 * price), 'uncapped'] : []) };

describe('a forecast as one policy may ask it', () => {
  it('answers what is declared as the whole forecast does', () => {
    const all = asking({ ...twice, held: true, prices: true, correlations: true });
    for (const bid of [usdPerHour(0.06), 'uncapped'] as const)
      expect(all.interruption(spot, bid)).toEqual(whole.interruption(spot, bid));
    expect(all.interruption(other, usdPerHour(0.07))).toEqual(exponential(0.1));
    expect(all.expectedPrice(spot, NOW)).toEqual(usdPerHour(0.03));
    expect(all.meanPrice?.(spot)).toEqual(usdPerHour(0.05));
    expect(all.correlation(spot, spot)).toBe(1);
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
    ['a held bid in another pool', { held: true }, (m) => m.interruption(spot, usdPerHour(0.07)), 'at a bid of 0.07'],
    ['an expected price', { held: true }, (m) => m.expectedPrice(spot, NOW), 'the expected price of'],
    ['a mean price', { correlations: true }, (m) => m.meanPrice?.(spot), 'the mean price of'],
    ['a correlation', { prices: true }, (m) => m.correlation(spot, other), 'the correlation of'],
  ])('refuses %s that is not declared, with the name of the policy', (_, asks, ask, text) => {
    expect(() => ask(asking(asks))).toThrow('the policy curious asks for ');
    expect(() => ask(asking(asks))).toThrow(text);
  });

  it('asks nothing of capacity that stays: it needs no declaration', () => {
    expect(asking({}).interruption(steady, 'uncapped')).toEqual(whole.interruption(steady, 'uncapped'));
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
    const uncapped: Asks = { bids: (p) => (p.option === 'spot' ? ['uncapped'] : []) };
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
    };
    const own = bound('a', byDelta, (of) => ({ ...of, bidDeltas: [1] }));
    expect(text([own])).toEqual([`${spot.id} 1.03`, HELD]);
    const { asks } = presetNamed('mine', {
      mine: { extends: 'ebbtide', appraise: { policy: 'cost-and-risk', bidDeltas: [0.02] } },
    });
    expect(text(asks)).toContain(`${spot.id} 0.05`);
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
  const SAYS = 'the policy curious asks for the mean price of';

  it.each([
    ['the local engine', false],
    ['steps', true],
  ])('fails with its name in %s', async (_, stepped) => {
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped, stages: curious });
    await bench.submit([job({ submittedMs: START_MS })]);
    await expect(bench.drive()).rejects.toThrow(SAYS);
  });

  it('fails with its name in the simulator', async () => {
    const deciders = () => ({ name: 'curious', stages: curious(presetNamed('greedy').stages) });
    await expect(simulated([simulatedJob('a', 0, [600])], { deciders })).rejects.toThrow(SAYS);
  });
});
