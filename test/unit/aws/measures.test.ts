import { afterEach, expect, it, jest } from '@jest/globals';
import middy from '@middy/core';
import { z } from 'zod';
import { measuredStore } from '../../../lib/aws/measures.ts';
import { Spent } from '../../../lib/aws/spent.ts';
import { lambdaStack } from '../../../lib/aws/stack.ts';
import { Table } from '../../../lib/aws/store/table.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import { instanceId } from '../../../lib/kernel/ids.ts';
import { epochMs, usd } from '../../../lib/kernel/units.ts';
import { MemoryStore } from '../../../lib/sim/memory-store.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { instance } from '../../support/builders.ts';
import { invoke } from './lambda.ts';

const HOUR = 3_600_000;
afterEach(() => {
  jest.restoreAllMocks();
});

/** The lines that a Lambda writes which commits these instances one after another. */
async function written(commits: readonly Instance[]): Promise<Record<string, unknown>[]> {
  const lines: string[] = [];
  const keep = (line: unknown) => lines.push(...String(line).trim().split('\n')) > 0;
  jest.spyOn(process.stdout, 'write').mockImplementation(keep);
  jest.spyOn(process.stderr, 'write').mockImplementation(keep);
  const spent = new Spent(new Table({ client: new DynamoDouble().client(), name: 'table' }));
  const inner = new MemoryStore();
  const store = measuredStore(inner, spent);
  const token = await inner.takeLease('test');
  const handler = middy()
    .use(lambdaStack('test', z.object({})))
    .handler(async () => {
      for (const value of commits) await store.commit(token, [{ put: 'instance', value }]);
    });
  await invoke(handler, {});
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
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
