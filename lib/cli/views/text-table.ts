import Table from 'cli-table3';
import { stripVTControlCharacters } from 'node:util';
import { visible } from '../../kernel/terminal-text.ts';
import type { Output } from '../output.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  readonly right?: boolean;
  /** Least width for wrapped cells; absent: no wrapping. */
  readonly wrap?: number;
  /** Rank for leaving the column out of a too wide table, highest first; absent: never. */
  readonly optional?: number;
}

/** Style without rules: two blanks between columns are enough. */
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
const BETWEEN = BARE.middle.length;
/** Least width of wrapped columns in the last resort. */
const LEAST = 8;
/** Longest word kept whole if a column can be left out instead: names of presets, versions and jobs. */
const WORD = 20;

/**
 * Table without rules, one row per line; `empty` without rows. It fits the width of the output: columns are wrapped,
 * then left out, as they allow, and named below. O(cells).
 */
export function table<T>(
  output: Pick<Output, 'colors' | 'columns'>,
  columns: readonly Column<T>[],
  rows: readonly T[],
  empty: string,
): string {
  if (rows.length === 0) return output.colors.dim(empty);
  const full = columns.map((column): Laid => {
    const cells = rows.map((row) => column.cell(row));
    const natural = Math.max(width(column.title), ...cells.map(width));
    return { ...column, cells, natural, width: natural };
  });
  const kept = fitted(full, output.columns);
  const drawn = new Table({
    head: kept.map((c) => output.colors.bold(c.title)),
    chars: BARE,
    colAligns: kept.map((c) => (c.right === true ? 'right' : 'left')),
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  for (const i of rows.keys()) drawn.push(kept.map((c) => wrapped(c.cells[i] ?? '', c.width)));
  const lines = drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
  const left = full.filter((c) => !kept.some((k) => k.title === c.title)).map((c) => c.title);
  if (left.length > 0) {
    const note = `not shown in ${output.columns} columns: ${left.join(', ')} (--json has all)`;
    lines.push(...wrapped(note, output.columns).split('\n').map(output.colors.dim));
  }
  return lines.join('\n');
}

interface Laid extends Omit<Column<never>, 'cell'> {
  readonly cells: readonly string[];
  /** Width without wrapping. */
  readonly natural: number;
  readonly width: number;
}

/** Leaves out as few columns as possible so that the rest fits, then wraps no more than needed. */
function fitted(columns: readonly Laid[], most: number): readonly Laid[] {
  const least = (c: Laid): number =>
    c.wrap === undefined ? c.natural : Math.min(c.natural, Math.max(c.wrap, Math.min(longestWord(c), WORD)));
  let kept = [...columns];
  for (;;) {
    if (total(kept.map(least)) <= most) return narrowed(kept, least, most);
    const first = kept.reduce<Laid | null>((a, c) => ((c.optional ?? 0) > (a?.optional ?? 0) ? c : a), null);
    if (first === null) break;
    kept = kept.filter((c) => c !== first);
  }
  // No further column can go: text is wrapped below its least width.
  return narrowed(kept, (c) => (c.right === true ? c.natural : Math.min(c.natural, LEAST)), most);
}

const total = (widths: readonly number[]): number =>
  widths.reduce((sum, w) => sum + w, 0) + BETWEEN * Math.max(0, widths.length - 1);

const longestWord = ({ cells }: Laid): number =>
  Math.max(0, ...cells.flatMap((cell) => cell.split(/[\s/]/).map(width)));

/** Narrows the widest column that allows it, until all fit. */
function narrowed(columns: readonly Laid[], least: (c: Laid) => number, most: number): readonly Laid[] {
  const widths = columns.map((c) => c.natural);
  for (let excess = total(widths) - most; excess > 0;) {
    let widest = -1;
    for (const [i, c] of columns.entries()) {
      if ((widths[i] ?? 0) > least(c) && (widest < 0 || (widths[i] ?? 0) > (widths[widest] ?? 0))) widest = i;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess--;
  }
  return columns.map((c, i) => ({ ...c, width: widths[i] ?? c.natural }));
}

/** Width of the longest line, without colour codes. */
const width = (cell: string): number =>
  Math.max(...cell.split('\n').map((line) => [...stripVTControlCharacters(line)].length));

/** Text in lines of at most `most` characters, broken after blanks and slashes, else anywhere. */
function wrapped(cell: string, most: number): string {
  if (width(cell) <= most) return cell;
  const lines: string[] = [];
  for (const line of cell.split('\n')) {
    let begun = '';
    for (const piece of line.split(/(?<=[ /])/)) {
      if (width((begun + piece).trimEnd()) <= most) {
        begun += piece;
        continue;
      }
      if (begun !== '') lines.push(begun.trimEnd());
      begun = piece;
      // A coloured word stays whole: a cut would lose its colour code.
      while (width(begun.trimEnd()) > most && !begun.includes('\u001b')) {
        const characters = [...begun];
        lines.push(characters.slice(0, most).join(''));
        begun = characters.slice(most).join('');
      }
    }
    if (begun.trimEnd() !== '') lines.push(begun.trimEnd());
  }
  return lines.join('\n');
}

export const text = visible;
