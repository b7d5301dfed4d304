/**
 * Spot prices of the pools that may be bought: fetched from EC2 when it is due, kept in the table by day, read as one trace.
 *
 *   PRICES#<day>   <type>/<zone>   price changes of that day, the price in force when it began first
 *   PRICES         STATE           when EC2 was last asked; more in list-prices.ts
 *
 * One writer: the `prices` Lambda, one at a time. A run that died is made up for by the next one, which asks from where the
 * last finished one ended. Days that are over never change, so a process reads each of them once.
 */
import { DescribeSpotPriceHistoryCommand, type EC2Client, type _InstanceType } from '@aws-sdk/client-ec2';
import { raw, type EpochMs } from '../kernel/units.ts';
import { builtInCatalogue, type Catalogue } from '../market/catalogue.ts';
import { indexAt, type SpotMarket } from '../market/steps.ts';
import { classify } from './errors.ts';
import { readListPrices, type ListPrices } from './list-prices.ts';
import { body, bodyOf, number, numberOf, text, textAt } from './store/codec.ts';
import type { Key } from './store/keys.ts';
import type { Table } from './store/table.ts';

const DAY_MS = 86_400_000;
const KEEP_DAYS = 30;
/** Attributes of STATE by pools that cannot be bought, each with the deployment that found out. */
const CLOSED = 'closed:';
const STATE: Key = { pk: 'PRICES', sk: 'STATE' };
const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
const partition = (day: number): string => `PRICES#${new Date(day * DAY_MS).toISOString().slice(0, 10)}`;

/** Asked for again on each run: changes are published a little late. */
const OVERLAP_MS = 10 * 60_000;
/** Types named in one request. */
const TYPES_AT_ONCE = 100;
const WRITES_AT_ONCE = 10;

interface Chunk {
  readonly atMs: readonly number[];
  readonly usd: readonly number[];
}
/** Changes of a pool, by their instants. */
type Changes = Map<number, number>;

/** Types of the families. Bare metal is left out: it takes ten minutes and more to come up. */
export const typesOf = (families: readonly string[], catalogue: Catalogue = builtInCatalogue()): readonly string[] =>
  catalogue.types().filter((name) => {
    const [family = '', size = ''] = name.split('.');
    return families.includes(family) && !size.startsWith('metal');
  });

export interface PriceFeedParts {
  readonly client: EC2Client;
  readonly table: Table;
  readonly types: readonly string[];
  readonly zones: readonly string[];
  /** How far back the first run asks, engine seconds. */
  readonly historyS: number;
}

/** Fetches what is new. Returns how many changes were new. */
export async function fetchPrices(parts: PriceFeedParts, now: EpochMs): Promise<number> {
  const { table, historyS } = parts;
  const nowMs = raw(now);
  const checkedMs = numberOf(await table.get(STATE), 'checkedMs');
  const fromMs = Math.max(nowMs - historyS * 1000, checkedMs - OVERLAP_MS);
  const fetched = await history(parts, fromMs, nowMs);
  let added = 0;
  // The price in force when a day began is that at the end of the day before.
  let before = await lastPrices(table, dayOf(fromMs) - 1);
  for (let day = dayOf(fromMs); day <= dayOf(nowMs); day++) {
    const { known, fresh } = merged(await chunksOf(table, day), { day, fetched, before });
    await inParallel([...fresh], async ([pool, changes]) => {
      added += changes.size - (known.get(pool)?.atMs.length ?? 0);
      await table.write({
        key: { pk: partition(day), sk: pool },
        set: { b: body(chunkOf(changes)), ttl: number((day + KEEP_DAYS) * (DAY_MS / 1000)) },
      });
    });
    before = await lastPrices(table, day);
  }
  await table.write({ key: STATE, set: { checkedMs: number(nowMs) } });
  return added;
}

/** What EC2 says of the time [fromMs, toMs], by `<type>/<zone>`; with the price that was in force at its beginning. */
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

/** A day's chunks that change by what was fetched; those of pools that had no change that day begin with the price before. */
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
    const size = changes.size;
    let inForce = before.get(pool) ?? null;
    let inForceMs = -Infinity;
    for (const [at, usd] of fetched.get(pool) ?? []) {
      if (at >= startMs && at < startMs + DAY_MS) changes.set(at, usd);
      else if (at < startMs && at > inForceMs) [inForceMs, inForce] = [at, usd];
    }
    if (inForce !== null && !changes.has(startMs)) changes.set(startMs, inForce);
    if (changes.size > size) fresh.set(pool, changes);
  }
  return { known, fresh };
}

function chunkOf(changes: Changes): Chunk {
  const sorted = [...changes].sort(([a], [b]) => a - b);
  return { atMs: sorted.map(([at]) => at), usd: sorted.map(([, usd]) => usd) };
}

async function chunksOf(table: Table, day: number): Promise<ReadonlyMap<string, Chunk>> {
  return new Map((await table.range({ pk: partition(day) })).map((item) => [textAt(item, 'sk'), bodyOf<Chunk>(item)]));
}

async function lastPrices(table: Table, day: number): Promise<ReadonlyMap<string, number>> {
  return new Map([...(await chunksOf(table, day))].map(([pool, { usd }]) => [pool, usd.at(-1) ?? 0]));
}

/** Prices as they lie in the table, with the days that are over remembered. */
export class PriceBook {
  readonly #table: Table;
  readonly #days = new Map<number, ReadonlyMap<string, Chunk>>();

  constructor(table: Table) {
    this.#table = table;
  }

  /** When EC2 and the price list were last read, engine time, null: never; and the pools that `deployment` has closed. */
  async read(deployment = ''): Promise<{
    readonly checkedMs: number | null;
    readonly listedMs: number | null;
    readonly closed: ReadonlySet<string>;
  }> {
    const item = await this.#table.get(STATE);
    const at = (name: string): number | null => (item?.[name] === undefined ? null : numberOf(item, name));
    const closed = Object.keys(item ?? {}).filter(
      (name) => name.startsWith(CLOSED) && textAt(item, name) === deployment,
    );
    return {
      checkedMs: at('checkedMs'),
      listedMs: at('listedMs'),
      closed: new Set(closed.map((name) => name.slice(CLOSED.length))),
    };
  }

  /** A pool's type is not offered in its zone: it is not to be bought from as long as the deployment is this one. */
  async close(pool: string, deployment: string): Promise<void> {
    await this.#table.write({ key: STATE, set: { [`${CLOSED}${pool}`]: text(deployment) } });
  }

  /** On-demand prices of the region; null when they were never read. */
  list(): Promise<ListPrices | null> {
    return readListPrices(this.#table);
  }

  /** Prices of all pools in [fromMs, toMs], the price in force at `fromMs` first; `checkedMs` says until when they are complete. */
  async prices(range: {
    readonly fromMs: number;
    readonly toMs: number;
    readonly checkedMs: number;
  }): Promise<ReadonlyMap<string, SpotMarket['prices']>> {
    const byPool = new Map<string, { atMs: number[]; usd: number[] }>();
    for (let day = dayOf(range.fromMs); day <= dayOf(range.toMs); day++) {
      for (const [pool, chunk] of await this.#day(day, range.checkedMs)) {
        const all = byPool.get(pool) ?? { atMs: [], usd: [] };
        byPool.set(pool, all);
        chunk.atMs.forEach((at, i) => {
          const usd = chunk.usd[i] ?? 0;
          // A day begins with the price of the day before: no change.
          if (all.usd.at(-1) === usd) return;
          all.atMs.push(at);
          all.usd.push(usd);
        });
      }
    }
    for (const day of this.#days.keys()) if (day < dayOf(range.fromMs)) this.#days.delete(day);
    return new Map([...byPool].map(([pool, all]) => [pool, within(all, range)]));
  }

  async #day(day: number, checkedMs: number): Promise<ReadonlyMap<string, Chunk>> {
    const known = this.#days.get(day);
    if (known !== undefined) return known;
    const chunks = await chunksOf(this.#table, day);
    if (dayOf(checkedMs - OVERLAP_MS) > day) this.#days.set(day, chunks);
    return chunks;
  }
}

function within(
  { atMs, usd }: { readonly atMs: readonly number[]; readonly usd: readonly number[] },
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): SpotMarket['prices'] {
  const at = Float64Array.from(atMs);
  const first = Math.max(0, indexAt(at, fromMs));
  const end = indexAt(at, toMs) + 1;
  return { atMs: at.subarray(first, end), usdPerHour: Float64Array.from(usd).subarray(first, end) };
}

async function inParallel<T>(list: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const queue = [...list];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(WRITES_AT_ONCE, list.length) }, worker));
}
