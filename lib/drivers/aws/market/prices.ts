/**
 * Fetch of spot prices from EC2 when due; stored as in price-book.ts.
 *
 * One writer: the `prices` Lambda, one at a time. After a crash the next run starts where the last finished one ended.
 */
import { DescribeSpotPriceHistoryCommand, type EC2Client, type _InstanceType } from '@aws-sdk/client-ec2';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import { classify } from '../errors.ts';
import { chunksOf, DAY_MS, dayOf, dayText, OVERLAP_MS, type Chunk } from './price-book.ts';
import { body, number, numberOf } from '../store/codec.ts';
import { pricesKey, PRICES_STATE } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

const KEEP_DAYS = 30;
/** Types per request. */
const TYPES_AT_ONCE = 100;
const WRITES_AT_ONCE = 10;

/** Price changes of a pool, by time. */
type Changes = Map<number, number>;

export interface PriceFeedParts {
  readonly client: EC2Client;
  readonly table: Table;
  readonly types: readonly string[];
  readonly zones: readonly string[];
  /** History that the first run fetches, engine seconds. */
  readonly historyS: number;
}

/** Fetches new prices. Returns the number of new changes. */
export async function fetchPrices(parts: PriceFeedParts, now: EpochMs): Promise<number> {
  const { table, historyS } = parts;
  const nowMs = raw(now);
  const checkedMs = numberOf(await table.get(PRICES_STATE), 'checkedMs');
  const fromMs = Math.max(nowMs - historyS * 1000, Math.min(checkedMs, nowMs) - OVERLAP_MS);
  const fetched = await history(parts, fromMs, nowMs);
  let added = 0;
  // Prices in force at the start of a day are those at the end of the day before.
  let before = await lastPrices(table, dayOf(fromMs) - 1);
  for (let day = dayOf(fromMs); day <= dayOf(nowMs); day++) {
    const { known, fresh } = merged(await chunksOf(table, day), { day, fetched, before });
    await inParallel([...fresh], async ([pool, changes]) => {
      added += changes.size - (known.get(pool)?.atMs.length ?? 0);
      await table.write({
        key: pricesKey(dayText(day), pool),
        set: { b: body(chunkOf(changes)), ttl: number((day + KEEP_DAYS) * (DAY_MS / 1000)) },
      });
    });
    before = await lastPrices(table, day);
  }
  await table.write({ key: PRICES_STATE, set: { checkedMs: number(nowMs) } });
  return added;
}

/** EC2's prices in [fromMs, toMs] by `<type>/<zone>`, first the price in force at `fromMs`. */
async function history(parts: PriceFeedParts, fromMs: number, toMs: number): Promise<Map<string, Changes>> {
  const { client, types, zones } = parts;
  const found = new Map<string, Changes>();
  for (let i = 0; i < types.length; i += TYPES_AT_ONCE) {
    let token: string | undefined;
    do {
      const answer = await client
        .send(
          new DescribeSpotPriceHistoryCommand({
            StartTime: new Date(fromMs),
            EndTime: new Date(toMs),
            ProductDescriptions: ['Linux/UNIX'],
            InstanceTypes: types.slice(i, i + TYPES_AT_ONCE) as _InstanceType[],
            Filters: [{ Name: 'availability-zone', Values: [...zones] }],
            ...(token === undefined ? {} : { NextToken: token }),
          }),
        )
        .catch((error: unknown) => {
          throw classify(error, 'ec2 DescribeSpotPriceHistory');
        });
      for (const { InstanceType: type, AvailabilityZone: zone, SpotPrice, Timestamp } of answer.SpotPriceHistory ??
        []) {
        const price = Number(SpotPrice);
        if (type === undefined || zone === undefined || Timestamp === undefined || !(price > 0)) continue;
        const pool = `${type}/${zone}`;
        const changes = found.get(pool) ?? new Map<number, number>();
        found.set(pool, changes.set(Timestamp.getTime(), price));
      }
      token = answer.NextToken;
    } while (token !== undefined && token !== '');
  }
  return found;
}

/** Chunks of a day that the fetch changes. Chunks of pools without a change that day begin with the earlier price. */
function merged(
  known: ReadonlyMap<string, Chunk>,
  with_: {
    readonly day: number;
    readonly fetched: ReadonlyMap<string, Changes>;
    readonly before: ReadonlyMap<string, number>;
  },
): { readonly known: ReadonlyMap<string, Chunk>; readonly fresh: ReadonlyMap<string, Changes> } {
  const { day, fetched, before } = with_;
  const startMs = day * DAY_MS;
  const fresh = new Map<string, Changes>();
  for (const pool of new Set([...known.keys(), ...fetched.keys(), ...before.keys()])) {
    const chunk = known.get(pool);
    const changes: Changes = new Map((chunk?.atMs ?? []).map((at, i) => [at, chunk?.usd[i] ?? 0]));
    const told = [...(fetched.get(pool) ?? [])];
    const news = told.filter(([at]) => at >= startMs && at < startMs + DAY_MS);
    // Fetched price before the stored one: a change of the day before may be published after this day has begun.
    const began = inForceAt(told, startMs) ?? (changes.has(startMs) ? null : before.get(pool));
    if (began !== null && began !== undefined) news.push([startMs, began]);
    if (news.every(([at, usd]) => changes.get(at) === usd)) continue;
    for (const [at, usd] of news) changes.set(at, usd);
    fresh.set(pool, changes);
  }
  return { known, fresh };
}

/** Newest of the changes until `atMs`; null if there is none. */
function inForceAt(changes: readonly (readonly [atMs: number, usd: number])[], atMs: number): number | null {
  let newest: readonly [number, number] | null = null;
  for (const change of changes) if (change[0] <= atMs && change[0] > (newest?.[0] ?? -Infinity)) newest = change;
  return newest?.[1] ?? null;
}

function chunkOf(changes: Changes): Chunk {
  const sorted = [...changes].sort(([a], [b]) => a - b);
  return { atMs: sorted.map(([at]) => at), usd: sorted.map(([, usd]) => usd) };
}

async function lastPrices(table: Table, day: number): Promise<ReadonlyMap<string, number>> {
  return new Map([...(await chunksOf(table, day))].map(([pool, { usd }]) => [pool, usd.at(-1) ?? 0]));
}

async function inParallel<T>(list: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const queue = [...list];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(WRITES_AT_ONCE, list.length) }, worker));
}
