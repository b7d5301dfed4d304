import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Spent, startOfDay } from '../../../../lib/drivers/aws/metrics/spent.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const DAY_MS = 86_400_000;

it('sums what ended on a day, by the day (UTC) of the end, whoever adds it', async () => {
  const ends = fc.array(
    fc.record({
      ms: fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2026, 0, 4) - 1 }),
      cents: fc.nat(1000),
    }),
    { maxLength: 20 },
  );
  await fc.assert(
    fc.asyncProperty(ends, async (all) => {
      const client = new DynamoDouble().client();
      const another = (): Spent => new Spent(new Table({ client, name: 'table' }));
      await Promise.all(all.map(({ ms, cents }) => another().add(ms, cents / 100)));
      for (const day of ['2026-01-01', '2026-01-02', '2026-01-03']) {
        const of = all.filter(({ ms }) => new Date(ms).toISOString().startsWith(day));
        const cents = of.reduce((sum, each) => sum + each.cents, 0);
        const noon = Date.parse(`${day}T12:00Z`);
        expect(await another().on(noon)).toBeCloseTo(cents / 100, 9);
        expect(new Date(startOfDay(noon)).toISOString()).toBe(`${day}T00:00:00.000Z`);
      }
    }),
    { seed: 11, numRuns: 50 },
  );
});

it('writes nothing for what cost nothing, and is forgotten after a month', async () => {
  const double = new DynamoDouble();
  const spent = new Spent(new Table({ client: double.client(), name: 'table' }));
  const noon = Date.UTC(2026, 0, 5, 12);
  await spent.add(noon, 0);
  expect(double.items).toEqual([]);
  await spent.add(noon, 0.25);
  const [item] = double.items;
  const ttl = Number(item?.['ttl']?.N) * 1000;
  expect(ttl - noon).toBeGreaterThan(30 * DAY_MS);
  expect(ttl - noon).toBeLessThan(32 * DAY_MS);
});
