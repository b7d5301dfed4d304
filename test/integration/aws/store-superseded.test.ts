import { describe, expect, it } from '@jest/globals';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import { SUPERSEDED_TAG } from '../../../lib/drivers/aws/store/keys.ts';
import { instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { usd } from '../../../lib/kernel/units.ts';
import type { JobSpec } from '../../../lib/domain/job.ts';
import type { Change, Submission } from '../../../lib/ports/store.ts';
import { explanation, instance, job, ledgerRow, plan, spec } from '../../contract/store-samples.ts';
import { Faults } from '../../support/aws-faults.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';

const TAG = `${SUPERSEDED_TAG.Key}=${SUPERSEDED_TAG.Value}`;
const RETENTION = { plans: 2, events: 1000, historyDays: null };

/** Text that does not compress below the size of an item. */
const noise = (length: number, seed: number): string => {
  let state = seed;
  const next = (): number => (state = (state * 48_271) % 2_147_483_647);
  return Array.from({ length }, () => String.fromCodePoint(97 + (next() % 26))).join('');
};
const LARGE = 40_000;
const large = (seed = 1): Partial<JobSpec> => ({
  stages: spec().stages.map((stage) => ({ ...stage, env: { DATA: noise(LARGE, seed) } })),
});
const submissionOf = (id: string, key: string | null = null): Submission => ({
  job: job(id, { spec: spec(large()) }),
  idempotency: key === null ? null : { key, digest: 'd1' },
});

/** One table and bucket; the bucket loses superseded objects at once, sooner than S3 would. */
class Place {
  readonly table = new DynamoDouble();
  readonly objects = new ObjectsDouble();

  store(atGet: () => Promise<unknown> = async () => undefined): DynamoStore {
    const faults = new Faults(async ({ name, perform }) => {
      if (name === 'GetObjectCommand') await atGet();
      return perform();
    }, 'all');
    const [dynamodb, s3] = [faults.around(this.table.client()), faults.around(this.objects.client())];
    return new DynamoStore({ dynamodb, s3, table: 'table', bucket: 'bucket', retention: RETENTION });
  }

  /** A store before whose first reading of an object this happens. */
  racing(deed: () => Promise<unknown>): DynamoStore {
    let isDone = false;
    return this.store(async () => {
      if (isDone) return;
      isDone = true;
      await deed();
      this.objects.expire(TAG);
    });
  }
}

const values = (seed: number): Change[] => [
  { put: 'memory', key: 'learned', value: noise(LARGE, seed) },
  { put: 'plan', value: plan(`p-${seed}`, [explanation('j1', noise(LARGE, seed))]) },
  { put: 'instance', value: instance(`i-${seed}`, { state: 'ended', costUsd: usd(1) }) },
  {
    put: 'ledger',
    instance: instanceId(`i-${seed}`),
    value: Array.from({ length: 3000 }, (_, n) =>
      ledgerRow({ instance: instanceId(`i-${seed}`), owner: noise(12, seed * 10_000 + n), job: jobId('j1') }),
    ),
  },
];

describe('DynamoDB store, objects that are superseded while others read', () => {
  it.each([
    ['the cycle', (store: DynamoStore) => store.loadActive()],
    ['a list of jobs', (store: DynamoStore) => store.jobs({}, 10, null)],
    ['a job by its id', (store: DynamoStore) => store.job(jobId('j1'))],
    ['events', (store: DynamoStore) => store.events(0, 10)],
    ['a cancel request', (store: DynamoStore) => store.requestCancel(jobId('j1'))],
    ['a repeated submission', (store: DynamoStore) => store.submit([submissionOf('j-again', 'key')])],
  ])('%s finds a large submission that another process takes in meanwhile', async (_, read) => {
    const place = new Place();
    const other = place.store();
    await other.submit([submissionOf('j1', 'key')]);
    const store = place.racing(() => other.loadActive());
    await read(store);
    expect((await store.jobs({}, 10, null)).items.map((j) => j.id)).toEqual(['j1']);
    expect((await store.loadActive()).jobs.map((j) => j.id)).toEqual(['j1']);
  });

  it.each([
    ['explanation', (store: DynamoStore) => store.explanation(jobId('j1'))],
    ['plans', (store: DynamoStore) => store.plans(10, null)],
    ['costs by owner', (store: DynamoStore) => store.costs('owner')],
    ['costs by job', (store: DynamoStore) => store.costs('job')],
    ['memory', (store: DynamoStore) => store.memory('learned')],
  ])('%s is that of the newest commit when its object is superseded meanwhile', async (_, read) => {
    const place = new Place();
    const other = place.store();
    await other.submit([submissionOf('j1')]);
    const token = await other.takeLease('engine');
    await other.commit(token, values(1));
    let next = 2;
    // Each plan that is forgotten, too, takes its object along.
    const store = place.racing(async () => {
      for (let i = 0; i < 3; i++) await other.commit(token, values(next++));
    });
    expect(await read(store)).toEqual(await read(place.store()));
    expect(next).toBe(5);
  });

  it('a commit is computed anew when what it is computed from is superseded meanwhile', async () => {
    const place = new Place();
    const other = place.store();
    await other.submit([submissionOf('j1')]);
    const token = await other.takeLease('engine');
    await other.commit(token, values(1));
    const store = place.racing(() => other.commit(token, values(2)));
    await store.commit(token, values(3));
    expect((await store.explanation(jobId('j1')))?.headline).toBe(noise(LARGE, 3));
    expect((await place.store().plans(10, null)).items.map((p) => p.id)).toEqual(['p-3', 'p-2']);
  });

  it('deletes nothing itself: superseded objects bear the tag of the lifecycle rule, all others none', async () => {
    const place = new Place();
    const store = place.store();
    await store.submit([submissionOf('j1', 'key')]);
    const token = await store.takeLease('engine');
    await store.loadActive();
    await store.commit(token, values(1));
    await store.commit(token, values(2));
    const tagged = place.objects.tagged(TAG);
    expect(tagged.map((name) => name.split('/')[0] ?? '').sort()).toEqual(['commits', 'memory', 'memory', 'plans']);
    place.objects.expire(TAG);
    expect((await place.store().loadActive()).jobs.map((j) => j.id)).toEqual(['j1']);
  });

  it('says which object is lost, not that the job is not found', async () => {
    const place = new Place();
    await place.store().submit([submissionOf('j1')]);
    const missing = new ObjectsDouble();
    const store = new DynamoStore({
      dynamodb: place.table.client(),
      s3: missing.client(),
      table: 'table',
      bucket: 'bucket',
    });
    await expect(store.job(jobId('j1'))).rejects.toMatchObject({
      code: 'store.corrupt',
      facts: { got: 'commits/arrivals/j1' },
    });
  });

  it('completes a call whose writer died after its key, when the object of the key has expired', async () => {
    const place = new Place();
    const faults = new Faults(async ({ ordinal, perform, die }) => (ordinal === 3 ? die() : perform()));
    const dying = new DynamoStore({
      dynamodb: faults.around(place.table.client()),
      s3: faults.around(place.objects.client()),
      table: 'table',
      bucket: 'bucket',
    });
    await expect(dying.submit([submissionOf('j1', 'key')])).rejects.toThrow('died');
    expect(place.objects.names).toEqual(['commits/arrivals/j1']);
    place.objects.lose('commits/arrivals/j1');
    const [outcome] = await place.store().submit([submissionOf('j2', 'key')]);
    expect(outcome).toMatchObject({ status: 'repeated', job: { id: 'j1' } });
    expect((await place.store().jobs({}, 10, null)).items.map((j) => j.id)).toEqual(['j1']);
  });
});
