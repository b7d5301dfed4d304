import { describe, expect, it } from '@jest/globals';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { brokenConstraint } from '../../../lib/domain/constraints.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { instanceId } from '../../../lib/kernel/ids.ts';
import { capacityOf } from '../../../lib/market/capacity-truth.ts';
import { marketWithCluster, ownVcpus, parseCluster, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { generatedMarket } from '../../../bench/default/markets.ts';

const refusal = (text: string): EbbError => {
  try {
    parseCluster(text);
  } catch (error) {
    if (error instanceof EbbError) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
};
const findings = (text: string): string =>
  (refusal(text).facts.issues ?? []).map((i) => `${i.at}: ${i.message}`).join('\n');

describe('machines of the user', () => {
  it('are a pool for each kind and rack, spread evenly', () => {
    const { pools } = marketWithCluster(
      null,
      '10x{cpu: 4, memory: 16GiB, rack: 3} + 2x{cpu: 8, memory: 32GiB, gpu: 1, name: gpu-node, labels: {gpu: a100}, usdPerHour: 1.5}',
    );
    expect(pools.map((p) => [p.id, p.reservedInstances])).toEqual([
      ['machine-1/rack-1/reserved', 4],
      ['machine-1/rack-2/reserved', 3],
      ['machine-1/rack-3/reserved', 3],
      ['gpu-node/rack-1/reserved', 2],
    ]);
    expect(pools.at(-1)?.labels).toEqual({ rack: 'rack-1', machine: 'gpu-node', gpu: 'a100' });
    expect(ownVcpus({ pools })).toBe(56);
  });

  it('cost what their owner says, and are compared with a list price', () => {
    const trace = marketWithCluster(null, '1x{cpu: 4, memory: 16GiB} + 1x{cpu: 4, memory: 16GiB, usdPerHour: 0.25}');
    const prices = trace.pools.map((p) => [...trace.prices(p.id).usdPerHour]);
    expect(prices).toEqual([[0], [0.25]]);
    // 4 x 0.04048 + 16 x 0.004445.
    expect(trace.pools.map((p) => raw(p.onDemandUsdPerHour))).toEqual([0.23304, 0.23304]);
  });

  it('are up at once, where rented ones are not', () => {
    const trace = marketWithCluster(generatedMarket(1), '2x{cpu: 4, memory: 16GiB}');
    const truth = capacityOf(trace, schedulerConfig.parse({}));
    const at = epochMs(raw(trace.startMs) + 1000);
    const readyIn = (isOwn: boolean): number => {
      const pool = trace.pools.find((p) => (p.isOwn === true) === isOwn);
      if (pool === undefined) throw new Error('there are both');
      return raw(truth.ready({ pool: pool.id, instance: instanceId('i-1') }, at)) - raw(at);
    };
    expect(readyIn(true)).toBe(0);
    expect(readyIn(false)).toBeGreaterThanOrEqual(30_000);
    expect(settingsOfCluster(trace)).toEqual({});
    expect(settingsOfCluster(marketWithCluster(null, '2x{cpu: 4, memory: 16GiB}')).startDelayMaxS).toBe(0);
  });

  it('have labels that constraints name, each with the values it may have', () => {
    const { pools } = marketWithCluster(null, '4x{cpu: 4, memory: 16GiB, rack: 2, labels: {tier: gold}}');
    const allowed = (labels: Record<string, readonly string[]>): number =>
      pools.filter((p) => brokenConstraint({ labels }, p) === null).length;
    expect(allowed({ rack: ['rack-2'] })).toBe(1);
    expect(allowed({ rack: ['rack-1', 'rack-2'], tier: ['gold'] })).toBe(2);
    expect(allowed({ tier: ['silver'] })).toBe(0);
    // Inherited properties of an object are no labels.
    expect(allowed({ constructor: [''] })).toBe(0);
    expect(brokenConstraint({ labels: { rack: ['rack-1'] } }, generatedMarket(1).pools[0] as never)).toBe('labels');
  });
});

describe('a description of a cluster that cannot be read', () => {
  it('is refused with an example of one that can', () => {
    for (const text of [
      '',
      '4',
      '4x',
      '{cpu: 4, memory: 1GiB}',
      '0x{cpu: 4, memory: 1GiB}',
      '4x{cpu: 4, memory: 1GiB}+',
      '-1x{}',
    ])
      expect(findings(text)).toContain('must be like 256x{cpu: 4, memory: 16GiB, rack: 8}');
    expect(refusal('4').code).toBe('usage');
  });

  it('names what is wrong, all at once', () => {
    const found = findings('4x{cpu: 0, memory: 16, colour: red} + 2x{cpu: 1, memory: 1GiB, rack: 3}');
    expect(found).toContain('cpu: must be');
    expect(found).toContain('Unrecognized key: "colour"');
    expect(found).toContain('3 racks for 2 machines');
  });

  it('bounds machines, kinds and racks', () => {
    expect(findings('100001x{cpu: 1, memory: 1GiB}')).toContain('100001 are more than the 100000');
    expect(findings(Array.from({ length: 65 }, () => '1x{cpu: 1, memory: 1GiB}').join('+'))).toContain(
      '65 are more than the 64',
    );
    expect(findings('1x{cpu: 1, memory: 1GiB, name: a}+1x{cpu: 1, memory: 1GiB, name: a}')).toContain('share a name');
  });

  it('does not read YAML that grows', () => {
    expect(findings('1x{cpu: &a 1, memory: *a}')).not.toBe('');
  });
});
