import { setTimeout as sleep } from 'node:timers/promises';
import { EC2Client } from '@aws-sdk/client-ec2';
import { describe, expect, it } from '@jest/globals';
import { AwsMarket } from '../../../../lib/drivers/aws/market/aws-market.ts';
import { PriceBook, typesOf } from '../../../../lib/drivers/aws/market/price-book.ts';
import { fetchPrices } from '../../../../lib/drivers/aws/market/prices.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';
import { priceAt } from '../../../../lib/market/price-steps.ts';
import { CALM, SPIKE_S, SPIKY, START_MS, trace } from '../../../contract/fleet.ts';
import { startAwsDouble } from '../../../../scripts/aws-double/double.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { publishedPrices } from '../../../support/published-prices.ts';
import { tinyTrace } from '../../market/traces.ts';

const at = (s: number): number => raw(START_MS) + s * 1000;

it('types of families are bought, bare metal is not', () => {
  const types = typesOf(['c6i']);
  expect(types).toContain('c6i.large');
  expect(types.every((t) => t.startsWith('c6i.'))).toBe(true);
  expect(types.some((t) => t.includes('metal'))).toBe(false);
});

const MINUTE_MS = 60_000;
const MIDNIGHT = Date.UTC(2026, 0, 6);
const minutes = (n: number): number => MIDNIGHT + n * MINUTE_MS;

describe('prices', () => {
  /** A market that changes around midnight; a change is published so much later. */
  function published(lagMs: number) {
    const prices = [-600, -25, -12, -3, 4, 9, 40].map((m, i) => [minutes(m), 0.01 * (i + 1)] as const);
    const told = tinyTrace({ prices, startMs: minutes(-600), endMs: minutes(600) });
    let nowMs = 0;
    const client = publishedPrices(told, (changedMs) => changedMs + lagMs <= nowMs);
    const table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    const feed = { client, table, types: ['m5.large'], zones: ['us-east-1a'], historyS: 40_000 };
    /** EC2 is asked at `atMs` by a process whose clock is ahead. */
    const fetch = (atMs: number, aheadMs = 0): Promise<number> => {
      nowMs = atMs;
      return fetchPrices(feed, epochMs(atMs + aheadMs));
    };
    /** Who reads has a clock, too. */
    const reader = (now: () => number): AwsMarket =>
      new AwsMarket({
        book: new PriceBook(table),
        historyS: 40_000,
        zones: feed.zones,
        types: feed.types,
        now: () => epochMs(now()),
      });
    const differing = async (untilMs: number, of = reader(() => untilMs)): Promise<number[]> => {
      const { market: known } = await of.prices();
      const pool = told.pools.find((p) => p.option === 'spot')!;
      const found: number[] = [];
      for (let t = minutes(-500); t <= untilMs; t += MINUTE_MS) {
        const quote = known.quote(pool.id, epochMs(t));
        if ((quote === null ? null : raw(quote)) !== priceAt(told.prices(pool.id), epochMs(t))) {
          found.push((t - MIDNIGHT) / MINUTE_MS);
        }
      }
      return found;
    };
    return { fetch, reader, differing };
  }

  it('that are published late are in force from when they were, also over the beginning of a day', async () => {
    const { fetch, differing } = published(7 * MINUTE_MS);
    for (const m of [-20, -10, 0, 10, 20, 30, 40, 50, 60]) await fetch(minutes(m));
    expect(await differing(minutes(60))).toEqual([]);
  });

  it('change for nobody who looks again, whatever clocks of those who ask and who read say', async () => {
    for (const [first = 0, second = 0] of [
      [10, -10],
      [-10, 10],
      [0, 10],
      [10, 0],
    ]) {
      const { fetch, differing, reader } = published(7 * MINUTE_MS);
      let readMs = 0;
      const slow = reader(() => readMs - 10 * MINUTE_MS);
      for (const m of [-20, -10, 0, 10, 20, 30, 40, 50, 60]) {
        await fetch(minutes(m), (Math.abs(m) % 20 === 0 ? first : second) * MINUTE_MS);
        readMs = minutes(m);
        await slow.prices();
      }
      await fetch(minutes(70));
      expect([first, second, await differing(minutes(60))]).toEqual([first, second, []]);
      // One whose clock was behind has lost nothing when it is put right, though nobody has asked EC2 since.
      readMs = minutes(45);
      await slow.prices();
      readMs = minutes(70);
      expect(await differing(minutes(60), slow)).toEqual([]);
    }
  });

  it('are asked for again as soon as clocks are right, however far ahead one was', async () => {
    const { fetch, differing } = published(0);
    await fetch(minutes(-20), 300 * MINUTE_MS);
    for (const m of [-10, 0, 10, 30, 60]) await fetch(minutes(m));
    expect(await differing(minutes(60))).toEqual([]);
  });

  it('are those of EC2 at every instant, however often and wherever between changes they are fetched', async () => {
    // The spike lasts ten minutes of the market: five seconds here, for a machine that does other things beside.
    const double = await startAwsDouble({ trace, from: START_MS, speed: 120, region: 'us-east-1' });
    const client = new EC2Client({
      endpoint: double.url,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    const table = new Table({ client: new DynamoDouble().client(), name: 'table' });
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
          const truth = priceAt(trace.prices(pool), epochMs(at(s)));
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
