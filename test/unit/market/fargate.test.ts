import { describe, expect, it } from '@jest/globals';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { isFargate } from '../../../lib/domain/pool.ts';
import { expectInstances, fargatePools, marketOfPreset, withFargate } from '../../../lib/market/fargate.ts';
import { presetList, presetNamed } from '../../../lib/stages/registry.ts';
import { generatedMarket } from '../../../bench/default/markets.ts';
import { config, group, pool, resources, view, world } from '../../support/decision-world.ts';
import { acquireInput } from '../../support/leftovers.ts';

const JUNE_2021 = epochMs(Date.UTC(2021, 5, 1));
const pools = fargatePools('us-east-1a', JUNE_2021);
const priceOf = (name: string, of = pools): number =>
  raw(of.find((p) => p.type.name === name)?.onDemandUsdPerHour as never);

describe('Fargate', () => {
  it('has the valid sizes alone', () => {
    const names = pools.map((p) => p.type.name);
    expect(names).toContain('fargate.256x512');
    expect(names).toContain('fargate.4096x30720');
    expect(names).not.toContain('fargate.256x3072');
    expect(names).not.toContain('fargate.8192x18432');
    // 3 + 4 + 7 + 13 + 23 + 12 + 12 sizes.
    expect(names).toHaveLength(74);
    expect(new Set(names).size).toBe(74);
  });

  it('costs vCPUs and GB at the prices of the time', () => {
    // 2 x 0.04048 + 4 x 0.004445, and 2 x 0.0506 + 4 x 0.0127 until 2019; before Fargate began, the first prices.
    expect(priceOf('fargate.2048x4096')).toBeCloseTo(0.09874, 6);
    expect(priceOf('fargate.2048x4096', fargatePools('a', epochMs(Date.UTC(2018, 4, 1))))).toBeCloseTo(0.152, 6);
    expect(priceOf('fargate.2048x4096', fargatePools('a', epochMs(Date.UTC(2016, 4, 1))))).toBeCloseTo(0.152, 6);
  });

  it('stands beside the instances of a market', () => {
    const trace = generatedMarket(1);
    const both = withFargate(trace);
    const added = both.pools.filter(isFargate);
    expect(both.pools).toHaveLength(trace.pools.length + 74);
    const [first] = added;
    if (first === undefined) throw new Error('there is Fargate');
    expect([...both.prices(first.id).usdPerHour]).toEqual([raw(first.onDemandUsdPerHour)]);
    expect(both.availability(first.id)).toBeNull();
    const [instance] = trace.pools;
    if (instance === undefined) throw new Error('there are instances');
    expect(both.prices(instance.id)).toBe(trace.prices(instance.id));
  });
});

describe('presets and Fargate', () => {
  const machine = view(pool({ vcpus: 4, gib: 16, option: 'on-demand', onDemand: 0.2 }), 0.2);
  const sizes = pools.map((p) => view(p, raw(p.onDemandUsdPerHour)));
  const need = resources(1.5, 5);
  const wanted = [{ group: group({ id: 'a', count: 2, need }), runtimeS: 60, pools: [machine] }];

  it('fargate buys the cheapest size that holds a task, for each task one', () => {
    const { stages } = presetNamed('fargate');
    const input = acquireInput(wanted, { pools: [machine, ...sizes] });
    const { purchases } = stages.scale({ ...input, later: () => [], used: new Set() });
    expect(purchases.map((p) => [p.pool, p.count])).toEqual([['fargate.2048x5120/us-east-1a/on-demand', 2]]);
  });

  it('fargate buys nothing in a market without it', () => {
    const { stages } = presetNamed('fargate');
    const input = acquireInput(wanted, { pools: [machine] });
    expect(stages.scale({ ...input, later: () => [], used: new Set() }).purchases).toEqual([]);
  });

  it('is brought into a simulation for a preset that buys nothing else, and that preset is refused elsewhere', () => {
    const trace = generatedMarket(1);
    for (const { name } of presetList()) {
      const { stages } = presetNamed(name);
      const isFargateAlone = name === 'fargate';
      expect(marketOfPreset(trace, stages).pools.some(isFargate)).toBe(isFargateAlone);
      if (isFargateAlone) expect(() => expectInstances(name, stages)).toThrow('buys AWS Fargate');
      else expectInstances(name, stages);
    }
  });

  it.each(
    presetList()
      .map((p) => p.name)
      .filter((name) => name !== 'fargate'),
  )('%s never buys it', (name) => {
    // Fargate costs next to nothing here, and instances a lot.
    const { stages } = presetNamed(name);
    const cheap = sizes.map(({ pool: p }) => view(p, 0.0001));
    const facts = world({ pools: [machine, ...cheap], groups: [group({ id: 'a', need })] });
    const appraised = stages.appraise({ ...facts, config: config() });
    for (const { offers } of appraised.values()) expect(offers.every((o) => o.pool === machine.pool.id)).toBe(true);
    const input = acquireInput(wanted, { pools: [machine, ...cheap] });
    const { purchases } = stages.scale({ ...input, later: () => [], used: new Set() });
    expect(purchases.map((p) => p.pool)).toEqual([machine.pool.id]);
  });
});
