import { EbbError } from '../kernel/errors.ts';

export interface Slice<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Page of a list in memory. The cursor is the number of items before the page. */
export function slice<T>(items: readonly T[], limit: number, cursor: string | undefined): Slice<T> {
  const from = cursor === undefined ? 0 : position(cursor);
  const to = from + limit;
  return { items: items.slice(from, to), next: to < items.length ? String(to) : null };
}

export function position(cursor: string): number {
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor);
  throw notACursor();
}

export const notACursor = (cause?: unknown): EbbError =>
  new EbbError('usage', {
    what: 'query.cursor: not a cursor of this list',
    at: 'query.cursor',
    allowed: '`next` of the previous page, unchanged',
    next: 'Leave the cursor out to start from the beginning.',
    cause,
  });
