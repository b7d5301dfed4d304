/**
 * On-demand prices of the deployment's region, from AWS's price list, kept in the table as one item
 * (fetch-on-demand-prices.ts writes it).
 *
 *   PRICES   LIST    region, and USD per hour by instance type
 *   PRICES   STATE   `listedMs`: when it was last written; `listDueMs`: when to ask again
 *
 * Where the list cannot be had, or lacks a type, prices are those of the built-in catalogue (us-east-1), and that is
 * said.
 */
import { bodyOf } from '../store/codec.ts';
import { PRICE_LIST } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';

/** Prices that AWS published for the region. */
export interface ListPrices {
  readonly region: string;
  readonly usdPerHour: Readonly<Record<string, number>>;
}

/** Where on-demand prices are from. */
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

/** As stored; null when it never was. */
export async function readListPrices(table: Pick<Table, 'get'>): Promise<ListPrices | null> {
  const item = await table.get(PRICE_LIST);
  return item === undefined ? null : bodyOf<ListPrices>(item);
}
