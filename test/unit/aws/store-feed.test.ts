import { describe, expect, it } from '@jest/globals';
import { encode } from '../../../lib/aws/store/codec.ts';
import { fed, touchedSince, type Feed } from '../../../lib/aws/store/feed.ts';
import type { Key } from '../../../lib/aws/store/keys.ts';
import { Table } from '../../../lib/aws/store/table.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';

/** Names that no compression makes short. */
const keysOf = (commit: number, count: number): Key[] =>
  Array.from({ length: count }, (_, i) => ({ pk: `J#${String(Math.sin(commit * 1000 + i + 1)).slice(2)}`, sk: 'JOB' }));

/** Commits of so many names each, the first of number 1, and the table behind them. */
async function after(counts: readonly number[]): Promise<{ readonly feed: Feed; readonly table: Table }> {
  const table = new Table({ client: new DynamoDouble().client(), name: 'table' });
  let feed: Feed = [];
  for (const [n, count] of counts.entries()) {
    const next = fed(feed, n + 1, keysOf(n + 1, count));
    for (const write of next.beside) await table.write(write);
    feed = next.feed;
  }
  return { feed, table };
}

describe('what commits wrote', () => {
  it('is known to who was away for some, whether they wrote little or much', async () => {
    const { feed, table } = await after([2, 90, 1, 3]);
    expect(await touchedSince(table, feed, { since: 4, until: 4 })).toEqual([]);
    expect(await touchedSince(table, feed, { since: 1, until: 4 })).toEqual([
      ...keysOf(3, 1),
      ...keysOf(4, 3),
      ...keysOf(2, 90),
    ]);
  });

  it('stays below what HEAD has room for, and what is not in it any more is not guessed', async () => {
    const { feed, table } = await after(Array.from({ length: 60 }, () => 3));
    expect(encode(feed).length).toBeLessThanOrEqual(640);
    expect(feed.length).toBeGreaterThan(4);
    expect(await touchedSince(table, feed, { since: 0, until: 60 })).toBeNull();
    expect(await touchedSince(table, feed, { since: 58, until: 60 })).toHaveLength(6);
  });

  it('is not known behind a commit that left nothing in it', async () => {
    const { feed, table } = await after([2, 2]);
    // Commit 3 was of a version that writes no feed.
    expect(await touchedSince(table, feed, { since: 2, until: 3 })).toBeNull();
    expect(await touchedSince(table, fed(feed, 4, []).feed, { since: 2, until: 4 })).toBeNull();
  });

  it('is not known when a later commit took the place of a long one', async () => {
    const { feed, table } = await after([90]);
    for (const write of fed(feed, 65, keysOf(65, 90)).beside) await table.write(write);
    expect(await touchedSince(table, feed, { since: 0, until: 1 })).toBeNull();
  });
});
