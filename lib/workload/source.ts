import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import { EbbError } from '../kernel/errors.ts';
import { quote, type Tally } from './tally.ts';

/** File of a workload. */
export interface SourceFile {
  readonly path: string;
  /** Name in messages, relative to the user's path. */
  readonly label: string;
  readonly gzip: boolean;
  /** First characters, decompressed, by which the format is detected. */
  readonly head: string;
}

const HEAD_BYTES = 65_536;
/** Bytes decompressed at once. With zlib's own 16 KiB half the time goes into passing on pieces. */
const CHUNK_BYTES = 262_144;
/** Longest line of a trace; the longest known one, a DAG with all its measurements, has 0.3 MB. */
const MAX_LINE_BYTES = 64 * 2 ** 20;

/** Files of a path, sorted. Throws EbbError `workload.invalid` without any. */
export async function sourceFiles(path: string): Promise<SourceFile[]> {
  if (!existsSync(path)) {
    throw new EbbError('workload.invalid', { what: 'no such file or folder', at: path, next: 'Check the path.' });
  }
  const isFolder = statSync(path).isDirectory();
  const paths = isFolder ? filesBelow(path) : [resolve(path)];
  const files: SourceFile[] = [];
  for (const file of paths) {
    files.push({ path: file, label: isFolder ? relative(path, file) : basename(file), ...(await peek(file)) });
  }
  return files;
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map((entry) => resolve(join(entry.parentPath, entry.name)))
    .sort();

async function peek(path: string): Promise<{ readonly head: string; readonly gzip: boolean }> {
  const pieces: Buffer[] = [];
  for await (const piece of createReadStream(path, { end: HEAD_BYTES - 1 })) pieces.push(piece as Buffer);
  const bytes = Buffer.concat(pieces);
  const gzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!gzip) return { head: textOf(bytes), gzip };
  try {
    // Z_SYNC_FLUSH (2): the piece ends inside the compressed stream, which is no fault here.
    return { head: textOf(gunzipSync(bytes, { finishFlush: 2 }).subarray(0, HEAD_BYTES)), gzip };
  } catch {
    return { head: '', gzip };
  }
}

const textOf = (bytes: Buffer): string => bytes.toString('utf8').replace(/^\uFEFF/, '');

/**
 * Decompressed bytes of a file. A damaged file (an unfinished gzip) ends at the damage. It counts as one bad line at
 * `line()`, and the data before it is used.
 */
async function* bytesOf(file: SourceFile, tally: Tally, line: () => number): AsyncGenerator<Buffer> {
  const bytes = createReadStream(file.path, { highWaterMark: CHUNK_BYTES });
  const plain: Readable = file.gzip ? bytes.pipe(createGunzip({ chunkSize: CHUNK_BYTES })) : bytes;
  bytes.on('error', (error) => plain.destroy(error));
  try {
    for await (const piece of plain) yield piece as Buffer;
  } catch (error) {
    tally.bad(file.label, line(), `the file is damaged, the rest of it is left out: ${(error as Error).message}`);
  } finally {
    plain.destroy();
    bytes.destroy();
  }
}

export interface Line {
  /** Line number from 1. */
  readonly line: number;
  readonly text: string;
}

const NEWLINE = 10;
const RETURN = 13;

/** Decompressed text of a file, in pieces that end at line ends. */
async function* textsOf(file: SourceFile, tally: Tally, line: () => number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const piece of bytesOf(file, tally, line)) {
    const end = piece.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      yield decoder.decode(Buffer.concat([...rest, piece.subarray(0, end)]), { stream: true });
      rest = [];
      restBytes = 0;
    }
    rest.push(piece.subarray(end));
    restBytes += piece.length - end;
    if (restBytes > MAX_LINE_BYTES) {
      tally.bad(file.label, line(), 'a line is too long; the rest of the file is left out');
      return;
    }
  }
  yield decoder.decode(Buffer.concat(rest));
}

/** End of the line that begins at `from`, and start of the next one. */
function lineFrom(text: string, from: number): { readonly to: number; readonly next: number } {
  const newline = text.indexOf('\n', from);
  const end = newline === -1 ? text.length : newline;
  return { to: text.charCodeAt(end - 1) === RETURN ? end - 1 : end, next: end + 1 };
}

/** Non-blank lines of a file. */
export async function* linesOf(file: SourceFile, tally: Tally): AsyncGenerator<Line> {
  let line = 1;
  for await (const text of textsOf(file, tally, () => line)) {
    for (let from = 0; from < text.length; line++) {
      const { to, next } = lineFrom(text, from);
      const content = text.slice(from, to);
      if (content.trim() !== '') yield { line, text: content };
      from = next;
    }
  }
}

/** Row of a table: its cells in the order of the requested columns. */
export interface Row<C extends string> {
  readonly line: number;
  readonly cells: Readonly<Record<C, string>>;
}

interface Table<C extends string> {
  readonly columns: readonly C[];
  readonly delimiter: ',' | '\t';
  /** Without a header the columns are the requested ones. */
  readonly hasHeader: boolean;
}

/**
 * Rows of a table with these columns, in batches: a generator step per row would double the time. Other columns are
 * skipped. A row with another number of cells than the header is bad. Throws `workload.invalid` for a missing column.
 */
export async function* tableOf<C extends string>(
  file: SourceFile,
  table: Table<C>,
  tally: Tally,
): AsyncGenerator<readonly Row<C>[]> {
  const { columns, delimiter, hasHeader } = table;
  const cellsIn = await splitter(delimiter);
  let width = columns.length;
  let named = hasHeader ? null : cellsNamed(columns, [...columns.keys()]);
  let line = 1;
  for await (const text of textsOf(file, tally, () => line)) {
    const rows: Row<C>[] = [];
    const plainCells = plainCellsIn(text, delimiter);
    for (let next = 0; next < text.length; line++) {
      const from = next;
      const end = lineFrom(text, from);
      next = end.next;
      if (from === end.to) continue;
      const cells = plainCells(from, end.to) ?? cellsIn(text.slice(from, end.to));
      // A row of blanks is an empty line.
      if (cells?.isBlank() === true) continue;
      if (cells === null) tally.bad(file.label, line, `a line that is no row; got ${quote(text.slice(from, end.to))}`);
      else if (named === null) {
        width = cells.count;
        named = cellsNamed(columns, placesOf(cells.all(), columns, file));
      } else if (cells.count !== width) {
        tally.bad(file.label, line, `a row has ${width} cells; got ${cells.count}`);
      } else rows.push({ line, cells: named(cells) });
    }
    yield rows;
  }
}

/** Cells of a line in one text, with a separator between them. */
class Cells {
  readonly #text: string;
  /** Position before the first cell, then the end of each, from `first` on. */
  readonly #ends: readonly number[];
  readonly #first: number;
  readonly count: number;

  constructor(text: string, ends: readonly number[], first: number, count: number) {
    this.#text = text;
    this.#ends = ends;
    this.#first = first;
    this.count = count;
  }

  at(place: number): string {
    const i = this.#first + place;
    return this.#text.slice((this.#ends[i] ?? 0) + 1, this.#ends[i + 1]);
  }

  /** True for a single empty cell. */
  isBlank(): boolean {
    return this.count === 1 && this.at(0) === '';
  }

  all(): string[] {
    return Array.from({ length: this.count }, (_, place) => this.at(place));
  }
}

/** Cells by column name; `places`: their positions. Text is made on access, which most cells never see. */
function cellsNamed<C extends string>(
  columns: readonly C[],
  places: readonly number[],
): (cells: Cells) => Readonly<Record<C, string>> {
  class Named {
    readonly cells: Cells;
    constructor(cells: Cells) {
      this.cells = cells;
    }
  }
  columns.forEach((column, i) => {
    const place = places[i] ?? 0;
    Object.defineProperty(Named.prototype, column, {
      get(this: Named): string {
        return this.cells.at(place);
      },
    });
  });
  return (cells) => new Named(cells) as unknown as Readonly<Record<C, string>>;
}

const QUOTE = 34;
const SPACE = 32;
const LAST_OF_ASCII = 126;

/**
 * Cells in [from, to) of the text by delimiters alone. Null for lines with quotes, blanks or non-ASCII letters (some of
 * which are blanks): traces hardly have any.
 */
function plainCellsIn(text: string, delimiter: string): (from: number, to: number) => Cells | null {
  const ends: number[] = [];
  const between = delimiter.charCodeAt(0);
  return (from, to) => {
    const first = ends.length;
    ends.push(from - 1);
    for (let i = from; i < to; i++) {
      const code = text.charCodeAt(i);
      if (code === between) ends.push(i);
      else if (code <= SPACE || code > LAST_OF_ASCII || code === QUOTE) {
        ends.length = first;
        return null;
      }
    }
    ends.push(to);
    return new Cells(text, ends, first, ends.length - first - 1);
  };
}

/** Trimmed cells of any line; null for unbalanced quotes. Cells of several lines are not supported. */
async function splitter(delimiter: string): Promise<(text: string) => Cells | null> {
  const { parse } = await import('csv-parse/sync');
  const cellsIn = (text: string): readonly string[] | null => {
    if (!text.includes('"')) return text.split(delimiter);
    try {
      return parse(text, { delimiter })[0] ?? null;
    } catch {
      return null;
    }
  };
  return (text) => {
    const cells = cellsIn(text)?.map((cell) => cell.trim());
    if (cells === undefined) return null;
    const ends = [-1];
    for (const cell of cells) ends.push((ends.at(-1) ?? -1) + 1 + cell.length);
    return new Cells(cells.join('\n'), ends, 0, cells.length);
  };
}

function placesOf(header: readonly string[], columns: readonly string[], file: SourceFile): readonly number[] {
  const missing = columns.filter((c) => !header.includes(c));
  if (missing.length > 0) {
    throw new EbbError('workload.invalid', {
      what: `the table lacks ${missing.length === 1 ? 'a column' : 'columns'}: ${missing.join(', ')}`,
      at: file.label,
      got: header.join(',').slice(0, 200),
    });
  }
  return columns.map((c) => header.indexOf(c));
}

/** True if the first line of a file is a header with these columns. */
export function hasColumns(head: string, columns: readonly string[]): boolean {
  const first = (head.split(/\r?\n/, 1)[0] ?? '').split(',').map((c) => c.trim());
  return columns.every((c) => first.includes(c));
}

/** Number as written; null for an empty cell, NaN for other text. */
export function numberIn(text: string): number | null {
  if (text === '') return null;
  const n = Number(text);
  return Number.isFinite(n) ? n : NaN;
}

/** Number >= 0; null otherwise. */
export function amountIn(text: string): number | null {
  const n = numberIn(text);
  return n !== null && n >= 0 ? n : null;
}
