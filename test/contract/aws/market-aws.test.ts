import { DescribeCapacityReservationsCommand, type CapacityReservation, type EC2Client } from '@aws-sdk/client-ec2';
import { AwsMarket } from '../../../lib/drivers/aws/market/aws-market.ts';
import { PriceBook } from '../../../lib/drivers/aws/market/price-book.ts';
import { fetchPrices } from '../../../lib/drivers/aws/market/prices.ts';
import { refreshReservations } from '../../../lib/drivers/aws/market/reservations.ts';
import { Table } from '../../../lib/drivers/aws/store/dynamo-table.ts';
import { invariant } from '../../../lib/kernel/errors.ts';
import { raw, type EpochMs } from '../../../lib/kernel/units.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import type { Market } from '../../../lib/ports/market.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { publishedPrices } from '../../support/published-prices.ts';
import { marketContract, MARKETS, type MarketDriver } from '../market.ts';

const TYPES = ['c5.large'];
/** Longer than the contract's market. */
const HISTORY_S = 3 * 86_400;
/** So few that every question takes several answers. */
const PAGE = 3;

const RESERVATION = 'cr-0123456789abcdef0';

/** EC2's word on what is reserved in a market: one reservation for each pool. */
const reservationsOf = (trace: MarketTrace): readonly CapacityReservation[] =>
  trace.pools
    .filter((p) => p.option === 'reserved')
    .map((p) => ({
      CapacityReservationId: RESERVATION,
      InstanceType: p.type.name,
      AvailabilityZone: p.zone,
      InstancePlatform: 'Linux/UNIX',
      Tenancy: 'default',
      State: 'active',
      TotalInstanceCount: p.reservedInstances,
    }));

/** EC2 asked every so often by one process, and the table read by another, which lives on. */
async function make(trace: MarketTrace): Promise<MarketDriver> {
  const table = new Table({ client: new DynamoDouble().client(), name: 'table' });
  let nowMs = trace.startMs;
  const published = publishedPrices(trace, (at) => at <= raw(nowMs), PAGE);
  const client = {
    send: async (command: object): Promise<unknown> =>
      command instanceof DescribeCapacityReservationsCommand
        ? { CapacityReservations: reservationsOf(trace) }
        : published.send(command as never),
  } as unknown as EC2Client;
  const reserved = { client, table, named: [RESERVATION], families: ['c5'], zones: MARKETS };
  const feed = { client, table, types: TYPES, zones: MARKETS, historyS: HISTORY_S };
  const reader = new AwsMarket({
    book: new PriceBook(table),
    historyS: HISTORY_S,
    zones: MARKETS,
    types: TYPES,
    reservations: [RESERVATION],
    now: () => nowMs,
    deployment: 'one',
  });
  let known: Market | null = null;
  const read = async (): Promise<void> => void (known = (await reader.prices()).market);
  return {
    get market() {
      return invariant(known, 'time has begun');
    },
    goTo: async (atMs: EpochMs) => {
      nowMs = atMs;
      await fetchPrices(feed, nowMs);
      await refreshReservations(reserved, nowMs);
      await read();
    },
    close: async (pool) => {
      await new PriceBook(table).close(pool, 'one');
      await read();
    },
  };
}

marketContract('prices of EC2, kept in DynamoDB', {
  make,
  completeMs: (nowMs) => nowMs,
  listsUnpriced: false,
  ends: false,
});
