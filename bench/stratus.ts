/**
 * Stratus and the systems that it was compared with, in the setting of its paper (section 3.3).
 *   npm run bench:stratus -- [--workloads google,alibaba] [--markets 2016,2021,on-demand] [--part report|tune]
 *   [--presets a,b] [--windows N] [--sensitivity] [--procs 2] [--seed 1] [--gap 60] [--json FILE] [--html FILE]
 *   [--draw]
 * needs EBB_DATA_DIR (default ../shared/data); a workload or market without its data is left out.
 *
 * Work: real traces, cut to jobs that begin and end within a window. Markets: one kind of instance type in the zones of
 * a price history, spot and on-demand, or on-demand alone. Instances start within 30 to 160 s. A decision is made each
 * minute. Presets that know running times run each task as a job of its own with its true running time as
 * `expectedRuntime`; the others learn running times from all jobs that ended before the window. No job has a deadline.
 *
 * Costs are ratios of sums over windows, with 95 % intervals by resampling windows. Windows of the first half of each
 * trace are for tuning (`--part tune`), those of the second half are reported.
 *
 * `--sensitivity` runs Stratus with and without clearing on running times that are off by a factor of [h, 1) or [1, h],
 * for 29 values of h from 0.01 to 100 (section 3.4.4).
 *
 * Writes bench/results/stratus.json (`--part tune`: out/stratus-tune.json), and a page with charts, out/stratus.html.
 * Tables that are not asked for stay as they are. `--draw` draws the page of what is written alone. Progress is on
 * stderr.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { machine } from './figures.ts';
import { answerOrders, inProcesses } from './processes.ts';
import { stamp } from './record.ts';
import { MARKETS } from './stratus/markets.ts';
import { answerOf, progress, type Answer, type Order } from './stratus/order.ts';
import { stratusPage } from './stratus/page.ts';
import { stratusRecord, type StratusRecord, type Table } from './stratus/record.ts';
import { rowsOf, sweepOf, textOf } from './stratus/table.ts';
import { WORKLOADS, type Part, type Workload } from './stratus/work.ts';

const PRESETS = [
  'stratus',
  'stratus-no-clearing',
  'hotspot',
  'supercloud',
  'fleet-binpack',
  'no-packing',
  'supercloud-online',
  'supercloud-scaler',
  'supercloud-clearing',
  'fargate',
  'ebbtide',
];
const SWEPT = ['stratus-told', 'stratus-told-no-clearing'];
/** 29 values from 0.01 to 100, evenly in their logarithm. */
const FACTORS = Array.from({ length: 29 }, (_, i) => Number((10 ** (-2 + i / 7)).toPrecision(4)));

const { values: options } = parseArgs({
  options: {
    workloads: { type: 'string', default: WORKLOADS.map((w) => w.name).join(',') },
    markets: { type: 'string', default: MARKETS.map((m) => m.name).join(',') },
    part: { type: 'string', default: 'report' },
    presets: { type: 'string', default: PRESETS.join(',') },
    windows: { type: 'string' },
    sensitivity: { type: 'boolean', default: false },
    procs: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    gap: { type: 'string', default: '60' },
    json: { type: 'string' },
    html: { type: 'string', default: 'out/stratus.html' },
    draw: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
  },
});

function partOf(text: string): Part {
  if (text === 'tune' || text === 'report') return text;
  throw new Error(`--part takes tune or report; got ${text}`);
}

function named<T extends { readonly name: string }>(all: readonly T[], names: string): readonly T[] {
  return names.split(',').map((name) => {
    const one = all.find((x) => x.name === name);
    if (one !== undefined) return one;
    throw new Error(`there is no ${name}; there are ${all.map((x) => x.name).join(', ')}`);
  });
}

const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';

function ordersOf(workload: Workload, market: string, part: Part): readonly Order[] {
  const windows = workload.windows[part].slice(0, Number(options.windows ?? Infinity));
  const runs = options.sensitivity
    ? SWEPT.flatMap((preset) => FACTORS.map((h) => ({ preset, h })))
    : options.presets.split(',').map((preset) => ({ preset, h: 1 }));
  return windows.flatMap((window) =>
    workload.used[part].flatMap((sample) =>
      runs.map((run): Order => ({
        ...run,
        workload: workload.name,
        market,
        window,
        sample,
        data,
        seed: Number(options.seed),
        gapS: Number(options.gap),
      })),
    ),
  );
}

async function main(): Promise<void> {
  const began = performance.now();
  const part = partOf(options.part);
  console.log(machine());
  console.log(`part ${part}, seed ${options.seed}, at least ${options.gap} s between decisions`);
  const tables: Table[] = [];
  for (const workload of named(WORKLOADS, options.workloads)) {
    for (const market of named(MARKETS, options.markets)) {
      const missing = [workload.folder, market.folder].filter((folder) => !existsSync(join(data, folder)));
      if (missing.length > 0) {
        console.log(`\n${workload.name} on ${market.name}: skipped, there is no ${missing.join(', ')} in ${data}`);
        continue;
      }
      // Converted here, so that processes find it done.
      await market.open(data);
      const orders = ordersOf(workload, market.name, part);
      const crew = { script: fileURLToPath(import.meta.url), procs: Number(options.procs) };
      const answers = await inProcesses<Order, Answer>(crew, orders, (a, done) => progress(a, done, orders.length));
      const about = `${workload.about}; ${market.about}`;
      const of = { workload: workload.name, market: market.name, about, ...stamp() };
      const presets = options.sensitivity ? [] : options.presets.split(',');
      const rows = rowsOf({ answers, presets, windowS: workload.windowS });
      const table = options.sensitivity
        ? { ...of, ...rows, sweep: [...sweepOf(answers, 'stratus-told')] }
        : { ...of, ...rows };
      tables.push(table);
      console.log(textOf(table));
    }
  }
  await write(tables, part);
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

const pathOf = (part: Part): string =>
  options.json ?? (part === 'report' ? 'bench/results/stratus.json' : 'out/stratus-tune.json');

const recordAt = (path: string): StratusRecord | null =>
  existsSync(path) ? stratusRecord.parse(JSON.parse(readFileSync(path, 'utf8'))) : null;

async function draw(record: StratusRecord): Promise<void> {
  mkdirSync(dirname(options.html), { recursive: true });
  writeFileSync(options.html, await stratusPage(record));
  console.log(`drawn in ${options.html}`);
}

/** Tables and sweeps that were not made stay as they are. */
async function write(tables: readonly Table[], part: Part): Promise<void> {
  const path = pathOf(part);
  const before = recordAt(path);
  const key = (t: Pick<Table, 'workload' | 'market'>): string => `${t.workload} ${t.market}`;
  const known = new Map((before?.tables ?? []).map((t) => [key(t), t]));
  for (const table of tables) {
    const old = known.get(key(table));
    const { sweep } = old ?? {};
    if (options.sensitivity && old !== undefined)
      known.set(key(table), { ...old, ...(table.sweep && { sweep: table.sweep }) });
    else known.set(key(table), { ...table, ...(sweep && !table.sweep && { sweep }) });
  }
  const command = `npm run bench:stratus${part === 'tune' ? ' -- --part tune' : ''}`;
  const record = stratusRecord.parse({ command, part, gapS: Number(options.gap), tables: [...known.values()] });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(record, null, 2)}\n`);
  console.log(`\nwritten to ${path}`);
  await draw(record);
}

if (options.worker) answerOrders(answerOf);
else if (options.draw) {
  const path = pathOf(partOf(options.part));
  const record = recordAt(path);
  if (record === null) throw new Error(`there is no ${path}: run the benchmark without --draw first`);
  await draw(record);
} else await main();
