import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { epochMs, isoOf, type EpochMs } from '../../../kernel/units.ts';
import { builtInCatalogue, type Catalogue } from '../../../market/catalogue.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import {
  isSqlite,
  MARKET_FILE_VERSION,
  MarketWriter,
  readMarket,
  type MarketIdentity,
  type WrittenMarket,
} from './file.ts';
import { detect, peek, readRaw, type RawFile, type RawSink } from './formats.ts';
import { onSuddenEnd } from '../sudden-end.ts';
import { onDemandUsdOf } from '../../../domain/pool.ts';

/**
 * Flat spot price, as a fraction of on-demand, for series that tell availability and no price. 0.3 is where p2 and p3
 * stood in the 2021 price trace (docs/market.md).
 */
export const FLAT_SPOT_FRACTION = 0.3;
/** Bad lines that are reported one by one; all are counted. */
export const MAX_ISSUES = 20;

export interface ImportOptions {
  readonly catalogue?: Catalogue;
  /** Name of the market; default: the source's base name. */
  readonly name?: string;
  readonly maxIssues?: number;
  /** Called now and then with the rows read so far. */
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  readonly file: string;
  readonly fileIndex: number;
  readonly files: number;
  readonly rows: number;
}

export interface ImportSummary extends WrittenMarket {
  readonly path: string;
  readonly files: number;
  /** Other files of the folder, which are none of the known formats. */
  readonly ignoredFiles: number;
  /** Rows that were used. */
  readonly rows: number;
  readonly badLines: number;
  /** The first bad lines, at most `maxIssues`. */
  readonly issues: readonly Issue[];
  /** Rows left out on purpose, by reason. */
  readonly skipped: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
}

/**
 * Converts a file or a folder of raw market data into one market file at `target`, streaming. Bad lines are counted,
 * reported up to a bound, and left out. Throws `market.invalid` when there is nothing to read or nothing usable; then
 * `target` is not touched.
 */
export async function importMarket(
  sourcePath: string,
  target: string,
  options: ImportOptions = {},
): Promise<ImportSummary> {
  const { files, ignored } = await rawFiles(sourcePath);
  if (files.length === 0) throw nothingToImport(sourcePath, ignored);
  const writer = new MarketWriter(target);
  const collector = new Collector(writer, options);
  const unwatch = onSuddenEnd(() => writer.abort());
  try {
    for (const [i, file] of files.entries()) {
      collector.begin(file.label, i, files.length);
      await readRaw(file, collector).catch((error: unknown) => {
        collector.bad(file.label, 'the file is damaged, the rest of it is left out', String((error as Error).message));
      });
    }
    return collector.finish(sourcePath, target, { files: files.length, ignoredFiles: ignored });
  } catch (error) {
    writer.abort();
    throw error;
  } finally {
    unwatch();
  }
}

function nothingToImport(path: string, ignored: number): EbbError {
  const { size } = statSync(path);
  const isEmpty = ignored === 0 || (size === 0 && !statSync(path).isDirectory());
  return new EbbError('market.invalid', {
    what: isEmpty ? 'there is no market data: it is empty' : 'no market data in a known format',
    at: path,
    got: isEmpty ? `an empty ${ignored === 0 ? 'folder' : 'file'}` : `${ignored} other file${ignored === 1 ? '' : 's'}`,
    allowed: 'price CSV, describe-spot-price-history JSON, spot availability JSON, each also gzipped',
    next: 'See `ebb market formats`.',
  });
}

/** Collector between readers and writer: knows types, counts, gathers faults. */
class Collector implements RawSink {
  readonly #writer: MarketWriter;
  readonly #options: ImportOptions;
  readonly #catalogue: Catalogue;
  readonly #ids = new Map<string, number | null>();
  readonly #onDemand = new Map<string, number>();
  readonly #issues: Issue[] = [];
  readonly #skipped = new Map<string, number>();
  #badLines = 0;
  #rows = 0;
  #untilMs = -Infinity;
  #file = { file: '', fileIndex: 0, files: 0 };

  constructor(writer: MarketWriter, options: ImportOptions) {
    this.#writer = writer;
    this.#options = options;
    this.#catalogue = options.catalogue ?? builtInCatalogue();
  }

  begin(file: string, fileIndex: number, files: number): void {
    this.#file = { file, fileIndex, files };
    this.#report();
  }

  price(at: string, row: { type: string; zone: string; atMs: number; usd: number }): void {
    const id = this.#market(at, row);
    if (id === null) return;
    this.#writer.price(id, row.atMs, row.usd);
    this.#count();
  }

  availability(at: string, row: { type: string; zone: string; atMs: number; up: boolean }): void {
    const id = this.#market(at, row);
    if (id === null) return;
    this.#writer.availability(id, row.atMs, row.up);
    this.#count();
  }

  onDemand(row: { type: string; zone: string; usd: number }): void {
    this.#onDemand.set(`${row.type}/${row.zone}`, row.usd);
  }

  lastsUntil(atMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, atMs);
  }

  bad(at: string, what: string, got: string): void {
    this.#badLines++;
    if (this.#issues.length < (this.#options.maxIssues ?? MAX_ISSUES)) {
      this.#issues.push({ at, message: `${what}; got ${got}` });
    }
  }

  skipped(why: string): void {
    this.#skipped.set(why, (this.#skipped.get(why) ?? 0) + 1);
  }

  finish(source: string, target: string, counts: { files: number; ignoredFiles: number }): ImportSummary {
    const startMs = this.#writer.startMs();
    if (startMs === null) {
      this.#writer.abort();
      throw new EbbError('market.invalid', {
        what: 'no usable line in the market data',
        at: source,
        got: `${this.#badLines} bad lines, ${[...this.#skipped.values()].reduce((a, b) => a + b, 0)} left out`,
        next: 'See `ebb market formats` for what a line looks like.',
        issues: this.#issues,
      });
    }
    const notes = this.#notes(epochMs(startMs));
    const written = this.#writer.finish(
      { name: this.#options.name ?? basename(resolve(source)), source: basename(resolve(source)), notes },
      (market) => this.#onDemandPrice(market, epochMs(startMs)),
      { untilMs: this.#untilMs },
    );
    return {
      ...written,
      ...counts,
      path: target,
      rows: this.#rows,
      badLines: this.#badLines,
      issues: this.#issues,
      skipped: Object.fromEntries(this.#skipped),
      notes,
    };
  }

  /** Gives series without prices a flat price, and notes all assumptions. */
  #notes(start: EpochMs): string[] {
    const notes: string[] = [];
    const flat = this.#writer.unpriced();
    for (const { id, market, firstMs } of flat) {
      this.#writer.price(id, firstMs, FLAT_SPOT_FRACTION * this.#onDemandPrice(market, start));
    }
    if (flat.length > 0) {
      notes.push(
        `Prices of ${flat.length} market${flat.length === 1 ? '' : 's'} are assumed: a flat ${FLAT_SPOT_FRACTION} of on-demand; the source tells availability only.`,
      );
    }
    notes.push(
      this.#onDemand.size > 0
        ? `On-demand prices of ${this.#onDemand.size} markets from the source, of the others from the catalogue '${this.#catalogue.name}'.`
        : `On-demand prices from the catalogue '${this.#catalogue.name}' (us-east-1, Linux) as of ${isoOf(start).slice(0, 10)}.`,
    );
    return notes;
  }

  #onDemandPrice(market: MarketIdentity, at: EpochMs): number {
    const given = this.#onDemand.get(`${market.type.name}/${market.zone}`);
    if (given !== undefined) return given;
    const entry = this.#catalogue.entry(market.type.name, at);
    return entry === null ? 0 : onDemandUsdOf(entry);
  }

  /** Null for a type the catalogue lacks: its first row is reported, all are counted. */
  #market(at: string, { type, zone }: { type: string; zone: string }): number | null {
    const key = `${type}/${zone}`;
    let id = this.#ids.get(key);
    if (id === undefined) {
      const entry = this.#catalogue.entry(type, epochMs(0));
      id = entry === null ? null : this.#writer.market({ type: entry.type, zone });
      this.#ids.set(key, id);
      if (id === null) this.bad(at, 'no such instance type in the catalogue (give one with --catalogue)', `'${type}'`);
    } else if (id === null) this.#badLines++;
    return id;
  }

  #count(): void {
    this.#rows++;
    if (this.#rows % 20_000 === 0) this.#report();
  }

  #report(): void {
    this.#options.onProgress?.({ ...this.#file, rows: this.#rows });
  }
}

/**
 * Files to read, sorted by path, and how many others there are. Throws `market.invalid` when the path does not exist.
 */
async function rawFiles(path: string): Promise<{ files: readonly RawFile[]; ignored: number }> {
  const paths = listFiles(path);
  const folder = statSync(path).isDirectory();
  const files: RawFile[] = [];
  for (const file of paths) {
    const { head, gzip } = await peek(file);
    const format = detect(head);
    if (format !== null)
      files.push({ path: file, label: folder ? relative(path, file) : basename(file), format, gzip });
  }
  return { files, ignored: paths.length - files.length };
}

function listFiles(path: string): readonly string[] {
  if (!existsSync(path)) {
    throw new EbbError('market.invalid', { what: 'no such file or folder', at: path, next: 'Check the path.' });
  }
  if (!statSync(path).isDirectory()) return [resolve(path)];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => resolve(join(entry.parentPath, entry.name)))
    .sort();
}

/**
 * A market from a user's path: a market file, or raw data (file or folder), which is imported once into `cacheDir`
 * under the digest of its content and found there the next time. Throws `market.invalid`.
 */
export async function openMarket(
  path: string,
  cacheDir: string,
  options: ImportOptions = {},
): Promise<{
  readonly trace: MarketTrace;
  readonly notes: readonly string[];
  readonly imported: ImportSummary | null;
}> {
  const files = listFiles(path);
  if (!statSync(path).isDirectory() && (isSqlite(path) || path.endsWith('.ebbmarket'))) {
    const { trace, meta } = readMarket(path);
    return { trace, notes: meta.notes, imported: null };
  }
  const cached = join(cacheDir, `${await digest(files, path, options)}.ebbmarket`);
  mkdirSync(cacheDir, { recursive: true });
  const kept = existsSync(cached) ? readable(cached) : null;
  const imported = kept === null ? await importMarket(path, cached, options) : null;
  const { trace, meta } = kept ?? readMarket(cached);
  return { trace, notes: meta.notes, imported };
}

/** A cached market; null for a damaged one, which is then made anew. */
function readable(cached: string): ReturnType<typeof readMarket> | null {
  try {
    return readMarket(cached);
  } catch (error) {
    if (error instanceof EbbError && error.code === 'market.invalid') return null;
    throw error;
  }
}

/** Identity of raw data by names and content, and by the other inputs to the result. */
async function digest(files: readonly string[], root: string, options: ImportOptions): Promise<string> {
  const hash = createHash('sha256').update(`ebbmarket ${MARKET_FILE_VERSION}\0${options.name ?? ''}\0`);
  hash.update(`${options.catalogue?.name ?? ''}\0`);
  for (const file of files) {
    hash.update(`${relative(root, file)}\0`);
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  }
  return hash.digest('hex').slice(0, 32);
}
