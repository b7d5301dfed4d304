import { EbbError } from '../../kernel/errors.ts';

/** The lists that are read in pages. A cursor of one is refused by another. */
export type PagedList = 'jobs' | 'instances' | 'plans';

/**
 * Pages are keyed by order of arrival, newest first: rows that arrive between two pages neither shift nor repeat any.
 * The cursor names the last row given, and stays valid whatever happens to that row.
 */
export const encodeCursor = (list: PagedList, arrival: number): string =>
  Buffer.from(`${list}:${arrival}`, 'latin1').toString('base64url');

/**
 * Arrival number at which to read on, downwards. Throws EbbError `usage` for a cursor that `encodeCursor` did not make.
 */
export function decodeCursor(list: PagedList, cursor: string): number {
  const match = /^([a-z]+):(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match === null || match[1] !== list) {
    throw new EbbError('usage', {
      what: 'this is not a cursor of this list',
      got: cursor.slice(0, 80),
      allowed: 'the `next` of the page before, unchanged',
      next: 'leave the cursor out to begin with the newest',
    });
  }
  return Number(match[2]);
}

/** A page out of rows read with one more than `limit`. */
export function pageOf<T extends { readonly arrival: number }, V>(
  rows: readonly T[],
  of: { readonly list: PagedList; readonly limit: number; readonly value: (row: T) => V },
): { readonly items: readonly V[]; readonly next: string | null } {
  const items = rows.slice(0, of.limit);
  const last = items.at(-1);
  return {
    items: items.map(of.value),
    next: rows.length > of.limit && last !== undefined ? encodeCursor(of.list, last.arrival) : null,
  };
}
