import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { composeBackend, type DeployedBackend } from '../../../../lib/api/on-aws/aws-backend.ts';
import { partsOf, type Parts } from '../../../../lib/drivers/aws/compose/compose.ts';
import { readEnvironment } from '../../../../lib/drivers/aws/compose/environment.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { numberOf, textAt } from '../../../../lib/drivers/aws/store/codec.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { LoggedHistory } from '../../../../lib/stages/estimate/logged-history.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { epochMs, seconds } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/builders.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';

/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:1';
const WAKE = { pk: 'WAKE', sk: 'WAKE' };

/**
 * The API's backend as its environment says, with DynamoDB and S3 in their doubles, and a queue that cannot be reached.
 */
class Bench {
  /** How often prices were read. */
  reads = 0;
  readonly started: string[] = [];
  readonly table: Table;
  readonly store: DynamoStore;
  readonly backend: DeployedBackend;
  readonly wake: Wake;

  constructor() {
    const client = new DynamoDouble().client();
    const s3 = new ObjectsDouble().client();
    this.table = new Table({ client, name: 'table' });
    this.store = new DynamoStore({ dynamodb: client, s3, table: 'table', bucket: 'bucket' });
    this.wake = new Wake({
      table: this.table,
      nowMs: () => Date.now(),
      random: randomStream(1, 'backend'),
      start: async (execution) => void this.started.push(execution),
    });
    const environment = readEnvironment(lambdaEnvironment());
    const prices = async (): Promise<object> => {
      this.reads++;
      return { market: {}, checkedMs: null, trace: {} };
    };
    const market = { prices } as unknown as ReturnType<Parts['market']>;
    this.backend = composeBackend({
      ...partsOf(environment),
      table: () => this.table,
      store: () => this.store,
      wake: () => this.wake,
      market: () => market,
    });
  }
}

const kept = { ...process.env };
beforeEach(() => {
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: NOWHERE,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_MAX_ATTEMPTS: '1',
  });
});
afterEach(() => {
  jest.restoreAllMocks();
  process.env = { ...kept };
});

it('a submission whose message the queue does not take is found by the clock', async () => {
  const { backend, table, wake, started } = new Bench();
  backend.backend.wake();
  await backend.settle();
  expect(numberOf(await table.get(WAKE), 'wanted')).toBe(1);
  // Nothing runs yet: who serves a request may start nothing.
  expect(textAt(await table.get(WAKE), 'running')).toBe('');
  expect(started).toEqual([]);
  expect(await wake.wakeIfDue(Date.now())).toBe('started');
  expect(started).toHaveLength(1);
});

it('several wake-ups of one request are one', async () => {
  const { backend, table } = new Bench();
  for (let n = 0; n < 5; n++) backend.backend.wake();
  await backend.settle();
  expect(numberOf(await table.get(WAKE), 'wanted')).toBe(1);
  backend.backend.wake();
  await backend.settle();
  expect(numberOf(await table.get(WAKE), 'wanted')).toBe(2);
});

it('nobody is woken while a round is still to come, and again once it has begun', async () => {
  const { backend, table, wake, started } = new Bench();
  await wake.wake();
  backend.backend.wake();
  await backend.settle();
  expect(numberOf(await table.get(WAKE), 'wanted')).toBe(1);
  await wake.begin(started[0] ?? '');
  backend.backend.wake();
  await backend.settle();
  expect(numberOf(await table.get(WAKE), 'wanted')).toBe(2);
});

it('what was learned is read, that included which is only in the log of runs yet', async () => {
  const { backend, store } = new Bench();
  const learned = new LoggedHistory();
  const features = {
    owner: 'ana',
    jobName: 'nightly',
    program: 'sh',
    stage: 'main',
    resources: resources(),
    submittedMs: epochMs(0),
  };
  learned.learn(features, seconds(60));
  const rows = learned.takeDirty();
  expect([...rows.keys()].some((key) => key.includes('/log/'))).toBe(true);
  const token = await store.takeLease('a cycle');
  await store.commit(
    token,
    [...rows].map(([key, value]) => ({ put: 'memory', key, value })),
  );
  await expect(backend.refresh()).resolves.toBeUndefined();
});

it('prices are read anew when they are old, also by a clock that was put back meanwhile', async () => {
  const bench = new Bench();
  const atMs = Date.now();
  const clock = jest.spyOn(Date, 'now').mockReturnValue(atMs);
  for (const [seconds, reads] of [
    [0, 1],
    [20, 1],
    [40, 2],
    [45, 2],
    [-600, 3],
    [-590, 3],
  ] as const) {
    clock.mockReturnValue(atMs + seconds * 1000);
    await bench.backend.refresh();
    expect([seconds, bench.reads]).toEqual([seconds, reads]);
  }
});
