import { beforeEach, describe, expect, it } from '@jest/globals';
import { Inbox } from '../../../../lib/drivers/aws/fleet/inbox.ts';
import { fold, launchedRecord } from '../../../../lib/drivers/aws/fleet/instance-record.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { attemptId, instanceId } from '../../../../lib/kernel/ids.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const HOST = instanceId('i-1');
const FIRST = attemptId('j1.main.0.1');
const made = launchedRecord({ instance: HOST, key: 'k', pool: 'c5.large/a/spot', bid: 1, ec2: 'i-ec2' });

describe('the inbox', () => {
  let table: Table;
  let inbox: Inbox;
  beforeEach(() => {
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    inbox = new Inbox(table, () => 0);
  });

  it('folds into the newer record what was folded into an older one, and drops nothing of either', async () => {
    await inbox.create(made, (r) => r);
    const known = await inbox.record(HOST);
    await inbox.update(HOST, (r) => fold(r, { is: 'rebalance', atMs: 1 }));
    const after = await inbox.update(HOST, (r) => fold(r, { is: 'warned', atMs: 2, goneMs: 3 }), known);
    expect(after).toMatchObject({ rebalanceMs: 1, warnedMs: 2, sequence: 2 });
    expect(await inbox.record(HOST)).toEqual(after);
    expect(after?.observations.map((o) => [o.sequence, o.kind])).toEqual([
      [1, 'instance-rebalance'],
      [2, 'instance-warned'],
    ]);
    expect(await inbox.news()).toMatchObject([{ instance: HOST, upTo: 2 }]);
  });

  it('an attempt that was forbidden is ordered, and never to run', async () => {
    await inbox.forbid(HOST, FIRST);
    expect(await inbox.ordered(HOST, [FIRST])).toEqual(new Set([FIRST]));
    expect((await inbox.orders([FIRST])).size).toBe(0);
  });
});
