import { describe, expect, it } from '@jest/globals';
import { TransactionConflictException, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const KEY = { pk: 'P', sk: 'S' };
const throttled = (): Error => Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
const conflicting = (): Error => new TransactionConflictException({ message: 'held', $metadata: {} });

/** A table of which the first calls fail. */
function failing(times: number, error: () => Error): { readonly client: DynamoDBClient; readonly tried: () => number } {
  const behind = new DynamoDouble().client() as unknown as { send(command: unknown): Promise<unknown> };
  let tried = 0;
  const send = async (command: unknown): Promise<unknown> => {
    tried += 1;
    if (tried <= times) throw error();
    return behind.send(command);
  };
  return { client: { send, destroy: () => undefined } as unknown as DynamoDBClient, tried: () => tried };
}

const calls: Readonly<Record<string, (table: Table) => Promise<unknown>>> = {
  get: (table) => table.get(KEY),
  range: (table) => table.range({ pk: KEY.pk }),
  add: (table) => table.add(KEY, 'n', 1),
  write: (table) => table.write({ key: KEY, set: { n: { N: '1' } } }),
  delete: (table) => table.write({ key: KEY, isDeleted: true }),
  transact: (table) => table.transact([{ key: KEY, set: { n: { N: '1' } } }]),
};

describe.each(Object.entries(calls))('%s', (name, call) => {
  it.each([
    ['too much at once', throttled],
    ['an item that a transaction holds', conflicting],
  ])('is repeated after %s until it is done', async (_, error) => {
    if (name === 'transact' && error === conflicting) return;
    const { client, tried } = failing(3, error);
    await call(new Table({ client, name: 'table' }));
    expect(tried()).toBe(4);
  });

  it('is not repeated beyond the time that the process has, and says that it may be later', async () => {
    const { client, tried } = failing(Infinity, throttled);
    let leftMs = 1_200;
    const table = new Table({ client, name: 'table', remainingMs: () => (leftMs -= 40) });
    const error = await call(table).then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(EbbError);
    expect(error).toMatchObject({ code: 'too-many-requests', retryable: true });
    // Some times, and none any more when no second is left to answer in.
    expect(tried()).toBeGreaterThan(1);
    expect(tried()).toBeLessThan(7);
    expect(leftMs).toBeGreaterThan(900);
  });
});
