/**
 * A table that version 1 of the store wrote: read as it is, and rewritten item by item as the engine goes on. The items are
 * spelled out here, as that version laid them down. On the double of DynamoDB.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { UpdateItemCommand, type AttributeValue } from '@aws-sdk/client-dynamodb';
import { DynamoStore } from '../../../lib/aws/store/dynamo-store.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { attemptId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { attempt, instance, job, ledgerRow, spec, submission, task } from '../../contract/store-samples.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';

type Attributes = Record<string, AttributeValue>;

const padded = (n: number): string => String(n).padStart(15, '0');
/** Form 0: JSON as it is. */
const plain = (value: unknown): AttributeValue => ({
  B: Buffer.concat([Buffer.of(0), Buffer.from(JSON.stringify(value))]),
});
const N = (n: number): AttributeValue => ({ N: String(n) });
const S = (text: string): AttributeValue => ({ S: text });
const live = (partition: string): string => `LIVE#${(createHash('md5').update(partition).digest()[0] ?? 0) % 4}`;

const running = job('j1', { state: 'running' });
const itsTask = task('j1', 0);
const itsAttempt = attempt('j1.main.0.1');
const itsInstance = instance('i-1');

function itemsOfVersion1(): (readonly [pk: string, sk: string, Attributes])[] {
  const { spec: submitted, cancelRequested: _, ...body } = running;
  const runs = `RUN#main#${padded(0)}`;
  return [
    ['HEAD', 'HEAD', { fence: N(3), commits: N(7), arrivals: N(2), plans: N(0), last: S('commits/x') }],
    ['COUNTER', 'ARRIVALS', { n: N(1) }],
    [
      'J#j1',
      'JOB',
      {
        l: S('jobs'),
        a: N(1),
        ow: S('ana'),
        st: S('running'),
        c: { BOOL: false },
        b: plain(body),
        o: plain({ [runs]: true }),
      },
    ],
    ['J#j1', 'SPEC', { b: plain(submitted) }],
    ['J#j1', runs, { b: plain({ tasks: { 0: itsTask }, attempts: [[2, itsAttempt]], spills: 0 }) }],
    ['J#j1', 'LEDGER#i-0', {}],
    [
      'I#i-0',
      `LEDGER#${padded(0)}`,
      { b: plain([ledgerRow({ instance: instanceId('i-0') })]), l: S('ledger'), a: N(1) },
    ],
    ['I#i-1', 'INSTANCE', { l: S('instances'), a: N(1), b: plain({ arrival: 1, instance: itsInstance, cursor: 5 }) }],
    ['I#i-1', `RUN#${padded(6)}`, { b: plain([{ attempt: itsAttempt.id, runs: { pk: 'J#j1', sk: runs } }]) }],
    [live('J#j1'), 'J#j1', {}],
    [live('I#i-1'), 'I#i-1', {}],
    ['N#nightly', padded(1), { job: S('j1') }],
    [
      'EVENTS',
      padded(1),
      { n: N(1), b: plain([{ atMs: 1, type: 'job-submitted', job: 'j1', text: 'submitted', data: {} }]) },
    ],
    ['MEMORY', 'learned|', { b: plain({ key: 'learned', value: 'much' }) }],
  ];
}

/** More commits than are left in the log. */
const CARRIED_AFTER = 110;

class Place {
  readonly table = new DynamoDouble();
  readonly s3 = new ObjectsDouble().client();

  store(): DynamoStore {
    return new DynamoStore({ dynamodb: this.table.client(), s3: this.s3, table: 'table', bucket: 'bucket' });
  }

  async put(pk: string, sk: string, attributes: Attributes): Promise<void> {
    const names = Object.keys(attributes);
    await this.table.client().send(
      new UpdateItemCommand({
        TableName: 'table',
        Key: { pk: S(pk), sk: S(sk) },
        UpdateExpression: `SET ${names.map((_, i) => `#n${i} = :v${i}`).join(', ')}`,
        ExpressionAttributeNames: Object.fromEntries(names.map((name, i) => [`#n${i}`, name])),
        ExpressionAttributeValues: Object.fromEntries(
          names.map((name, i) => [`:v${i}`, attributes[name] as AttributeValue]),
        ),
      }),
    );
  }

  item(pk: string, sk: string): Readonly<Attributes> | undefined {
    return this.table.items.find((i) => i['pk']?.S === pk && i['sk']?.S === sk);
  }
}

async function ofVersion1(): Promise<Place> {
  const place = new Place();
  for (const [pk, sk, attributes] of itemsOfVersion1()) await place.put(pk, sk, { v: N(1), ...attributes });
  return place;
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof EbbError ? error.code : String(error)),
  );

describe('a table of version 1', () => {
  it('is read as it is', async () => {
    const store = (await ofVersion1()).store();
    expect(await store.loadActive()).toEqual({
      jobs: [running],
      tasks: [itsTask],
      attempts: [itsAttempt],
      instances: [itsInstance],
      openEffects: [],
      cursors: new Map([['i-1', 5]]),
    });
    expect(await store.job(jobId('j1'))).toEqual(running);
    expect((await store.jobs({ states: ['running'] }, 10, null)).items).toEqual([running]);
    expect((await store.instances(true, 10, null)).items).toEqual([itsInstance]);
    expect([...(await store.findJobs(['nightly'])).keys()]).toEqual(['nightly']);
    expect(await store.attempt(attemptId('j1.main.0.1'))).toEqual(itsAttempt);
    expect(await store.attemptsOn(instanceId('i-1'))).toEqual([itsAttempt]);
    expect(await store.ledger({ job: jobId('j1') })).toHaveLength(1);
    expect((await store.events(0, 10)).map((e) => e.job)).toEqual(['j1']);
    expect(await store.memory('')).toEqual(new Map([['learned', 'much']]));
  });

  it('takes the new form where it is written, and is the same to every reader', async () => {
    const place = await ofVersion1();
    const store = place.store();
    const token = await store.takeLease('engine');
    await store.submit([submission('j2')]);
    await store.loadActive();
    const ended = attempt('j1.main.0.1', { state: 'ended', outcome: 'succeeded' });
    await store.commit(token, [
      { put: 'job', value: job('j1', { state: 'running', stateReason: 'one is done' }) },
      { put: 'task', value: task('j1', 0, { state: 'succeeded' }) },
      { put: 'attempt', value: ended },
      { put: 'instance', value: instance('i-1', { state: 'releasing' }) },
    ]);
    const expected = {
      jobs: [job('j1', { state: 'running', stateReason: 'one is done' }), job('j2')],
      tasks: [],
      attempts: [],
      instances: [instance('i-1', { state: 'releasing' })],
      openEffects: [],
      cursors: new Map([['i-1', 5]]),
    };
    for (const reader of [store, place.store()]) {
      expect(await reader.loadActive()).toEqual(expected);
      expect(await reader.attempts(jobId('j1'))).toEqual([ended]);
      expect((await reader.job(jobId('j1')))?.spec).toEqual(spec());
    }
    // What was rewritten has nothing of the old form left, once commits are carried over to the items.
    for (let n = 0; n < CARRIED_AFTER; n++) await store.commit(token, [{ put: 'memory', key: 'n', value: String(n) }]);
    const written = place.item('J#j1', 'JOB');
    expect([written?.['v'], written?.['b'], written?.['o']]).toEqual([N(3), undefined, undefined]);
    expect(place.table.items.filter((i) => i['pk']?.S?.startsWith('LIVE#') === true)).toEqual([]);
    // And what ends is over for all.
    await store.commit(token, [
      { put: 'job', value: job('j1', { state: 'succeeded' }) },
      { put: 'instance', value: instance('i-1', { state: 'ended' }) },
    ]);
    const left = await place.store().loadActive();
    expect([left.jobs.map((j) => j.id), left.instances, [...left.cursors]]).toEqual([['j2'], [], []]);
  });

  it('keeps a request to cancel that an item of the old form gets', async () => {
    const place = await ofVersion1();
    expect(await place.store().requestCancel(jobId('j1'))).toBe(true);
    const next = place.store();
    const token = await next.takeLease('engine');
    expect((await next.loadActive()).jobs.map((j) => j.cancelRequested)).toEqual([true]);
    await next.commit(token, [{ put: 'job', value: running }]);
    expect(await next.job(jobId('j1'))).toEqual({ ...running, cancelRequested: true });
  });
});

it.each([
  ['J#j1', 'JOB'],
  ['HEAD', 'HEAD'],
  ['I#i-1', 'INSTANCE'],
])('an item of a later version is refused: %s %s', async (pk, sk) => {
  const place = await ofVersion1();
  await place.put(pk, sk, { v: N(4) });
  expect(await codeOf(place.store().loadActive())).toBe('store.newer');
});
