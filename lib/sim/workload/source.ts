import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import { EbbError } from '../../kernel/errors.ts';
import { quote, type Tally } from './tally.ts';

/** A file of a workload. */
export interface SourceFile {
  readonly path: string;
  /** As messages name it: relative to what the user gave. */
  readonly label: string;
  readonly gzip: boolean;
  /** First characters, decompressed: by them the format is found. */
  readonly head: string;
}

const HEAD_BYTES = 65_536;
/** Decompressed at once: with zlib's own 16 KiB half the time goes into passing pieces on. */
const CHUNK_BYTES = 262_144;
/** A line longer than this is no line of a trace (the longest known, a DAG with all its measurements, has 0.3 MB). */
const MAX_LINE_CHARACTERS = 64 * 2 ** 20;

/** The files that a path names, sorted by path. Throws EbbError `workload.invalid` when there is none. */
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
    // Z_SYNC_FLUSH (2): the piece ends amid the compressed stream, which is no fault here.
    return { head: textOf(gunzipSync(bytes, { finishFlush: 2 }).subarray(0, HEAD_BYTES)), gzip };
  } catch {
    return { head: '', gzip };
  }
}

const textOf = (bytes: Buffer): string => bytes.toString('utf8').replace(/^\uFEFF/, '');

/**
 * The bytes of a file, decompressed. A file that is damaged (an unfinished gzip) ends where the damage begins: that is
 * counted as one bad line at the place `line()` tells, and what came before is used.
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
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** The lines of a file that are not empty, in batches of what is decompressed at once. */
async function* lineBatches(file: SourceFile, tally: Tally): AsyncGenerator<readonly Line[]> {
  const decoder = new TextDecoder();
  let rest = '';
  let line = 1;
  const taken = (parts: readonly string[]): Line[] => {
    const lines: Line[] = [];
    for (const part of parts) {
      const text = part.endsWith('\r') ? part.slice(0, -1) : part;
      if (text !== '') lines.push({ line, text });
      line++;
    }
    return lines;
  };
  for await (const piece of bytesOf(file, tally, () => line)) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield taken(parts);
    if (rest.length > MAX_LINE_CHARACTERS) {
      tally.bad(file.label, line, 'a line is too long; the rest of the file is left out');
      return;
    }
  }
  yield taken([rest + decoder.decode()]);
}

/** The lines of a file that are not empty. */
export async function* linesOf(file: SourceFile, tally: Tally): AsyncGenerator<Line> {
  for await (const lines of lineBatches(file, tally)) yield* lines;
}

/** A row of a table: its cells in the order of the columns asked for. */
export interface Row<C extends string> {
  readonly line: number;
  readonly cells: Readonly<Record<C, string>>;
}

interface Table<C extends string> {
  readonly columns: readonly C[];
  readonly delimiter: ',' | '\t';
  /** Without a header the columns are those asked for, in that order. */
  readonly hasHeader: boolean;
}

/**
 * The rows of a table with those columns, in batches (a generator step for each row would double the time). Other columns
 * are passed over; a row with another number of cells than the header is counted as bad. Throws `workload.invalid` when
 * the header lacks a column.
 */
export async function* tableOf<C extends string>(
  file: SourceFile,
  table: Table<C>,
  tally: Tally,
): AsyncGenerator<readonly Row<C>[]> {
  const { columns, delimiter, hasHeader } = table;
  const cellsIn = await splitter(delimiter);
  let width = columns.length;
  let named = hasHeader
    ? null
    : cellsNamed(
        columns,
        columns.map((_, i) => i),
      );
  for await (const lines of lineBatches(file, tally)) {
    const rows: Row<C>[] = [];
    for (const { line, text } of lines) {
      const cells = cellsIn(text);
      if (cells === null) tally.bad(file.label, line, `a line that is no row; got ${quote(text)}`);
      else if (named === null) {
        width = cells.length;
        named = cellsNamed(columns, placesOf(cells, columns, file));
      } else if (cells.length !== width) {
        tally.bad(file.label, line, `a row has ${width} cells; got ${cells.length}`);
      } else rows.push({ line, cells: named(BLANK.test(text) ? cells.map((cell) => cell.trim()) : cells) });
    }
    yield rows;
  }
}

const BLANK = /\s/;

/**
 * Cells of a line by the names of their columns, `places` being where each column is. A name is looked up where it is asked for:
 * a record made for each row takes as long as all the rest of reading it.
 */
function cellsNamed<C extends string>(
  columns: readonly C[],
  places: readonly number[],
): (cells: readonly string[]) => Readonly<Record<C, string>> {
  class Cells {
    readonly ofLine: readonly string[];
    constructor(ofLine: readonly string[]) {
      this.ofLine = ofLine;
    }
  }
  columns.forEach((column, i) => {
    const place = places[i] ?? 0;
    Object.defineProperty(Cells.prototype, column, {
      get(this: Cells): string {
        return this.ofLine[place] ?? '';
      },
    });
  });
  return (cells) => new Cells(cells) as unknown as Readonly<Record<C, string>>;
}

/**
 * The cells of a line; null for a line with quotes that do not match. Traces hardly ever quote, and a line without quotes
 * is its cells between delimiters: csv-parse, which takes five times as long, reads the others. A cell of two lines is none.
 */
async function splitter(delimiter: string): Promise<(text: string) => readonly string[] | null> {
  const { parse } = await import('csv-parse/sync');
  return (text) => {
    if (!text.includes('"')) return text.split(delimiter);
    try {
      return parse(text, { delimiter })[0] ?? null;
    } catch {
      return null;
    }
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

/** Whether the first line of a file is a header with these columns. */
export function hasColumns(head: string, columns: readonly string[]): boolean {
  const first = (head.split(/\r?\n/, 1)[0] ?? '').split(',').map((c) => c.trim());
  return columns.every((c) => first.includes(c));
}

/** A number as written; null for an empty cell, NaN for anything else that is none. */
export function numberIn(text: string): number | null {
  if (text === '') return null;
  const n = Number(text);
  return Number.isFinite(n) ? n : NaN;
}

/** A number >= 0; null for everything else. */
export function amountIn(text: string): number | null {
  const n = numberIn(text);
  return n !== null && n >= 0 ? n : null;
}
