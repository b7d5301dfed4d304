import { PricingClient } from '@aws-sdk/client-pricing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readListPrices } from '../../../../lib/drivers/aws/market/on-demand-prices.ts';
import { priceListRegion, refreshListPrices } from '../../../../lib/drivers/aws/market/fetch-on-demand-prices.ts';
import { AwsMarket } from '../../../../lib/drivers/aws/market/aws-market.ts';
import { PriceBook } from '../../../../lib/drivers/aws/market/price-book.ts';
import { body, number } from '../../../../lib/drivers/aws/store/codec.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { epochMs, plus, raw, seconds } from '../../../../lib/kernel/units.ts';
import { START_MS, trace } from '../../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../../scripts/aws-double/double.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

const REGION = 'eu-central-1';
const DAY_S = 86_400;
const after = (s: number) => plus(START_MS, seconds(s));
/** What the market's own trace says, not what the catalogue does. */
const TRUE_PRICE = raw(trace.pools[0]!.onDemandUsdPerHour);

describe('on-demand prices of the region', () => {
  let double: AwsDouble;
  let client: PricingClient;
  let table: Table;
  beforeAll(async () => {
    double = await startAwsDouble({ trace, from: START_MS, speed: 1, region: REGION });
    client = new PricingClient({
      endpoint: double.url,
      region: REGION,
      maxAttempts: 1,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
  });
  afterAll(async () => {
    client.destroy();
    await double.close();
  });
  beforeEach(() => {
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    double.knobs.set({ faults: [] });
  });

  const parts = (types = ['c5.large']) => ({ client, table, region: REGION, types });
  const asked = (): number => double.calls.filter((c) => c.action === 'GetProducts').length;
  const market = () =>
    new AwsMarket({
      book: new PriceBook(table),
      historyS: DAY_S,
      zones: ['calm'],
      types: ['c5.large'],
      now: () => START_MS,
    });

  it('are read once a day, and are those of the list', async () => {
    const before = asked();
    expect(await refreshListPrices(parts(), START_MS)).toEqual({ source: 'price-list', region: REGION, lacking: [] });
    expect(await readListPrices(table)).toEqual({ region: REGION, usdPerHour: { 'c5.large': TRUE_PRICE } });
    expect(await refreshListPrices(parts(), after(DAY_S - 1))).toBeNull();
    expect(asked() - before).toBe(1);
    expect(await refreshListPrices(parts(), after(DAY_S))).not.toBeNull();
    expect(asked() - before).toBe(2);
  });

  it('are asked for at once for a family that is new, and only once for one that the list lacks', async () => {
    await refreshListPrices(parts(), START_MS);
    const more = parts(['c5.large', 'c9x.large']);
    expect(await refreshListPrices(more, after(600))).toMatchObject({ source: 'price-list', lacking: ['c9x.large'] });
    const before = asked();
    expect(await refreshListPrices(more, after(1200))).toBeNull();
    expect(asked()).toBe(before);
  });

  it('are the built-in ones while the list cannot be had, which is said, and asked again after an hour', async () => {
    double.knobs.set({ faults: [{ action: 'GetProducts', code: 'AccessDeniedException', status: 400 }] });
    expect(await refreshListPrices(parts(), START_MS)).toMatchObject({ source: 'catalogue', region: 'us-east-1' });
    expect(await refreshListPrices(parts(), after(3599))).toBeNull();
    expect(await refreshListPrices(parts(), after(3600))).toMatchObject({ source: 'price-list' });
    double.knobs.set({ faults: [{ action: 'GetProducts', code: 'InternalErrorException', status: 500 }] });
    // An older list is better than another region's.
    expect(await refreshListPrices(parts(), after(2 * DAY_S))).toMatchObject({ source: 'price-list', region: REGION });
  });

  it('have none of the types asked for: the built-in ones serve', async () => {
    const none = await refreshListPrices(parts(['c9x.large']), START_MS);
    expect(none).toMatchObject({ source: 'catalogue', why: expect.stringContaining('none of the instance types') });
  });

  it('are what the market sells at, and it says whose they are', async () => {
    const chunk = { atMs: [raw(START_MS) - 1], usd: [0.03] };
    await table.write({
      key: { pk: `PRICES#${new Date(raw(START_MS)).toISOString().slice(0, 10)}`, sk: 'c5.large/calm' },
      set: { b: body(chunk) },
    });
    await table.write({ key: { pk: 'PRICES', sk: 'STATE' }, set: { checkedMs: number(raw(START_MS)) } });
    const same = market();
    const builtIn = await same.prices();
    expect(builtIn.trace.name).toBe('EC2, on demand as in us-east-1 (built in)');
    expect(builtIn.trace.pools.map((p) => raw(p.onDemandUsdPerHour))).toEqual([0.085, 0.085]);
    const list = { region: REGION, usdPerHour: { 'c5.large': 0.097 } };
    await table.write({ key: { pk: 'PRICES', sk: 'LIST' }, set: { b: body(list) } });
    await table.write({ key: { pk: 'PRICES', sk: 'STATE' }, set: { listedMs: number(1) } });
    const listed = await same.prices();
    expect(listed.trace.name).toBe('EC2, on demand as in eu-central-1');
    expect(listed.trace.pools.map((p) => raw(p.onDemandUsdPerHour))).toEqual([0.097, 0.097]);
    const onDemand = listed.trace.pools.find((p) => p.option === 'on-demand');
    expect(raw(listed.market.quote(onDemand!.id, epochMs(raw(START_MS)))!)).toBe(0.097);
  });

  it('are not those of a pool that is not on offer, until the deployment is another one', async () => {
    const day = new Date(raw(START_MS)).toISOString().slice(0, 10);
    for (const zone of ['calm', 'spiky']) {
      const content = body({ atMs: [raw(START_MS) - 1], usd: [0.03] });
      await table.write({ key: { pk: `PRICES#${day}`, sk: `c5.large/${zone}` }, set: { b: content } });
    }
    await table.write({ key: { pk: 'PRICES', sk: 'STATE' }, set: { checkedMs: number(raw(START_MS)) } });
    const book = new PriceBook(table);
    const parts = { book, historyS: DAY_S, zones: ['calm', 'spiky'], types: ['c5.large'], now: () => START_MS };
    const quoted = async (of: AwsMarket) => {
      const { market: known, trace: all } = await of.prices();
      return all.pools.filter((p) => known.quote(p.id, START_MS) !== null).map((p) => p.id as string);
    };
    const same = new AwsMarket({ ...parts, deployment: 'one' });
    const before = await quoted(same);
    expect(before).toContain('c5.large/calm/spot');
    await book.close('c5.large/calm/spot', 'one');
    await book.close('c5.large/calm/on-demand', 'one');
    expect(await quoted(same)).toEqual(before.filter((id) => !id.includes('/calm/')));
    expect(await quoted(new AwsMarket({ ...parts, deployment: 'two' }))).toEqual(before);
  });

  it('are asked for where the API answers', () => {
    expect(['us-west-2', 'sa-east-1', 'eu-north-1', 'ap-southeast-2', 'cn-north-1'].map(priceListRegion)).toEqual([
      'us-east-1',
      'us-east-1',
      'eu-central-1',
      'ap-south-1',
      'cn-northwest-1',
    ]);
  });
});
