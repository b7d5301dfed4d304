import { setTimeout as sleep } from 'node:timers/promises';
import { EC2Client } from '@aws-sdk/client-ec2';
import { expect, it } from '@jest/globals';
import { AwsMarket } from '../../../lib/aws/market.ts';
import { PriceBook, typesOf } from '../../../lib/aws/price-book.ts';
import { fetchPrices } from '../../../lib/aws/prices.ts';
import { Table } from '../../../lib/aws/store/table.ts';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { priceAt } from '../../../lib/market/steps.ts';
import { CALM, SPIKE_S, SPIKY, START_MS, trace } from '../../contract/fleet.ts';
import { startAwsDouble } from '../../doubles/aws/double.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';

const at = (s: number): number => raw(START_MS) + s * 1000;

it('types of families are bought, bare metal is not', () => {
  const types = typesOf(['c6i']);
  expect(types).toContain('c6i.large');
  expect(types.every((t) => t.startsWith('c6i.'))).toBe(true);
  expect(types.some((t) => t.includes('metal'))).toBe(false);
});

describeOnLocalStack('prices', (on) => {
  it('are those of EC2 at every instant, however often and wherever between changes they are fetched', async () => {
    const double = await startAwsDouble({ trace, from: START_MS, speed: 600, region: 'us-east-1' });
    const client = new EC2Client({
      endpoint: double.url,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    const table = new Table({ client: on.dynamodb(), name: (await on.place()).table });
    const zones = double.subnets.map((s) => s.zone);
    const feed = { client, table, types: ['c5.large'], zones, historyS: 40_000 };
    const market = () =>
      new AwsMarket({
        book: new PriceBook(table),
        historyS: 40_000,
        zones,
        types: ['c5.large'],
        now: () => double.now(),
      });
    try {
      expect(await market().prices()).toMatchObject({ checkedMs: null });
      expect(await fetchPrices(feed, double.now())).toBeGreaterThan(0);
      while (raw(double.now()) < at(SPIKE_S + 100)) await sleep(50);
      // Instants of the market, not of this machine, which may be slow.
      await fetchPrices(feed, epochMs(at(SPIKE_S + 100)));
      while (raw(double.now()) < at(SPIKE_S + 700)) await sleep(50);
      const now = epochMs(at(SPIKE_S + 700));
      // The second spike's end is new, and nothing is new twice.
      expect(await fetchPrices(feed, now)).toBe(1);
      expect(await fetchPrices(feed, now)).toBe(0);
      const { market: known, checkedMs } = await market().prices();
      expect(checkedMs).toBe(raw(now));
      let differing = 0;
      for (let s = -36_000; s <= SPIKE_S + 700; s += 50) {
        for (const pool of [CALM, SPIKY]) {
          const truth = priceAt(trace.prices(pool), at(s));
          expect([pool, s, raw(known.quote(pool, epochMs(at(s)))!)]).toEqual([pool, s, truth]);
          if (truth !== 0.03) differing++;
        }
      }
      expect(differing).toBeGreaterThan(5);
      // Today begins with the price of yesterday: no change of the history.
      expect([...known.history(CALM, epochMs(at(-36_000)), now).usdPerHour]).toEqual([0.03]);
      expect([...known.history(SPIKY, epochMs(at(-36_000)), now).usdPerHour]).toEqual([0.03, 0.048, 0.2, 0.03]);
    } finally {
      client.destroy();
      await double.close();
    }
  }, 60_000);
});
