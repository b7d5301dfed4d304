import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, gunzipSync, type Gunzip } from 'node:zlib';

/**
 * Readers of the raw formats of `ebb market import`. Each streams one file into a sink and reports every unusable line;
 * none gives up on a bad line. csv-parse and stream-json are loaded on first use.
 */
export interface RawSink {
  /** False when the row's type is unknown: the sink has reported it. */
  price(
    at: RowRef,
    row: { readonly type: string; readonly zone: string; readonly atMs: number; readonly usd: number },
  ): void;
  availability(
    at: RowRef,
    row: { readonly type: string; readonly zone: string; readonly atMs: number; readonly up: boolean },
  ): void;
  onDemand(row: { readonly type: string; readonly zone: string; readonly usd: number }): void;
  /** Series end here: the market lasts until then even when nothing changes. */
  lastsUntil(atMs: number): void;
  /** A line that cannot be used. */
  bad(at: RowRef, what: string, got: string): void;
  /** A line that is fine and not wanted, e.g. another product. */
  skipped(why: string): void;
}

/** `FILE:LINE`, or `FILE#RECORD` where a format has no lines. */
export type RowRef = string;

export type RawFormat = 'price-csv' | 'on-demand-csv' | 'aws-json' | 'availability-json';

export interface RawFile {
  readonly path: string;
  /** Name in messages: relative to the user's path. */
  readonly label: string;
  readonly format: RawFormat;
  readonly gzip: boolean;
}

/** First characters of a file, decompressed. */
export async function peek(path: string): Promise<{ readonly head: string; readonly gzip: boolean }> {
  const handle = createReadStream(path, { end: 65_535 });
  const chunks: Buffer[] = [];
  for await (const chunk of handle) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const gzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!gzip) return { head: bytes.toString('utf8', 0, 4096), gzip };
  try {
    // Z_SYNC_FLUSH (2): the piece ends amid the compressed stream, which is no fault here.
    return { head: gunzipSync(bytes, { finishFlush: 2 }).toString('utf8', 0, 4096), gzip };
  } catch {
    return { head: '', gzip };
  }
}

/** The raw format that a file's beginning shows; null for any other file. */
export function detect(head: string): RawFormat | null {
  const text = head.replace(/^\uFEFF/, '').trimStart();
  const firstLine = text.slice(0, text.search(/[\r\n]|$/)).trim();
  if (/^timestamp_utc,az,instance_type,price_usd_hr$/i.test(firstLine)) return 'price-csv';
  if (/^az,instance_type,on_demand_usd_hr$/i.test(firstLine)) return 'on-demand-csv';
  if (text.startsWith('{') && text.includes('"SpotPriceHistory"')) return 'aws-json';
  if (text.startsWith('{') && text.includes('"gap_seconds"')) return 'availability-json';
  return null;
}

/** Reads one file into the sink. Rejects for a damaged file; lines read before are in the sink. */
export async function readRaw(file: RawFile, sink: RawSink): Promise<void> {
  switch (file.format) {
    case 'price-csv':
      return readCsv(file, 4, (cells, at) => priceRow(cells, at, sink), sink);
    case 'on-demand-csv':
      return readCsv(file, 3, (cells, at) => onDemandRow(cells, at, sink), sink);
    case 'aws-json':
      return readAwsJson(file, sink);
    case 'availability-json':
      return readAvailability(file, sink);
  }
}

function source(file: RawFile): (Readable | Gunzip)[] {
  const bytes = createReadStream(file.path);
  return file.gzip ? [bytes, createGunzip()] : [bytes];
}

async function readCsv(
  file: RawFile,
  columns: number,
  row: (cells: readonly string[], at: RowRef) => void,
  sink: RawSink,
): Promise<void> {
  const { parse } = await import('csv-parse');
  let header = true;
  const parser = parse({
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    trim: true,
    // Rows are used as they are parsed and never queued, which is four times as fast as a stream of records.
    on_record: (cells: string[], { lines }: { lines: number }) => {
      const at = `${file.label}:${lines}`;
      if (header) header = false;
      else if (cells.length === columns) row(cells, at);
      else sink.bad(at, `a row has ${columns} columns`, `${cells.length}: ${shorten(cells.join(','))}`);
      return null;
    },
  });
  parser.on('skip', (error: Error & { lines?: number }) => {
    sink.bad(`${file.label}:${error.lines ?? '?'}`, 'a line that is not CSV', shorten(error.message));
  });
  const discard = new Writable({ objectMode: true, write: (_chunk, _encoding, done) => done() });
  await pipeline([...source(file), parser, discard] as unknown as [Readable, Writable]);
}

const ZONE = /^[a-z]{2}(-[a-z]+)+-\d[a-z]$/;
/** Some series of availability are of Google's zones: as an exercise their spot is as good. */
const GOOGLE_ZONE = /^[a-z]+(-[a-z]+)+\d-[a-z]$/;
const TYPE = /^[a-z][a-z0-9-]*\.[a-z0-9-]+$/;

/** Fault in the fields that every row has; null: none. */
function fault(type: string, zone: string): readonly [what: string, got: string] | null {
  if (!ZONE.test(zone)) return ['a zone is named like us-east-1a', quote(zone)];
  if (!TYPE.test(type)) return ['an instance type is named like c5.large', quote(type)];
  return null;
}

/** Dollars of a text: a number > 0; null otherwise. */
function dollars(text: string): number | null {
  const usd = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(usd) && usd > 0 && usd < 100_000 ? usd : null;
}

const ISO = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$/;

/** Milliseconds of an ISO-8601 instant with its offset; null otherwise. */
function instant(text: string): number | null {
  const ms = ISO.test(text) ? Date.parse(text) : NaN;
  return Number.isFinite(ms) ? ms : null;
}

function checkedPrice(
  sink: RawSink,
  at: RowRef,
  row: { readonly time: string; readonly zone: string; readonly type: string; readonly price: string },
): void {
  const wrong = fault(row.type, row.zone);
  const atMs = instant(row.time);
  const usd = dollars(row.price);
  if (atMs === null) sink.bad(at, 'a time is an ISO-8601 instant with offset', quote(row.time));
  else if (wrong !== null) sink.bad(at, ...wrong);
  else if (usd === null) sink.bad(at, 'a price is a number of US dollars above 0', quote(row.price));
  else sink.price(at, { type: row.type, zone: row.zone, atMs, usd });
}

function priceRow(cells: readonly string[], at: RowRef, sink: RawSink): void {
  const [time = '', zone = '', type = '', price = ''] = cells;
  checkedPrice(sink, at, { time, zone, type, price });
}

function onDemandRow(cells: readonly string[], at: RowRef, sink: RawSink): void {
  const [zone = '', type = '', price = ''] = cells;
  const wrong = fault(type, zone);
  const usd = dollars(price);
  if (wrong !== null) sink.bad(at, ...wrong);
  else if (usd === null) sink.bad(at, 'a price is a number of US dollars above 0', quote(price));
  else sink.onDemand({ type, zone, usd });
}

/**
 * Rows of other products (Windows, SUSE, EC2-Classic apart from VPC) are other markets; this one is in all our data.
 */
const PRODUCT = 'Linux/UNIX';

/**
 * `aws ec2 describe-spot-price-history` output: one or more documents in a file, each with a SpotPriceHistory array.
 */
async function readAwsJson(file: RawFile, sink: RawSink): Promise<void> {
  const [{ parser }, { pick }, { streamValues }] = await Promise.all([
    import('stream-json'),
    import('stream-json/filters/pick.js'),
    import('stream-json/streamers/stream-values.js'),
  ]);
  let record = 0;
  const use = new Writable({
    objectMode: true,
    write: ({ value }: { value: unknown }, _encoding, done) => {
      awsRecord(value, `${file.label}#${++record}`, sink);
      done();
    },
  });
  // `packValues` alone: each record is small, its pieces are not wanted.
  const tokens = parser.asStream({ jsonStreaming: true, streamValues: false, packValues: true });
  const records = pick.asStream({ filter: /^SpotPriceHistory\.\d+$/ });
  await pipeline([...source(file), tokens, records, streamValues.asStream(), use] as unknown as [Readable, Writable]);
}

function awsRecord(value: unknown, at: RowRef, sink: RawSink): void {
  if (typeof value !== 'object' || value === null) {
    sink.bad(at, 'a record of SpotPriceHistory is an object', quote(shown(value)));
    return;
  }
  const field = (name: string): string => {
    const found = (value as Record<string, unknown>)[name];
    return typeof found === 'string' ? found : found === undefined ? '' : String(JSON.stringify(found));
  };
  const product = field('ProductDescription');
  if (product !== PRODUCT && product !== '') {
    sink.skipped(`product ${product}, not ${PRODUCT}`);
    return;
  }
  checkedPrice(sink, at, {
    time: field('Timestamp'),
    zone: field('AvailabilityZone'),
    type: field('InstanceType'),
    price: field('SpotPrice'),
  });
}

/**
 * Instance types behind the machine names of the spot availability series: `<accelerator or CPU>_<count>`.
 * k80 and v100 are the P2 and P3 families with that many GPUs; `intel_64` (64 vCPUs of Intel) is taken as m5.16xlarge,
 * and Google's `c3-88` (88 vCPUs of Intel's fourth Xeon generation) as c7i.24xlarge, the nearest of the same processor.
 */
const SERIES_TYPES: Readonly<Record<string, string>> = {
  k80_1: 'p2.xlarge',
  k80_8: 'p2.8xlarge',
  v100_1: 'p3.2xlarge',
  v100_4: 'p3.8xlarge',
  v100_8: 'p3.16xlarge',
  intel_64: 'm5.16xlarge',
  'c3-88': 'c7i.24xlarge',
};

/**
 * A series of the "spot availability" data set: {"metadata": {"gap_seconds": G}, "data": [n0, n1, ...]}, n nodes
 * obtainable (or alive) at tick k; all of them = available. Zone and machine are in the file's name
 * (`us-west-2a_v100_1.json`), the date of the first tick in the folder above (`aws-10-26-2022`, taken at 00:00 UTC),
 * the node count one further up (`4-node`).
 */
async function readAvailability(file: RawFile, sink: RawSink): Promise<void> {
  const bytes = await readFile(file.path);
  const text = (file.gzip ? gunzipSync(bytes) : bytes).toString('utf8');
  const document = JSON.parse(text) as { metadata?: { gap_seconds?: unknown }; data?: unknown };
  const gapS = document.metadata?.gap_seconds;
  const series = seriesOf(file.path);
  if (typeof series === 'string') return sink.bad(file.label, series, quote(basename(file.path)));
  if (typeof gapS !== 'number' || !(gapS > 0)) {
    return sink.bad(file.label, 'metadata.gap_seconds is a number of seconds above 0', quote(shown(gapS)));
  }
  if (!Array.isArray(document.data) || document.data.length === 0) {
    return sink.bad(file.label, 'data is a list of node counts', quote(typeof document.data));
  }
  readTicks(file, sink, { ...series, gapMs: gapS * 1000, counts: document.data as readonly unknown[] });
}

interface Series {
  readonly type: string;
  readonly zone: string;
  readonly startMs: number;
  /** Null: as many as the series ever has. */
  readonly nodes: number | null;
}

function readTicks(
  file: RawFile,
  sink: RawSink,
  series: Series & { readonly gapMs: number; readonly counts: readonly unknown[] },
): void {
  const valid = (n: unknown): n is number => typeof n === 'number' && Number.isInteger(n) && n >= 0;
  const full = series.nodes ?? series.counts.filter(valid).reduce((most, n) => Math.max(most, n), 1);
  let before: boolean | null = null;
  for (const [tick, n] of series.counts.entries()) {
    const at = `${file.label}#${tick + 1}`;
    if (!valid(n)) {
      sink.bad(at, 'a node count is a whole number >= 0', quote(shown(n)));
      continue;
    }
    const up = n >= full;
    if (up !== before) sink.availability(at, { ...series, atMs: series.startMs + tick * series.gapMs, up });
    before = up;
  }
  const endMs = series.startMs + series.counts.length * series.gapMs;
  // Nothing is known beyond a series, so no capacity is assumed there.
  if (before === true) sink.availability(file.label, { ...series, atMs: endMs, up: false });
  sink.lastsUntil(endMs);
}

/** Type, zone, date and node count from a path; the reason as text when they cannot be had. */
function seriesOf(path: string): Series | string {
  const name = /^(.+?)_([a-z0-9-]+?(?:_\d+)?)\.json(?:\.gz)?$/i.exec(basename(path));
  const [, zone = '', machine = ''] = name ?? [];
  if (name === null) return 'a series is named ZONE_MACHINE_COUNT.json';
  if (!ZONE.test(zone) && !GOOGLE_ZONE.test(zone)) return 'a series is of a zone such as us-west-2a or us-central1-a';
  const type = SERIES_TYPES[machine];
  if (type === undefined) return `a series is of one of ${Object.keys(SERIES_TYPES).join(', ')}`;
  const folder = dirname(path);
  const date = /(\d{2})-(\d{2})-(\d{4})$/.exec(basename(folder));
  if (date === null) return 'a series lies in a folder whose name ends in its date, MM-DD-YYYY';
  const nodes = /^(\d+)-node$/.exec(basename(dirname(folder)))?.[1];
  return {
    type,
    zone,
    startMs: Date.UTC(Number(date[3]), Number(date[1]) - 1, Number(date[2])),
    nodes: nodes === undefined ? null : Number(nodes),
  };
}

/** JSON of any value; empty for undefined, which JSON does not know. */
const shown = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value));
const quote = (text: string): string => (text === '' ? 'nothing' : `'${shorten(text)}'`);
const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 77)}...` : text);
