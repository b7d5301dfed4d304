/**
 * On-demand prices of the deployment's region from AWS's price list (fetch-on-demand-prices.ts), one item in the table.
 *
 *   PRICES   LIST    region, and USD per hour by instance type
 *   PRICES   STATE   `listedMs`: time of the last write; `listDueMs`: time of the next fetch
 *
 * If there is no list, or it lacks a type, prices are those of the built-in catalogue (us-east-1), and the source says
 * so.
 */
import { bodyOf } from '../store/codec.ts';
import { PRICE_LIST } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

/** Prices that AWS published for the region. */
export interface ListPrices {
  readonly region: string;
  readonly usdPerHour: Readonly<Record<string, number>>;
}

/** Source of on-demand prices. */
export type ListSource =
  | {
      readonly source: 'price-list';
      readonly region: string;
      /** Types with a built-in price. */ readonly lacking: readonly string[];
    }
  | { readonly source: 'catalogue'; readonly region: 'us-east-1'; readonly why: string };

export const sourceOf = (list: ListPrices | null, types: readonly string[]): ListSource =>
  list === null
    ? { source: 'catalogue', region: 'us-east-1', why: 'the price list has not been read yet' }
    : {
        source: 'price-list',
        region: list.region,
        lacking: types.filter((type) => !Object.hasOwn(list.usdPerHour, type)),
      };

/** Stored prices; null before the first write. */
export async function readListPrices(table: Pick<Table, 'get'>): Promise<ListPrices | null> {
  const item = await table.get(PRICE_LIST);
  return item === undefined ? null : bodyOf<ListPrices>(item);
}
