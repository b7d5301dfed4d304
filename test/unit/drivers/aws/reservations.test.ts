import { EC2Client, type CapacityReservation } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AwsMarket } from '../../../../lib/drivers/aws/market/aws-market.ts';
import { openReservations } from '../../../../lib/drivers/aws/market/known-reservations.ts';
import { PriceBook } from '../../../../lib/drivers/aws/market/price-book.ts';
import { refreshReservations, reservationIssues } from '../../../../lib/drivers/aws/market/reservations.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { poolKey } from '../../../../lib/domain/pool.ts';
import { plus, raw, seconds } from '../../../../lib/kernel/units.ts';
import { billOf } from '../../../../lib/market/billing.ts';
import { builtInCatalogue } from '../../../../lib/market/catalogue.ts';
import { START_MS, trace } from '../../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../../scripts/aws-double/double.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';

/** Two instances in one zone, one in another; neither has a spot price in the table. */
const CALM = poolKey('c5.large', 'calm', 'reserved');
const SPIKY = poolKey('c5.large', 'spiky', 'reserved');
const ZONES = ['calm', 'spiky'];
const LIST_USD = raw(builtInCatalogue().entry('c5.large', START_MS)!.onDemandUsdPerHour);
const HOUR_S = 3600;
const after = (s: number) => plus(START_MS, seconds(s));

describe('capacity reservations', () => {
  let double: AwsDouble;
  let client: EC2Client;
  let table: Table;
  beforeAll(async () => {
    double = await startAwsDouble({ trace, from: START_MS, speed: 1, region: 'us-east-1' });
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    client = new EC2Client({ endpoint: double.url, region: 'us-east-1', maxAttempts: 1, credentials });
  });
  afterAll(async () => {
    client.destroy();
    await double.close();
  });
  beforeEach(() => {
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    double.knobs.set({ faults: [], reservations: {} });
  });

  const idOf = (pool: typeof CALM): string => double.reservations.get(pool) ?? '';
  const both = (): string[] => [idOf(CALM), idOf(SPIKY)];
  const refresh = (atS: number, named = both()) =>
    refreshReservations({ client, table, named, families: ['c5'], zones: ZONES }, after(atS));
  const read = async (atS: number, named = both()) => {
    const of = { historyS: HOUR_S, zones: ZONES, types: ['c5.large'], reservations: named, now: () => after(atS) };
    const { market, trace: known } = await new AwsMarket({ book: new PriceBook(table), ...of }).prices();
    const reserved = market.pools().filter((p) => p.option === 'reserved');
    const quotes = reserved.map((p) => [p.id, p.reservedInstances, market.quote(p.id, after(atS))] as const);
    return { known, quotes };
  };
  /** What an instance costs that runs for an hour from `atS` on. */
  const billed = async (pool: typeof CALM, atS: number): Promise<number> => {
    const { known } = await read(1e6);
    const use = {
      launchedMs: after(atS),
      untilMs: after(atS + HOUR_S),
      bid: 'uncapped',
      takenByMarket: false,
    } as const;
    return raw(billOf(known, pool, use, { billing: 'per-second', refundRule: 'none' }).totalUsd);
  };

  it('are pools of the market with so many instances, at no cost; where none is named nothing is asked', async () => {
    expect(await refresh(0, [])).toBeNull();
    expect((await read(0)).quotes).toEqual([]);
    expect(double.calls.filter((c) => c.action === 'DescribeCapacityReservations')).toEqual([]);
    expect(await refresh(0)).toEqual({ named: 2, instances: 3, issues: [], fault: null });
    expect((await read(0)).quotes).toEqual([
      [CALM, 2, 0],
      [SPIKY, 1, 0],
    ]);
    expect(await billed(CALM, 60)).toBe(0);
    expect(await openReservations(table, CALM, both())).toEqual([idOf(CALM)]);
    expect(await openReservations(table, poolKey('c5.large', 'calm', 'on-demand'), both())).toEqual([]);
  });

  it('quote no price while EC2 does not say what they are; what runs in them costs what it did', async () => {
    await refresh(0);
    double.knobs.set({ faults: [{ action: 'DescribeCapacityReservations', code: 'InternalError' }] });
    const failed = await refresh(600);
    expect(failed).toMatchObject({ named: 2, instances: 0 });
    expect(failed?.fault).toMatch(/DescribeCapacityReservations.*InternalError/);
    expect((await read(600)).quotes).toEqual([
      [CALM, 2, null],
      [SPIKY, 1, null],
    ]);
    expect(await openReservations(table, CALM, both())).toEqual([]);
    await refresh(1200);
    expect((await read(1200)).quotes.map(([, , usd]) => usd)).toEqual([0, 0]);
    expect(await billed(CALM, 300)).toBe(0);
  });

  it('that end cost what on-demand instances do from then on, for those that live on', async () => {
    await refresh(0);
    double.knobs.set({ reservations: { [CALM]: { state: 'expired' } } });
    const ended = await refresh(HOUR_S);
    expect(ended?.issues.map((i) => i.message)).toEqual([expect.stringMatching(/^cr-\w+ is expired; leave it out/)]);
    expect((await read(HOUR_S)).quotes.map(([, , usd]) => usd)).toEqual([null, 0]);
    expect(await billed(CALM, HOUR_S / 2)).toBeCloseTo(LIST_USD / 2, 9);
    expect(await billed(SPIKY, HOUR_S / 2)).toBe(0);
    double.knobs.set({ reservations: {} });
    await refresh(3 * HOUR_S);
    expect(await billed(CALM, 2 * HOUR_S)).toBeCloseTo(LIST_USD, 9);
    expect(await billed(CALM, 3 * HOUR_S)).toBe(0);
  });

  it('that the configuration names no more take nothing, and their pools stay for bills', async () => {
    await refresh(0);
    // An update of the deployment, before EC2 is asked again, and after.
    expect((await read(60, [idOf(CALM)])).quotes.map(([, , usd]) => usd)).toEqual([0, null]);
    expect(await refresh(120, [])).toMatchObject({ named: 0, instances: 0, fault: null });
    expect((await read(120, [])).quotes.map(([, , usd]) => usd)).toEqual([null, null]);
    expect(await refresh(180, [])).toBeNull();
  });
});

describe('a capacity reservation', () => {
  const ID = 'cr-0123456789abcdef0';
  const good: CapacityReservation = {
    CapacityReservationId: ID,
    InstanceType: 'c5.large',
    AvailabilityZone: 'calm',
    InstancePlatform: 'Linux/UNIX',
    Tenancy: 'default',
    State: 'active',
    InstanceMatchCriteria: 'targeted',
    TotalInstanceCount: 2,
  };
  const said = (over: Partial<CapacityReservation> | null) => {
    const all = over === null ? [] : [{ ...good, ...over }];
    const { failures, notes } = reservationIssues(all, [ID], { families: ['c5', 'm5'], zones: ['calm', 'spiky'] });
    for (const { at } of [...failures, ...notes]) expect(at).toBe('reservations');
    return [failures.map((i) => i.message), notes.map((i) => i.message)];
  };

  it('that can be used is not spoken of', () => {
    expect(said({})).toEqual([[], []]);
  });

  it.each<[string, Partial<CapacityReservation> | null, RegExp]>([
    ['that is not there', null, /is not in this account and region; correct the id/],
    ['that is over', { State: 'expired' }, /is expired; leave it out/],
    ['of another type', { InstanceType: 'r5.large' }, /is of r5\.large, and c5, m5 are bought.*add its family/],
    ['of bare metal', { InstanceType: 'c5.metal' }, /is of c5\.metal/],
    ['in another zone', { AvailabilityZone: 'moon-1a' }, /is in moon-1a, and there are subnets in calm, spiky/],
    ['of another system', { InstancePlatform: 'Windows' }, /is for Windows, and instances are Linux\/UNIX/],
    ['on dedicated hardware', { Tenancy: 'dedicated' }, /has the tenancy dedicated/],
    ['that is a Capacity Block', { ReservationType: 'capacity-block' }, /is a Capacity Block or interruptible/],
    ['that its owner may take back', { Interruptible: true }, /is a Capacity Block or interruptible/],
  ])('%s cannot be used, and it is said what to do', (_, over, words) => {
    expect(said(over)).toEqual([[expect.stringMatching(words)], []]);
  });

  it.each<[string, Partial<CapacityReservation>, RegExp]>([
    ['is not there yet', { State: 'scheduled' }, /is scheduled, and used once it is active/],
    ['is open to all', { InstanceMatchCriteria: 'open' }, /is open: .*make it targeted/],
  ])('that %s can be used, and it is said', (_, over, words) => {
    expect(said(over)).toEqual([[], [expect.stringMatching(words)]]);
  });
});
