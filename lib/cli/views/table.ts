import Table from 'cli-table3';
import { visible } from '../format.ts';
import type { Output } from '../output.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  readonly right?: boolean;
}

/** Rules between rows and around the table only cost width; two blanks between columns are enough. */
const BARE = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** A table without rules, one row per line; says `empty` where there is nothing to show. */
export function table<T>(
  output: Pick<Output, 'colors'>,
  columns: readonly Column<T>[],
  rows: readonly T[],
  empty: string,
): string {
  if (rows.length === 0) return output.colors.dim(empty);
  const drawn = new Table({
    head: columns.map((c) => output.colors.bold(c.title)),
    chars: BARE,
    colAligns: columns.map((c) => (c.right === true ? 'right' : 'left')),
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  for (const row of rows) drawn.push(columns.map((c) => c.cell(row)));
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

export const text = visible;
