import { describe, expect, it } from '@jest/globals';
import { MAX_BATCH_JOBS } from '../../../lib/api/requests.ts';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import type { Submission } from '../../../lib/ports/store.ts';
import { job } from '../../contract/store-samples.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';

/** As many jobs as a batch of the API has, under a key each. */
const batch = (prefix: string): Submission[] =>
  Array.from({ length: MAX_BATCH_JOBS }, (_, i) => ({
    job: job(`${prefix}${i}`),
    idempotency: { key: `key/${i}`, digest: 'd' },
  }));

function world() {
  const [tables, objects] = [new DynamoDouble(), new ObjectsDouble()];
  const calls = new Map<string, number>();
  const open = (): DynamoStore =>
    new DynamoStore({
      dynamodb: tables.client(),
      s3: objects.client(),
      table: 'table',
      bucket: 'bucket',
      meter: ({ operation }) => void calls.set(operation, (calls.get(operation) ?? 0) + 1),
    });
  return { open, calls };
}

describe('DynamoDB store, a batch of submissions', () => {
  it('takes few requests, and few to be asked about its keys', async () => {
    const { open, calls } = world();
    const outcomes = await open().submit(batch('a'));
    expect(outcomes.filter((o) => o.status === 'created')).toHaveLength(MAX_BATCH_JOBS);
    // Keys a hundred at a time, the jobs themselves, and the commit that takes them in.
    expect([calls.get('TransactWriteItems'), calls.get('UpdateItem'), calls.get('PutObject')]).toEqual([
      MAX_BATCH_JOBS / 100,
      2,
      undefined,
    ]);
    calls.clear();
    const known = await open().submitted(batch('b').map((s) => s.idempotency?.key ?? ''));
    expect(known.size).toBe(MAX_BATCH_JOBS);
    expect([...calls.values()].reduce((sum, n) => sum + n, 0)).toBeLessThan(MAX_BATCH_JOBS / 10);
  });

  it('makes each job once when two processes submit the same batch at once', async () => {
    const { open } = world();
    const both = await Promise.all([open().submit(batch('a')), open().submit(batch('b'))]);
    const ids = both.map((outcomes) => outcomes.map((o) => (o.status === 'conflict' ? null : o.job.id)));
    expect(ids[0]).toEqual(ids[1]);
    expect(new Set(ids[0]).size).toBe(MAX_BATCH_JOBS);
    expect(new Set((await open().loadActive()).jobs.map((j) => j.id))).toEqual(new Set(ids[0]));
  });

  it('completes a batch of which some keys were used before', async () => {
    const { open } = world();
    const first = batch('a');
    await open().submit(first.filter((_, i) => i % 3 === 0));
    const outcomes = await open().submit(batch('b'));
    expect(outcomes.map((o) => o.status)).toEqual(first.map((_, i) => (i % 3 === 0 ? 'repeated' : 'created')));
    expect((await open().loadActive()).jobs).toHaveLength(MAX_BATCH_JOBS);
  });
});
