import { writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import picocolors from 'picocolors';
import type { Plot } from 'simple-ascii-chart';
import { EbbError } from '../../kernel/errors.ts';
import { epochMs, isoOf, raw } from '../../kernel/units.ts';
import { vcpusOf, type Pool, onDemandUsdOf } from '../../domain/pool.ts';
import { builtInCatalogue, type Catalogue } from '../../market/catalogue.ts';
import {
  DEFAULT_MARKET_DAYS,
  DEFAULT_MARKET_START,
  DEFAULT_MARKET_TYPES,
  DEFAULT_MARKET_ZONES,
  DEFAULT_SEED,
  defaultMarket,
  defaultMarketStartMs,
  turbulentStart,
} from '../../market/default-market.ts';
import { generateMarket, type MarketSpec, type Regime } from '../../market/generate.ts';
import { priceAt } from '../../market/price-steps.ts';
import { periods, profilePrices, type Window } from '../../market/statistics.ts';
import { quantileOf } from '../../market/quantiles.ts';
import { spanOf, type MarketTrace } from '../../market/trace.ts';
import { poolSeries, type PoolSeries } from '../../drivers/local/market/chart.ts';
import { writeMarket } from '../../drivers/local/market/file.ts';
import {
  importMarket,
  openMarket,
  type ImportProgress,
  type ImportSummary,
} from '../../drivers/local/market/import.ts';
import { plainJson, textFor, visible } from '../../kernel/terminal-text.ts';
import { percent, plural } from '../format.ts';
import { endedByStop, type SignalSource } from '../signals.ts';
import { columnsOf } from '../output.ts';
import { table, type Column } from '../views/text-table.ts';
import type { GenerateFlags, ImportFlags, MarketStreams, ShowFlags } from '../flags/market-flags.ts';

export const day = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
export const number = (n: number): string => n.toLocaleString('en-US');

export function line(streams: MarketStreams, text: string): void {
  streams.stdout.write(`${textFor(streams.stdout, text)}\n`);
}
export function printJson(streams: MarketStreams, value: unknown): void {
  line(streams, plainJson(JSON.stringify(value, null, streams.stdout.isTTY === true ? 2 : undefined)));
}

export async function catalogueOption(path: string | undefined): Promise<{ catalogue?: Catalogue }> {
  if (path === undefined) return {};
  return { catalogue: await (await import('../../drivers/local/market/catalogue.ts')).catalogueFromFile(path) };
}

/** Progress on one line of a terminal, redrawn; elsewhere nothing is written. */
function progressOf(streams: MarketStreams): {
  readonly onProgress?: (p: ImportProgress) => void;
  readonly clear: () => void;
} {
  if (streams.stderr.isTTY !== true) return { clear: () => undefined };
  return {
    onProgress: (p) => {
      streams.stderr.write(
        `\r\x1b[2Kreading ${visible(p.file)} (${p.fileIndex + 1} of ${p.files}): ${number(p.rows)} rows`,
      );
    },
    clear: () => void streams.stderr.write('\r\x1b[2K'),
  };
}

/** Signals for callers that have none: nothing stops. */
const UNASKED: SignalSource = { on: () => undefined, off: () => undefined };

export const stoppable = <T>(
  { stderr, signals = UNASKED }: MarketStreams,
  said: string,
  work: () => Promise<T>,
): Promise<T> => endedByStop({ note: (text) => void stderr.write(`${textFor(stderr, text)}\n`) }, said, work, signals);

export async function importSource(streams: MarketStreams, source: string, options: ImportFlags): Promise<void> {
  const target = resolve(
    options.output ?? `${basename(resolve(source)).replace(/\.(json|csv)?(\.gz)?$/i, '')}.ebbmarket`,
  );
  const { clear, ...progress } = progressOf(streams);
  let summary: ImportSummary;
  try {
    const catalogue = await catalogueOption(options.catalogue);
    summary = await stoppable(streams, `stopped: ${target} was not written`, () =>
      importMarket(source, target, {
        ...catalogue,
        ...(options.name === undefined ? {} : { name: options.name }),
        ...progress,
        maxIssues: options.maxIssues,
      }),
    );
  } finally {
    clear();
  }
  if (options.json === true) printJson(streams, summary);
  else reportImport(streams, summary);
}

function reportImport(streams: MarketStreams, s: ImportSummary): void {
  for (const issue of s.issues) streams.stderr.write(`${textFor(streams.stderr, `${issue.at}: ${issue.message}`)}\n`);
  const more = s.badLines - s.issues.length;
  if (more > 0) streams.stderr.write(`... and ${number(more)} more\n`);
  line(streams, `${s.path}`);
  line(
    streams,
    `${plural(s.markets, 'market')}, ${plural(s.priceChanges, 'price change')}, ${plural(s.availabilityChanges, 'change')} of availability, ${day(s.startMs)} to ${day(s.endMs)} UTC`,
  );
  line(
    streams,
    `${plural(s.rows, 'row')} used from ${plural(s.files, 'file')}, ${s.badLines} bad, ${s.replaced} replaced by a later row of the same instant`,
  );
  for (const [why, n] of Object.entries(s.skipped)) line(streams, `${number(n)} left out: ${why}`);
  for (const note of s.notes) line(streams, note);
}

function oneOf<T extends string>(option: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((a) => a === given);
  if (found === undefined) {
    throw new EbbError('usage', { what: `--${option} is unknown`, got: given, allowed: allowed.join(', ') });
  }
  return found;
}

export function generate(streams: MarketStreams, options: GenerateFlags): void {
  const seed = options.seed ?? DEFAULT_SEED;
  const trace = generatedTrace(seed, options);
  const path = resolve(options.output);
  const written = writeMarket(path, trace, {
    name: trace.name,
    source: `ebb market generate --seed ${seed}`,
    notes: ['Generated; docs/market.md describes the model and how it compares with real markets.'],
  });
  const startMs = raw(turbulentStart(trace));
  const summary = { path, seed, ...written, turbulentStart: new Date(startMs).toISOString() };
  if (options.json === true) return printJson(streams, summary);
  line(streams, path);
  line(
    streams,
    `${plural(written.markets, 'market')}, ${plural(written.priceChanges, 'price change')}, ${plural(written.availabilityChanges, 'change')} of availability, ${day(written.startMs)} to ${day(written.endMs)} UTC, seed ${seed}`,
  );
  line(streams, `The most turbulent time to start a job: --from ${summary.turbulentStart}`);
}

function generatedTrace(seed: number, options: GenerateFlags): MarketTrace {
  const regime = oneOf('regime', options.regime, ['spiky', 'smooth', 'mixed'] as const);
  const temper = oneOf('temper', options.temper, ['natural', 'turbulent'] as const);
  const catalogue = builtInCatalogue();
  const startMs = options.start === undefined ? DEFAULT_MARKET_START : epochMs(options.start);
  const regimeAt = (i: number): Regime => (regime === 'mixed' ? (i % 2 === 0 ? 'spiky' : 'smooth') : regime);
  const markets = (options.zones ?? DEFAULT_MARKET_ZONES).flatMap((zone, z) =>
    (options.types ?? DEFAULT_MARKET_TYPES).map((type, t): MarketSpec => {
      const entry = catalogue.entry(type, startMs);
      if (entry === null) {
        throw new EbbError('usage', {
          what: 'no such instance type in the built-in catalogue',
          got: type,
          allowed: `one of ${catalogue.types().length} types, such as m5.large`,
        });
      }
      return { entry, zone, regime: regimeAt(z + t) };
    }),
  );
  return generateMarket({
    name: `generated-${seed}`,
    seed,
    startMs,
    days: options.days ?? DEFAULT_MARKET_DAYS,
    markets,
    temper,
  });
}

/** One row of `ebb market show`. */
interface PoolRow {
  readonly pool: string;
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly gpus: number;
  readonly arch: string;
  readonly onDemandUsdPerHour: number;
  readonly minUsdPerHour: number | null;
  readonly medianUsdPerHour: number | null;
  readonly maxUsdPerHour: number | null;
  readonly lastUsdPerHour: number | null;
  readonly changes: number;
  /** Share of the time with the price above on-demand; with capacity. */
  readonly aboveOnDemand: number;
  readonly available: number;
  /** Number of times that the price passes on-demand or capacity ends. */
  readonly interruptions: number;
}

async function opened(streams: MarketStreams, source: string, options: ShowFlags): ReturnType<typeof openMarket> {
  const catalogue = await catalogueOption(options.catalogue);
  return stoppable(streams, 'stopped before the market was read', () =>
    openMarket(resolve(source), resolve(options.cache), catalogue),
  );
}

export async function show(streams: MarketStreams, source: string | undefined, options: ShowFlags): Promise<void> {
  const { trace, notes } =
    source === undefined
      ? { trace: defaultMarket(), notes: ['Generated market: what Ebbtide uses when no market is named.'] }
      : await opened(streams, source, options);
  const window = windowOf(trace, options);
  const pools = selected(trace, options.pool);
  const series = pools.map((pool) => poolSeries(trace, pool, window));
  const rows = series.map((s) => poolRow(trace, s, window));
  const drawn = [...series].sort((a, b) => b.taken.length - a.taken.length).slice(0, options.charts);
  const files = await writeCharts(trace, drawn, options);
  if (options.json === true) {
    printJson(streams, {
      name: trace.name,
      from: new Date(window.fromMs).toISOString(),
      to: new Date(window.toMs).toISOString(),
      notes,
      pools: rows,
      files,
    });
    return;
  }
  const coloured = streams.stdout.isTTY === true && options.color !== false && (process.env['NO_COLOR'] ?? '') === '';
  const start = source === undefined ? `; replay starts ${day(raw(defaultMarketStartMs))}` : '';
  line(streams, `Market ${trace.name}, ${day(window.fromMs)} to ${day(window.toMs)} UTC${start}`);
  for (const note of notes) line(streams, note);
  line(streams, '');
  line(streams, poolTable(rows, coloured, columnsOf(streams.stdout, process.env)));
  if (files.length > 0) {
    for (const file of files) line(streams, `wrote ${file}`);
    return;
  }
  const { default: plot } = await import('simple-ascii-chart');
  for (const s of drawn) {
    line(streams, '');
    line(streams, textChart(s, window, plot, { coloured, columns: chartColumns(streams) }));
  }
}

function windowOf(trace: MarketTrace, options: ShowFlags): Window {
  const { startMs, endMs } = spanOf(trace);
  const window = {
    fromMs: Math.max(startMs, options.from ?? -Infinity),
    toMs: Math.min(endMs, options.to ?? Infinity),
  };
  if (window.fromMs < window.toMs) return window;
  throw new EbbError('usage', {
    what: 'the market has no data between --from and --to',
    got: `${new Date(options.from ?? window.fromMs).toISOString()} to ${new Date(options.to ?? window.toMs).toISOString()}`,
    allowed: `${isoOf(trace.startMs)} to ${isoOf(trace.endMs)}`,
  });
}

const label = (pool: Pool): string => `${pool.type.name}/${pool.zone}`;

function selected(trace: MarketTrace, patterns: readonly string[] | undefined): readonly Pool[] {
  const spot = trace.pools.filter((p) => p.option === 'spot');
  const found = patterns === undefined ? spot : spot.filter((p) => patterns.some((text) => label(p).includes(text)));
  if (found.length > 0) return found;
  throw new EbbError('not-found', {
    what: 'no pool of the market matches --pool',
    got: patterns?.join(', ') ?? 'none',
    allowed: `parts of TYPE/ZONE, e.g. ${spot.slice(0, 3).map(label).join(', ')}`,
  });
}

function poolRow(trace: MarketTrace, s: PoolSeries, window: Window): PoolRow {
  const { pool } = s;
  const onDemand = onDemandUsdOf(pool);
  const profile = profilePrices(trace.prices(pool.id), onDemand, window);
  const steps = trace.availability(pool.id);
  const quantile = (p: number): number | null =>
    profile === null ? null : Math.round(quantileOf(profile.ratio, p, profile.heldMs) * onDemand * 1e6) / 1e6;
  return {
    pool: label(pool),
    vcpus: vcpusOf(pool),
    memoryGib: Math.round((raw(pool.type.capacity.memory) / 1024) * 10) / 10,
    gpus: pool.type.capacity.gpus,
    arch: pool.type.arch,
    onDemandUsdPerHour: onDemand,
    minUsdPerHour: quantile(0),
    medianUsdPerHour: quantile(0.5),
    maxUsdPerHour: quantile(1),
    lastUsdPerHour: priceAt(trace.prices(pool.id), epochMs(window.toMs)),
    changes: profile?.ratio.length ?? 0,
    aboveOnDemand: profile === null ? 0 : profile.aboveMs / profile.spanMs,
    available: steps === null ? 1 : periods(steps, window).upShare,
    interruptions: s.taken.length,
  };
}

/** Most rows in the table; the rest is counted. */
const TABLE_ROWS = 60;

function poolTable(rows: readonly PoolRow[], coloured: boolean, width: number): string {
  const usd = (n: number | null): string => (n === null ? '-' : n.toFixed(4));
  const column = (title: string, cell: (r: PoolRow) => string, optional = 0): Column<PoolRow> => ({
    title,
    cell,
    right: true,
    ...(optional === 0 ? {} : { optional }),
  });
  const columns: readonly Column<PoolRow>[] = [
    { title: 'POOL', cell: (r) => r.pool },
    column('VCPU', (r) => String(r.vcpus)),
    column('GIB', (r) => String(r.memoryGib), 2),
    column('ON DEMAND', (r) => usd(r.onDemandUsdPerHour)),
    column('MIN', (r) => usd(r.minUsdPerHour), 1),
    column('MEDIAN', (r) => usd(r.medianUsdPerHour)),
    column('MAX', (r) => usd(r.maxUsdPerHour)),
    column('CHANGES', (r) => number(r.changes), 4),
    column('ABOVE', (r) => percent(r.aboveOnDemand)),
    column('AVAILABLE', (r) => percent(r.available), 3),
    column('TAKEN', (r) => number(r.interruptions)),
  ];
  const output = { colors: picocolors.createColors(coloured), columns: width };
  const text = table(output, columns, rows.slice(0, TABLE_ROWS), 'no pools');
  const rest = rows.length - TABLE_ROWS;
  const legend =
    'Prices in USD per hour. ABOVE: time above on-demand. TAKEN: times the price passed on-demand or capacity ended.';
  return [text, ...(rest > 0 ? [`... and ${rest} more pools (--pool selects, --json lists all)`] : []), legend].join(
    '\n',
  );
}

async function writeCharts(trace: MarketTrace, drawn: readonly PoolSeries[], options: ShowFlags): Promise<string[]> {
  if (options.svg === undefined && options.html === undefined) return [];
  const { marketHtml, marketSvg } = await import('../../drivers/local/market/chart.ts');
  const files: string[] = [];
  const write = (file: string, text: string): void => {
    writeFileSync(resolve(file), text);
    files.push(resolve(file));
  };
  if (options.svg !== undefined) write(options.svg, await marketSvg(trace, drawn, 'light'));
  if (options.html !== undefined) write(options.html, await marketHtml(trace, drawn));
  return files;
}

const CHART_HEIGHT = 8;
/** Columns of the chart's own axis. */
const AXIS_COLUMNS = 14;

interface ChartStyle {
  readonly coloured: boolean;
  /** Width of the plot itself. */
  readonly columns: number;
}

/** Width of a chart. A terminal of unknown width (also: 0 columns) counts as 100 wide. */
function chartColumns(streams: MarketStreams): number {
  const width = streams.stdout.columns ?? 0;
  return Math.max(40, Math.min(120, (width > 0 ? width : 100) - AXIS_COLUMNS));
}

/**
 * Chart of a pool: its highest price per column, the on-demand line, and marks for missing capacity and lost instances.
 */
function textChart(s: PoolSeries, window: Window, plot: Plot, style: ChartStyle): string {
  const { columns } = style;
  const stepMs = (window.toMs - window.fromMs) / columns;
  const onDemand = onDemandUsdOf(s.pool);
  const price: [number, number][] = [];
  let held: number | null = null;
  let next = 0;
  for (let c = 0; c < columns; c++) {
    let highest = held;
    while (next < s.points.length && (s.points[next]?.[0] ?? Infinity) < window.fromMs + (c + 1) * stepMs) {
      held = s.points[next++]?.[1] ?? held;
      highest = Math.max(highest ?? 0, held ?? 0);
    }
    if (highest !== null) price.push([c, highest]);
  }
  const top = Math.max(onDemand, ...price.map(([, usd]) => usd));
  const chart = plot(
    [
      price,
      [
        [0, onDemand],
        [columns - 1, onDemand],
      ],
    ],
    {
      title: `${label(s.pool)}  price and on-demand line ($${onDemand}/h), USD per hour`,
      width: columns,
      height: CHART_HEIGHT,
      yRange: [0, top * 1.05],
      hideXAxisTicks: true,
      formatter: (value, { axis }) => (axis === 'y' ? value.toFixed(3) : ''),
      ...(style.coloured ? { color: ['ansiCyan', 'ansiYellow'] as const satisfies ['ansiCyan', 'ansiYellow'] } : {}),
    },
  ).trimEnd();
  const from = day(window.fromMs);
  const to = day(window.toMs);
  const axis = `${from}${to.padStart(columns - from.length)}`;
  return [
    chart,
    `  taken  ${strip(s, window, columns)}`,
    `         ${axis}`,
    '         x price passes on-demand   ! capacity ends   # no capacity',
  ].join('\n');
}

function strip(s: PoolSeries, window: Window, columns: number): string {
  const cells = new Array<string>(columns).fill('.');
  const cell = (ms: number): number =>
    Math.min(columns - 1, Math.max(0, Math.floor(((ms - window.fromMs) / (window.toMs - window.fromMs)) * columns)));
  for (const [fromMs, toMs] of s.outages) cells.fill('#', cell(fromMs), cell(toMs - 1) + 1);
  for (const t of s.taken) cells[cell(t.atMs)] = t.cause === 'price' ? 'x' : '!';
  return cells.join('');
}

const FORMATS = [
  {
    name: 'AWS price history',
    recognised: 'JSON with a "SpotPriceHistory" array; one or more documents in a file',
    from: 'aws ec2 describe-spot-price-history --product-descriptions Linux/UNIX --start-time 2026-01-01 --output json > history.json',
    notes: 'Records of other products than Linux/UNIX are left out.',
  },
  {
    name: 'price CSV',
    recognised: 'header timestamp_utc,az,instance_type,price_usd_hr',
    from: 'your own conversion; times are ISO 8601 with offset, prices USD per hour, in any order',
    notes: 'A file with the header az,instance_type,on_demand_usd_hr in the same folder gives on-demand prices.',
  },
  {
    name: 'spot availability series',
    recognised:
      'JSON {"metadata": {"gap_seconds": 600}, "data": [1, 0, ...]} in PREFIX-MM-DD-YYYY/ZONE_MACHINE_COUNT.json',
    from: 'https://github.com/skypilot-org/spot-traces',
    notes: 'Has no prices: a flat 0.3 of on-demand is assumed and noted. EC2 zones only.',
  },
] as const;

export function formats(streams: MarketStreams, options: { readonly json?: boolean }): void {
  if (options.json === true) return printJson(streams, FORMATS);
  line(streams, 'ebb market import reads these formats, from a file or from all files of a folder, plain or gzipped:');
  for (const f of FORMATS) {
    line(streams, `\n${f.name}\n  recognised by: ${f.recognised}\n  from: ${f.from}\n  ${f.notes}`);
  }
  line(
    streams,
    '\nEverything becomes one SQLite file; docs/market.md describes it, docs/datasets.md lists public traces.',
  );
}
