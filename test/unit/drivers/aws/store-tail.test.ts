import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { body, number, text, textAt, type Item } from '../../../../lib/drivers/aws/store/codec.ts';
import { effectsKey, jobKey, planKey, textOf } from '../../../../lib/drivers/aws/store/keys.ts';
import { Table, type Write } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { compactionWrite, folded, isPassing, laidOver, type Tail } from '../../../../lib/drivers/aws/store/tail.ts';
import { View } from '../../../../lib/drivers/aws/store/view.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const KEYS = [jobKey('a'), jobKey('b'), { pk: 'EFFECTS', sk: '1' }, { pk: 'ACTIVE', sk: '0' }] as const;
const NAMES = ['b', 'j', 'y'] as const;

const aWrite: fc.Arbitrary<Write> = fc
  .record({ key: fc.constantFrom(...KEYS), value: fc.nat(9), name: fc.nat(2) })
  .chain(({ key, value, name }): fc.Arbitrary<Write> => {
    const [set, other] = [NAMES[name] ?? 'b', NAMES[(name + 1) % 3] ?? 'b'];
    return fc.constantFrom<Write>(
      { key, set: { [set]: number(value) } },
      { key, set: { [set]: number(value) }, remove: [other] },
      { key, set: {}, once: { l: text('jobs'), a: number(value) } },
      { key, isDeleted: true },
    );
  });
const commits = fc.array(fc.array(aWrite, { maxLength: 4 }), { minLength: 1, maxLength: 8 });

const table = (): Table => new Table({ client: new DynamoDouble().client(), name: 'table' });
/** What a reader makes of it, without what says who wrote it. */
const seen = (item: Item | undefined): unknown => {
  if (item === undefined) return null;
  const { w: _, v: __, ...rest } = item;
  return rest;
};
const foldedAll = (from: number, some: readonly (readonly Write[])[]): Tail =>
  some.reduce<Tail>((tail, writes, n) => folded(tail, from + n, writes), new Map());

describe('what is in the log', () => {
  it('shows each item as if every commit had written it, however much of the log is compacted, by whom and how late', async () => {
    await fc.assert(
      fc.asyncProperty(commits, fc.array(fc.nat(7), { maxLength: 4 }), async (all, cuts) => {
        const [one, other] = [table(), table()];
        for (const write of all.flat()) await one.write(write);
        const compact = async (to: number): Promise<void> => {
          for (const fold of foldedAll(1, all.slice(0, to)).values()) await other.write(compactionWrite(fold, 0));
        };
        // In any order, the later ones first as well; the view then has everything above.
        for (const cut of cuts) await compact(Math.min(cut + 1, all.length));
        const view = new View(other, foldedAll(1, all));
        const [expected, found] = await Promise.all([one.getMany(KEYS), view.getMany(KEYS)]);
        for (const key of KEYS) {
          expect([key, seen(found.get(textOf(key)))]).toEqual([key, seen(expected.get(textOf(key)))]);
          const ranged = (await view.range({ pk: key.pk })).find((i) => textAt(i, 'sk') === key.sk);
          expect(seen(ranged)).toEqual(seen(expected.get(textOf(key))));
        }
        // And compacted whole, nothing of the log is needed.
        await compact(all.length);
        const after = await new View(other, new Map()).getMany(KEYS);
        for (const key of KEYS) expect(seen(after.get(textOf(key)))).toEqual(seen(expected.get(textOf(key))));
      }),
      { seed: 20261121, numRuns: 300 },
    );
  });

  it('leaves an item alone that a later commit has written', () => {
    const [early] = foldedAll(3, [[{ key: jobKey('a'), set: { b: body('old') } }]]).values();
    const item = { pk: text('J#a'), sk: text('JOB'), w: number(5), b: body('new') };
    expect(laidOver(item, early)).toEqual(item);
    expect(laidOver({ ...item, w: number(2) }, early)).toMatchObject({ b: body('old') });
  });

  it('finds in lists what is not in the index yet, and not what was deleted', async () => {
    const stored = table();
    for (const n of [1, 2, 3]) await stored.write({ key: planKey(`p${n}`), set: { l: text('plans'), a: number(n) } });
    const view = new View(
      stored,
      foldedAll(1, [
        [
          { key: planKey('p4'), set: {}, once: { l: text('plans'), a: number(4) } },
          { key: planKey('p2'), isDeleted: true },
          { key: jobKey('a'), set: { l: text('jobs'), a: number(9) } },
        ],
      ]),
    );
    const newest = async (before: number, limit: number): Promise<number[]> =>
      (await view.newest('plans', before, limit)).map((p) => p.arrival);
    expect(await newest(100, 10)).toEqual([4, 3, 1]);
    expect(await newest(100, 2)).toEqual([4, 3]);
    expect(await newest(4, 2)).toEqual([3, 1]);
  });

  it('cuts a range where a limit says so, from either end', async () => {
    const stored = table();
    const key = (n: number) => ({ pk: 'EVENTS', sk: String(n) });
    for (const n of [1, 2, 4, 6, 8]) await stored.write({ key: key(n), set: {} });
    const view = new View(
      stored,
      foldedAll(1, [
        [
          { key: key(3), set: {} },
          { key: key(9), set: {} },
          { key: key(2), isDeleted: true },
        ],
      ]),
    );
    const read = async (limit: number, descending: boolean): Promise<string[]> =>
      (await view.range({ pk: 'EVENTS', limit, descending })).map((i) => textAt(i, 'sk'));
    expect(await read(3, false)).toEqual(['1', '3', '4']);
    expect(await read(3, true)).toEqual(['9', '8', '6']);
    expect(await read(99, true)).toEqual(['9', '8', '6', '4', '3', '1']);
  });

  it('needs no item for effects that were recorded and closed within it', () => {
    const key = effectsKey(6, 0);
    const both = foldedAll(7, [[{ key, set: { b: body([]) } }], [{ key, isDeleted: true }]]);
    const later = foldedAll(8, [[{ key, isDeleted: true }]]);
    expect([...both.values(), ...later.values()].map(isPassing)).toEqual([true, false]);
  });
});
