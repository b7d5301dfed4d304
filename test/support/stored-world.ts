import { createHash } from 'node:crypto';
import type { EC2Client } from '@aws-sdk/client-ec2';
import type { PricingClient } from '@aws-sdk/client-pricing';
import type { SchedulerClient } from '@aws-sdk/client-scheduler';
import { DynamoStore } from '../../lib/drivers/aws/store/dynamo-store.ts';
import { body } from '../../lib/drivers/aws/store/codec.ts';
import { RESERVED, SUPERSEDED_TAG } from '../../lib/drivers/aws/store/keys.ts';
import type { ReservedPool } from '../../lib/drivers/aws/market/known-reservations.ts';
import { Inbox } from '../../lib/drivers/aws/fleet/inbox.ts';
import { launchedRecord } from '../../lib/drivers/aws/fleet/instance-record.ts';
import { Table } from '../../lib/drivers/aws/store/dynamo-table.ts';
import { PriceBook } from '../../lib/drivers/aws/market/price-book.ts';
import { refreshListPrices } from '../../lib/drivers/aws/market/fetch-on-demand-prices.ts';
import { fetchPrices } from '../../lib/drivers/aws/market/prices.ts';
import { WindowEnds } from '../../lib/drivers/aws/market/window-ends.ts';
import { attemptId, effectKey, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, seconds, usd } from '../../lib/kernel/units.ts';
import {
  attempt,
  effect,
  explanation,
  idleRow,
  instance,
  job,
  ledgerRow,
  plan,
  spec,
  task,
} from '../contract/store-samples.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../doubles/dynamodb/table.ts';
import { COST_KEYS } from '../../lib/domain/costs.ts';

/**
 * A deployment's table and bucket with some of everything in them: jobs that are over, run, wait and have just been
 * submitted, in the items and only in the log, small and too large for an item. For what must hold of all of it,
 * whatever version wrote it.
 */
export interface StoredWorld {
  readonly table: DynamoDouble;
  readonly objects: ObjectsDouble;
}

export const WORLD_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const HISTORY_DAYS = 90;
/** Commits after which the log is compacted into items (journal.ts). */
const COMPACTED_AFTER = 100;
/** Characters of noise that fit into no item (blobs.ts). */
const LARGE = 22_500;

/** The parts of a deployment that keep something, on the doubles. */
export function opened({ table, objects }: StoredWorld): {
  readonly store: DynamoStore;
  readonly inbox: Inbox;
  readonly watched: Table;
} {
  const nowMs = (): number => WORLD_MS;
  const store = new DynamoStore({
    dynamodb: table.client(),
    s3: objects.client(),
    table: 'table',
    bucket: 'bucket',
    nowMs,
    retention: { plans: 500, events: 100_000, historyDays: HISTORY_DAYS },
  });
  const watched = new Table({ client: table.client(), name: 'table', nowMs });
  return { store, inbox: new Inbox(watched, nowMs), watched };
}

/** What no compression makes short, the same each time. */
const noise = (bytes: number): string => {
  let text = '';
  for (let n = 0; text.length < bytes; n++) text += createHash('sha256').update(String(n)).digest('base64');
  return text.slice(0, bytes);
};

const manyTasks = spec({ name: 'wide', stages: spec().stages.map((stage) => ({ ...stage, tasks: 70 })) });
const largeSpec = spec({ name: 'large', labels: { noise: noise(LARGE) } });

/** Lives through it as an engine's commits and a fleet's writes do. */
export async function storedWorld(): Promise<StoredWorld> {
  const world: StoredWorld = { table: new DynamoDouble(), objects: new ObjectsDouble() };
  const { store, inbox, watched } = opened(world);
  const token = await store.takeLease('engine');
  await whatIsOver(store, token);
  await whatRuns(store, token);
  await compacted(store, token);
  await whatOnlyTheLogHas(store, token);
  await ofTheFleet(inbox);
  await ofTheMarket(watched);
  // What nothing names any more is not part of the world.
  world.objects.expire(`${SUPERSEDED_TAG.Key}=${SUPERSEDED_TAG.Value}`);
  return world;
}

/** So many commits that what the log has is written to the items. Changes nothing that can be asked. */
export async function compacted(store: DynamoStore, lease?: number): Promise<void> {
  const token = lease ?? (await store.takeLease('another'));
  for (let n = 0; n < COMPACTED_AFTER; n++) await store.commit(token, [{ put: 'memory', key: 'n', value: 'same' }]);
}

async function whatIsOver(store: DynamoStore, token: number): Promise<void> {
  const [ofJob, at] = [{ job: jobId('j1') }, { instance: instanceId('i-1') }];
  await store.submit([{ job: job('j1'), idempotency: { key: 'key-j1', digest: 'd' } }]);
  await store.loadActive();
  await store.commit(token, [{ put: 'plan', value: plan('p1', [explanation('j1', 'starts')]) }]);
  await store.commit(token, [
    { put: 'instance', value: instance('i-1') },
    { put: 'task', value: task('j1', 0) },
    { put: 'attempt', value: attempt('j1.main.0.1', { ...ofJob, ...at }) },
    { put: 'cursor', ...at, sequence: 3 },
  ]);
  await store.commit(token, [
    { put: 'job', value: job('j1', { state: 'succeeded', finishedMs: epochMs(WORLD_MS) }) },
    { put: 'task', value: task('j1', 0, { state: 'succeeded' }) },
    { put: 'attempt', value: attempt('j1.main.0.1', { ...ofJob, state: 'ended', outcome: 'succeeded' }) },
    { put: 'plan', value: plan('p2', [explanation('j2', noise(LARGE))]) },
    { put: 'event', value: { atMs: epochMs(WORLD_MS), type: 'job-succeeded', job: ofJob.job, text: 'done', data: {} } },
    { put: 'memory', key: 'runtimes|nightly', value: JSON.stringify({ meanS: 90.5 }) },
    { put: 'memory', key: 'runtimes|large', value: noise(LARGE) },
  ]);
  await store.commit(token, [
    { put: 'instance', value: instance('i-1', { state: 'ended', endCause: 'released', costUsd: usd(0.105) }) },
    { put: 'ledger', ...at, value: [ledgerRow({ caller: null }), idleRow({ usd: 0.085 })] },
  ]);
  // Nothing is left to do: all is compacted.
  await store.loadActive();
}

async function whatRuns(store: DynamoStore, token: number): Promise<void> {
  const wide = job('j2', { spec: manyTasks });
  await store.submit([
    { job: wide, idempotency: { key: 'key-j2', digest: 'd' } },
    { job: job('j3', { spec: largeSpec }), idempotency: { key: 'key-j3', digest: 'd' } },
  ]);
  await store.loadActive();
  await store.commit(token, [
    { put: 'job', value: { ...wide, state: 'running' } },
    { put: 'instance', value: instance('i-2') },
    ...[0, 1, 40].flatMap((index) => [
      { put: 'task' as const, value: task('j2', index) },
      { put: 'attempt' as const, value: attempt(`j2.main.${index}.1`, { ...ofWide, index }) },
    ]),
    { put: 'attempt', value: attempt('of another form', { ...ofWide, index: 40, number: 2 }) },
    { put: 'cursor', instance: instanceId('i-2'), sequence: 7 },
    { put: 'effect', value: effect('release-1') },
  ]);
}

const ofWide = { job: jobId('j2'), instance: instanceId('i-2') };

async function whatOnlyTheLogHas(store: DynamoStore, token: number): Promise<void> {
  await store.commit(token, [
    { put: 'attempt', value: attempt('j2.main.0.1', { ...ofWide, state: 'ended', outcome: 'succeeded' }) },
    { put: 'task', value: task('j2', 0, { state: 'succeeded' }) },
    { put: 'instance', value: instance('i-3', { state: 'requested' }) },
    { put: 'effect', value: effect('release-2') },
  ]);
  await store.commit(token, [
    { put: 'plan', value: plan('p3', [explanation('j3', 'waits')]) },
    { put: 'instance', value: instance('i-4', { state: 'ended', costUsd: usd(0.02) }) },
    { put: 'ledger', instance: instanceId('i-4'), value: [idleRow({ instance: instanceId('i-4') })] },
  ]);
  await store.requestCancel(jobId('j3'));
  // One that is larger than an item of the log.
  await store.commit(token, [
    { put: 'event', value: { atMs: epochMs(0), type: 'note', job: null, text: noise(LARGE), data: {} } },
  ]);
  await store.submit([{ job: job('j4'), idempotency: { key: 'key-j4', digest: 'd' } }]);
  await store.submit([{ job: job('j5', { spec: largeSpec }), idempotency: null }]);
}

async function ofTheFleet(inbox: Inbox): Promise<void> {
  const record = launchedRecord({
    instance: 'i-2',
    key: 'launch-2',
    pool: 'c5.large/us-east-1a/spot',
    bid: 0.05,
    ec2: 'i-0abc',
  });
  await inbox.create(record, (made) => made);
  await inbox.putOrder({
    key: effectKey('start-1'),
    attempt: attemptId('j2.main.1.1'),
    instance: instanceId('i-2'),
    command: ['true'],
    env: {},
    workdir: '/data',
    inputs: [],
    outputs: [],
    resources: { cpu: milliCpu(500), memory: mib(512), gpus: 0, disk: mib(0) },
    timeoutS: seconds(60),
    checkpoint: null,
    task: { job: 'j2', stage: 'main', index: 1, number: 1 },
  });
}

/** Prices, and schedules for windows that end. */
async function ofTheMarket(table: Table): Promise<void> {
  const [types, zones] = [['c5.large'], ['us-east-1a']];
  const change = { InstanceType: 'c5.large', AvailabilityZone: 'us-east-1a', SpotPrice: '0.04' };
  const at = { ...change, Timestamp: new Date(WORLD_MS - DAY_MS / 2) };
  const ec2 = { send: async () => ({ SpotPriceHistory: [at] }) } as unknown as EC2Client;
  await fetchPrices({ client: ec2, table, types, zones, historyS: DAY_MS / 1000 }, epochMs(WORLD_MS));
  const product = {
    product: { attributes: { instanceType: 'c5.large', regionCode: 'us-east-1' } },
    terms: { OnDemand: { t: { priceDimensions: { d: { unit: 'Hrs', pricePerUnit: { USD: '0.085' } } } } } },
  };
  const pricing = { send: async () => ({ PriceList: [JSON.stringify(product)] }) } as unknown as PricingClient;
  await refreshListPrices({ client: pricing, table, region: 'us-east-1', types }, epochMs(WORLD_MS));
  const reserved: readonly ReservedPool[] = [
    { type: 'c5.large', zone: 'us-east-1a', ids: ['cr-1'], instances: 2, turnsMs: [WORLD_MS] },
  ];
  await table.write({ key: RESERVED, set: { b: body(reserved) } });
  await schedulesMade(table);
}

/** How many schedules are made for a window that ends then: none where its schedule is known. */
async function schedulesMade(table: Table): Promise<number> {
  let made = 0;
  const client = { send: async () => (made += 1) } as unknown as SchedulerClient;
  const place = { group: 'group', role: 'role', queue: 'queue' };
  const windows = new WindowEnds({ client, table, ...place, nowMs: () => WORLD_MS, warn: () => undefined });
  await windows.keep([WORLD_MS + DAY_MS / 24]);
  return made;
}

const JOBS = ['j1', 'j2', 'j3', 'j4', 'j5'].map(jobId);
const INSTANCES = ['i-1', 'i-2', 'i-3', 'i-4'].map(instanceId);

/** Everything that can be asked, as plain JSON. Takes in what was submitted. */
export async function answersOf({ store, inbox, watched }: ReturnType<typeof opened>): Promise<unknown> {
  const ofEach = async <K extends string, V>(keys: readonly K[], ask: (key: K) => Promise<V>): Promise<readonly V[]> =>
    Promise.all(keys.map(ask));
  const active = await store.loadActive();
  const book = new PriceBook(watched);
  const prices = await book.prices({ fromMs: WORLD_MS - DAY_MS, toMs: WORLD_MS, checkedMs: WORLD_MS });
  const answers = {
    active: { ...active, cursors: [...active.cursors] },
    jobs: await store.jobs({}, 100, null),
    submitted: await ofEach(
      ['key-j1', 'key-j2', 'key-j3', 'key-j4'],
      async (key) => (await store.submitted([key])).get(key) ?? null,
    ),
    byName: [...(await store.findJobs(['nightly', 'wide', 'large']))],
    tasks: await ofEach(JOBS, (id) => store.tasks(id)),
    attempts: await ofEach(JOBS, (id) => store.attempts(id)),
    explanations: await ofEach(JOBS, (id) => store.explanation(id)),
    attemptsOn: await ofEach(INSTANCES, (id) => store.attemptsOn(id)),
    ledgers: await ofEach(INSTANCES, (id) => store.ledger({ instance: id })),
    odd: await store.attempt(attemptId('of another form')),
    instances: await store.instances(null, 100, null),
    plans: await store.plans(100, null),
    costs: await ofEach(
      COST_KEYS.filter((by) => by !== 'caller'),
      (by) => store.costs(by),
    ),
    costsByCaller: await store.costs('caller'),
    events: await store.events(0, 1000),
    memory: [...(await store.memory(''))],
    record: await inbox.record(instanceId('i-2')),
    orders: [...(await inbox.orders([attemptId('j2.main.1.1')]))],
    prices: [...prices].map(([pool, { atMs, usdPerHour }]) => [pool, [...atMs], [...usdPerHour]]),
    listed: await book.list(),
    schedules: await schedulesMade(watched),
  };
  return JSON.parse(JSON.stringify(answers, shortened)) as unknown;
}

const shortened = (_: string, value: unknown): unknown =>
  typeof value === 'string' && value.length >= LARGE ? createHash('sha256').update(value).digest('hex') : value;
