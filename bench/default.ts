/**
 * The default preset against all others, on every kind of ground.
 *   npm run bench:default -- [--grounds lone-tasks,several-zones] [--quick] [--part report|tune] [--presets a,b]
 *   [--procs 2] [--seed 1] [--parts] [--json FILE]
 * needs EBB_DATA_DIR (default ../shared/data); a ground without its data is left out.
 *
 * Each case is run under all presets, with the same jobs, market and seed. Costs are given over the on-demand reference
 * and over the lower bound (lib/drivers/sim/reference) of its jobs. Intervals hold 95 %, by resampling units: windows,
 * or cases that share no prices; ratios between presets are paired.
 *
 * Data to tune on and to report on are in different files: prices of 2015 and generated ones against 2016 and 2021, the
 * first half of the availability series against the second (one folder of zones against three), other seeds of made
 * workloads; of the Google trace, which is one file, weeks that lie apart.
 *
 * `--parts` prints where the money of each preset went (cost-parts.ts).
 *
 * Writes bench/results/default.json (`--part tune` and `--quick`: out/default-PART.json), from which docs/results.md
 * has its table. Grounds that are not asked for keep their rows there. Progress is on stderr.
 *
 * Reach: `ebbtide` the winner of each ground.
 */
import { fork } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { presetList } from '../lib/stages/registry.ts';
import type { Asked, Ground, GroundCase, Part } from './default/ground.ts';
import { loneTasks } from './default/lone-tasks.ts';
import { manyJobGrounds } from './default/many-jobs.ts';
import { runCase, type CaseResult } from './default/runner.ts';
import { dayWindows, lateGrid, severalZones } from './default/series-task.ts';
import { rowOf, textOf } from './default/table.ts';
import { PARTS_HEADER, partsText, sumOf } from './cost-parts.ts';
import { machine } from './figures.ts';
import { ORACLE } from '../lib/report/hindsight.ts';
import { defaultRecord, stamp, type DefaultRecord, type GroundRecord } from './record.ts';

const GROUNDS: readonly Ground[] = [loneTasks, lateGrid, dayWindows, severalZones, ...manyJobGrounds] as Ground[];
const QUICK = ['on-demand', 'spot-greedy', 'uniform-progress', 'ebbtide', ORACLE];

const { values: options } = parseArgs({
  options: {
    grounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    part: { type: 'string', default: 'report' },
    presets: { type: 'string' },
    procs: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    parts: { type: 'boolean', default: false },
    json: { type: 'string' },
    worker: { type: 'boolean', default: false },
  },
});

/** Sent to a process. */
interface Order {
  readonly asked: Asked;
  readonly presets: readonly string[];
  readonly cases: readonly GroundCase[];
}
/** Sent back for each case; empty: all presets together took none of its jobs. */
type Answer = readonly CaseResult[];

function partOf(text: string): Part {
  if (text === 'tune' || text === 'report') return text;
  throw new Error(`--part takes tune or report; got ${text}`);
}

function groundsOf(text: string | undefined): readonly Ground[] {
  if (text === undefined) return GROUNDS;
  return text.split(',').map((name) => {
    const ground = GROUNDS.find((g) => g.name === name);
    if (ground !== undefined) return ground;
    throw new Error(`there is no ground ${name}; there are ${GROUNDS.map((g) => g.name).join(', ')}`);
  });
}

async function main(): Promise<void> {
  const began = performance.now();
  const part = partOf(options.part);
  const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
  const asked: Asked = { part, quick: options.quick, data, seed: Number(options.seed) };
  const all = [...presetList().map((p) => p.name), ORACLE];
  const presets = options.presets?.split(',') ?? (options.quick ? QUICK : all);
  console.log(machine());
  console.log(`part ${part}, seed ${asked.seed}${asked.quick ? ', quick' : ''}; ${presets.join(', ')}`);
  const rows: GroundRecord[] = [];
  for (const ground of groundsOf(options.grounds)) {
    const missing = ground.needs(part).filter((folder) => !existsSync(join(data, folder)));
    if (missing.length > 0) {
      console.log(`\n${ground.name}: skipped, there is no ${missing.join(', ')} in ${data} (docs/datasets.md)`);
      continue;
    }
    const cases = (await ground.cases(asked)).map((c, key) => ({ ...c, ground: ground.name, key }));
    const results = await inProcesses({ asked, presets, cases }, Number(options.procs));
    const row = { ...rowOf(ground, results, presets), ...stamp() };
    rows.push(row);
    console.log(textOf(row));
    if (options.parts) printParts(results, presets);
  }
  write(rows, part);
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

function printParts(results: readonly CaseResult[], presets: readonly string[]): void {
  console.log(`  ${PARTS_HEADER}`);
  for (const preset of presets) {
    const its = results.filter((r) => r.preset === preset);
    console.log(`  ${partsText(preset, sumOf(its.map((r) => r.parts)))}`);
  }
}

/** Cases are dealt out one by one, so that no process waits for another one's long cases. */
async function inProcesses({ asked, presets, cases }: Order, procs: number): Promise<readonly CaseResult[]> {
  const waiting = [...cases];
  const results: CaseResult[] = [];
  let [done, empty] = [0, 0];
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(fileURLToPath(import.meta.url), ['--worker'], { serialization: 'advanced' });
      const next = (): void => {
        const one = waiting.shift();
        if (one === undefined) {
          child.disconnect();
          resolve();
        } else child.send({ asked, presets, cases: [one] } satisfies Order);
      };
      child.on('message', (answer) => {
        results.push(...(answer as Answer));
        empty += Number((answer as Answer).length === 0);
        progress(cases[0]?.ground ?? '', ++done, cases.length);
        next();
      });
      child.once('exit', (code) => reject(new Error(`a process ended with code ${code} before its cases`)));
      next();
    });
  await Promise.all(Array.from({ length: Math.min(procs, cases.length) }, work));
  if (empty > 0)
    console.log(`\n${cases[0]?.ground ?? ''}: ${empty} of ${cases.length} cases left out, refused at submission`);
  return results;
}

function progress(ground: string, done: number, all: number): void {
  const step = Math.max(1, Math.floor(all / 20));
  if (done % step === 0 || done === all) console.error(`${ground}: ${done} of ${all} cases`);
}

async function runOrder({ asked, presets, cases }: Order): Promise<Answer> {
  const [one] = cases;
  const ground = GROUNDS.find((g) => g.name === one?.ground);
  if (one === undefined || ground === undefined) throw new Error('an order has a case of a known ground');
  const { of, ...given } = one;
  return (await runCase(given, await ground.scene(of, asked), presets)) ?? [];
}

/** Rows of grounds that were not run stay as they are. */
function write(rows: readonly GroundRecord[], part: Part): void {
  const usual = part === 'report' && !options.quick ? 'bench/results/default.json' : `out/default-${part}.json`;
  const path = options.json ?? usual;
  const before: DefaultRecord | null = existsSync(path)
    ? defaultRecord.parse(JSON.parse(readFileSync(path, 'utf8')))
    : null;
  const kept = (before?.grounds ?? []).filter((g) => !rows.some((r) => r.ground === g.ground));
  const grounds = [...kept, ...rows].sort((a, b) => orderOf(a) - orderOf(b));
  const command = `npm run bench:default${part === 'tune' ? ' -- --part tune' : ''}`;
  mkdirSync(dirname(path), { recursive: true });
  const record = defaultRecord.parse({ command, part, grounds });
  writeFileSync(path, `${JSON.stringify(record, null, 2)}\n`);
  console.log(`\nwritten to ${path}`);
}

const orderOf = ({ ground }: GroundRecord): number => GROUNDS.findIndex((g) => g.name === ground);

if (options.worker) {
  process.on('message', (order) => {
    runOrder(order as Order).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
} else await main();
