import { afterEach, expect, it, jest } from '@jest/globals';
import middy from '@middy/core';
import { z } from 'zod';
import { measuredStore, measureSnapshot } from '../../../../lib/drivers/aws/metrics/measures.ts';
import { Spent } from '../../../../lib/drivers/aws/metrics/spent.ts';
import { lambdaStack } from '../../../../lib/drivers/aws/lambda/stack.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import type { Instance } from '../../../../lib/domain/instance.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, usd, usdPerHour } from '../../../../lib/kernel/units.ts';
import type { InstanceView } from '../../../../lib/domain/snapshot.ts';
import type { Market } from '../../../../lib/ports/market.ts';
import { MemoryStore } from '../../../../lib/drivers/sim/memory-store.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { instance, pool, snapshot } from '../../../support/builders.ts';
import { invoke } from './lambda.ts';

const HOUR = 3_600_000;
afterEach(() => {
  jest.restoreAllMocks();
});

const noneSpent = (): Spent => new Spent(new Table({ client: new DynamoDouble().client(), name: 'table' }));

/** The lines that a Lambda writes which does this. */
async function linesOf(work: () => Promise<void>): Promise<Record<string, unknown>[]> {
  const lines: string[] = [];
  const keep = (line: unknown) => lines.push(...String(line).trim().split('\n')) > 0;
  jest.spyOn(process.stdout, 'write').mockImplementation(keep);
  jest.spyOn(process.stderr, 'write').mockImplementation(keep);
  const handler = middy()
    .use(lambdaStack('test', z.object({})))
    .handler(work);
  await invoke(handler, {});
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Of one that commits these instances one after another. */
async function written(commits: readonly Instance[]): Promise<Record<string, unknown>[]> {
  const inner = new MemoryStore();
  const store = measuredStore(inner, noneSpent());
  const token = await inner.takeLease('test');
  return linesOf(async () => {
    for (const value of commits) await store.commit(token, [{ put: 'instance', value }]);
  });
}

it('what was forecast of spot instances is counted once for each, when it is paid for', async () => {
  const forecast = { by: 'v1', horizonS: [3600], pInterrupted: [1 - Math.exp(-0.2)] };
  const ended = { state: 'ended', endedMs: epochMs(2 * HOUR) } as const;
  const taken = instance({ id: instanceId('i-1'), forecast, ...ended, endCause: 'interrupted' });
  const kept = instance({ id: instanceId('i-2'), forecast, ...ended, endCause: 'released' });
  const lines = await written([
    instance({ id: instanceId('i-1'), forecast }),
    taken,
    { ...taken, costUsd: usd(0.1) },
    { ...kept, costUsd: usd(0.1) },
    // Nothing was forecast of one, the other never came up.
    instance({ id: instanceId('i-3'), ...ended, endCause: 'interrupted', costUsd: usd(0.1) }),
    instance({ id: instanceId('i-4'), forecast, ...ended, launchedMs: null, endCause: 'failed', costUsd: usd(0) }),
  ]);
  expect(lines.filter((l) => l['message'] === 'held')).toMatchObject(
    [1, 0].map((interrupted) => ({
      pool: taken.pool,
      by: 'v1',
      hours: 2,
      expected: expect.closeTo(0.4, 9),
      interrupted,
    })),
  );
  const [metrics] = lines.filter((l) => 'EndedExpected' in l);
  expect(metrics).toMatchObject({
    EndedExpected: [expect.closeTo(0.4, 9), expect.closeTo(0.4, 9)],
    EndedInterrupted: [1, 0],
  });
});

it('capacity and price are told apart in the log, where the forecast of capacity was kept', async () => {
  const both = { by: 'v1', horizonS: [3600], pInterrupted: [1 - Math.exp(-0.3)] };
  const forecast = { ...both, capacity: { by: 'observed', pInterrupted: [1 - Math.exp(-0.1)] } };
  const paid = { state: 'ended', endedMs: epochMs(2 * HOUR), costUsd: usd(0.1) } as const;
  const lines = await written([
    instance({ id: instanceId('i-1'), forecast, ...paid, endCause: 'interrupted', marketCause: 'capacity' }),
    instance({ id: instanceId('i-2'), forecast, ...paid, endCause: 'interrupted', marketCause: 'price' }),
    instance({ id: instanceId('i-3'), forecast, ...paid, endCause: 'released' }),
    instance({ id: instanceId('i-4'), forecast: both, ...paid, endCause: 'released' }),
  ]);
  const held = lines.filter((l) => l['message'] === 'held');
  const expected = { capacityExpected: expect.closeTo(0.2, 9), priceExpected: expect.closeTo(0.4, 9) };
  expect(held.slice(0, 3)).toMatchObject([
    { ...expected, capacityInterrupted: 1, priceInterrupted: 0 },
    { ...expected, capacityInterrupted: 0, priceInterrupted: 1 },
    { ...expected, capacityInterrupted: 0, priceInterrupted: 0 },
  ]);
  expect(held[3]).not.toHaveProperty('capacityExpected');
  // A series for each would be paid for.
  expect(lines.flatMap((l) => Object.keys(l)).filter((key) => /^(Capacity|Price)/.test(key))).toEqual([]);
});

it('reserved instances are a rate of their own where there are any, and save nothing', async () => {
  const prices = { reserved: 0, spot: 0.03, 'on-demand': 0.1 } as const;
  const viewOf = (option: keyof typeof prices, n: number): InstanceView => {
    const of = pool({ option, onDemand: 0.1 });
    const launched = instance({ id: instanceId(`i-${n}`), pool: of.id, launchedMs: epochMs(0) });
    return { instance: launched, pool: of, attempts: [] } as unknown as InstanceView;
  };
  const market: Pick<Market, 'quote'> = {
    quote: (id) => usdPerHour(prices[id.split('/')[2] as keyof typeof prices]),
  };
  const seen = (...options: (keyof typeof prices)[]) => {
    const views = options.map(viewOf).map((v) => [v.instance.id, v] as const);
    const picture = snapshot({ nowMs: epochMs(HOUR), instances: new Map(views) });
    return linesOf(() => measureSnapshot(picture, { market: market as Market, checkedMs: null }, noneSpent()));
  };
  const rates = (lines: readonly Record<string, unknown>[]) =>
    lines.flatMap((l) => ('SpendRate' in l ? [[l['option'], l['SpendRate']] as const] : [])).sort();
  const without = await seen('spot', 'on-demand');
  expect(rates(without)).toEqual([
    ['on-demand', 0.1],
    ['spot', 0.03],
  ]);
  const lines = await seen('spot', 'reserved', 'reserved');
  expect(rates(lines)).toEqual([
    ['on-demand', 0],
    ['reserved', 0],
    ['spot', 0.03],
  ]);
  expect(lines.find((l) => 'OnDemandRate' in l)).toMatchObject({ OnDemandRate: 0.1 });
});
