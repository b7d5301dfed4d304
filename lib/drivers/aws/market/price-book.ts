/**
 * Spot prices of pools that may be bought, stored in the table by day and read as one trace. Readers load no client of
 * EC2.
 *
 *   PRICES#<day>   <type>/<zone>   price changes of that day, first the price in force at its start
 *   PRICES         STATE           times of fetches; more in on-demand-prices.ts and known-reservations.ts
 *
 * Writer: prices.ts. Past days never change, so a process reads each of them once.
 */
import { familyOf, isBareMetal } from '../../../domain/pool.ts';
import { builtInCatalogue, type Catalogue } from '../../../market/catalogue.ts';
import { indexAt, type SpotMarket } from '../../../market/price-steps.ts';
import { readReservedPools, type ReservedPool } from './known-reservations.ts';
import { readListPrices, type ListPrices } from './on-demand-prices.ts';
import { bodyOf, numberOf, text, textAt } from '../store/codec.ts';
import { pricesOf, PRICES_STATE } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

export const DAY_MS = 86_400_000;
/** Prefix of attributes of STATE, one per pool that cannot be bought; the value is the deployment that found out. */
const CLOSED = 'closed:';
export const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
/** `2026-01-31` */
export const dayText = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

/** Overlap of fetches: changes are published late, and the clock of the last fetch may have been ahead. */
export const OVERLAP_MS = 30 * 60_000;
export interface Chunk {
  readonly atMs: readonly number[];
  readonly usd: readonly number[];
}

/** Types of the families without bare metal, which takes ten minutes and more to start. */
export const typesOf = (families: readonly string[], catalogue: Catalogue = builtInCatalogue()): readonly string[] =>
  catalogue.types().filter((type) => families.includes(familyOf(type)) && !isBareMetal(type));

export async function chunksOf(table: Table, day: number): Promise<ReadonlyMap<string, Chunk>> {
  return new Map(
    (await table.range({ pk: pricesOf(dayText(day)) })).map((item) => [textAt(item, 'sk'), bodyOf<Chunk>(item)]),
  );
}

/** Stored prices, with past days cached. */
export class PriceBook {
  readonly #table: Table;
  readonly #days = new Map<number, ReadonlyMap<string, Chunk>>();

  constructor(table: Table) {
    this.#table = table;
  }

  /**
   * Engine times of the last reads of spot prices, price list and reservations (null: never), and the pools that
   * `deployment` has closed.
   */
  async read(deployment = ''): Promise<{
    readonly checkedMs: number | null;
    readonly listedMs: number | null;
    readonly reservedMs: number | null;
    readonly closed: ReadonlySet<string>;
  }> {
    const item = await this.#table.get(PRICES_STATE);
    const at = (name: string): number | null => (item?.[name] === undefined ? null : numberOf(item, name));
    const closed = Object.keys(item ?? {}).filter(
      (name) => name.startsWith(CLOSED) && textAt(item, name) === deployment,
    );
    return {
      checkedMs: at('checkedMs'),
      listedMs: at('listedMs'),
      reservedMs: at('reservedMs'),
      closed: new Set(closed.map((name) => name.slice(CLOSED.length))),
    };
  }

  /** Closes a pool whose type its zone does not offer, for as long as the deployment stays the same. */
  async close(pool: string, deployment: string): Promise<void> {
    await this.#table.write({ key: PRICES_STATE, set: { [`${CLOSED}${pool}`]: text(deployment) } });
  }

  /** On-demand prices of the region; null before the first fetch. */
  list(): Promise<ListPrices | null> {
    return readListPrices(this.#table);
  }

  /** Pools of capacity reservations. */
  reserved(): Promise<readonly ReservedPool[]> {
    return readReservedPools(this.#table);
  }

  /**
   * Prices of all pools in [fromMs, toMs], first the price in force at `fromMs`. `checkedMs`: time until which they are
   * complete.
   */
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
          // First price of a day, repeated from the day before: no change.
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
