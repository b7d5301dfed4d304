/**
 * Single jobs with a deadline on spot: the setting of Wu et al., "Can't Be Late" (NSDI 2024).
 *   node bench/deadline-on-spot.ts [--sample N] [--part tune|report|all] [--presets a,b] [--hours 24] [--procs 2]
 *   [--seed 1] [--json FILE] [--grid] [--zones] [--late-budget 0]
 * needs EBB_DATA_DIR (default ../shared/data) with spot-availability-2022-2023.
 *
 * One job of one task that fills one machine, on each zone and type series (spot 0.3 of on-demand, capacity as the
 * series has it). Its window (submission to deadline) is --hours; its work 0.2 to 0.8 of that; each start costs 0.05 to
 * 0.4 h of set-up besides the machine's own start-up. The program saves when told to, so interruptions keep its work.
 * As in the paper the running time is known, to all presets alike, and they plan with the set-up time (`restoreS`).
 * Presets were tuned on the windows of `--part tune` alone; `report` is the rest.
 *
 * --grid is the grid of the paper instead: 48 h of work in 52, 70 and 92 h, 0.02, 0.2 and 0.4 h of set-up, on as many
 * windows of each length as --sample says. --zones takes series of one type in two to four zones as one market
 * (deadline-windows.ts). The first two are tuned on in their first half, the others are reported alone. --late-budget
 * is the setting `lateBudget`: 0 puts no deadline at risk.
 *
 * With --capacity VERSION (a folder that `bench/forecast-capacity.ts --tuned` and the training made) each preset that
 * forecasts is also run with that model of capacity, as `PRESET+capacity`.
 *
 * Reach: no job late by `ebbtide`; its mean cost below that of `spot-greedy` and `uniform-progress`.
 */
import { fork } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { randomStream } from '../lib/kernel/random.ts';
import { clusterRatio, fractionText } from './intervals.ts';
import { runCase, type Case, type CaseResult } from './deadline-case.ts';
import { marketsIn, seriesIn, windowsOf, type Series, type Window } from './deadline-windows.ts';

export const FRACTIONS = [0.2, 0.4, 0.6, 0.8] as const;
export const OVERHEAD_HOURS = [0.05, 0.2, 0.4] as const;
/** The grid of "Can't Be Late" (section 6). */
const WORK_HOURS = 48;
interface Shape {
  readonly hours: number;
  readonly fractions: readonly number[];
  readonly overheads: readonly number[];
}
const GRID: readonly Shape[] = [52, 70, 92].map((hours) => ({
  hours,
  fractions: [WORK_HOURS / hours],
  overheads: [0.02, 0.2, 0.4],
}));
const PRESETS = ['on-demand', 'spot-greedy', 'uniform-progress', 'ebbtide', 'oracle'] as const;

/** Suffix of presets with the capacity model. */
const BY_MODEL = '+capacity';

const { values: options } = parseArgs({
  options: {
    sample: { type: 'string', default: '20' },
    part: { type: 'string', default: 'report' },
    presets: { type: 'string', default: PRESETS.join(',') },
    hours: { type: 'string', default: '24' },
    procs: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
    capacity: { type: 'string' },
    grid: { type: 'boolean', default: false },
    zones: { type: 'boolean', default: false },
    'late-budget': { type: 'string', default: '0' },
    worker: { type: 'boolean', default: false },
  },
});

/** Sample without repetition, from all series in turn, so that long series do not dominate. */
function sampled(windows: readonly Window[], most: number, seed: number): Window[] {
  const random = randomStream(seed, 'windows');
  const bySeries = [...Map.groupBy(windows, (w) => w.series.name).values()].map((list) =>
    list.map((w) => ({ w, at: random() })).sort((a, b) => a.at - b.at),
  );
  const taken: Window[] = [];
  for (let turn = 0; taken.length < Math.min(most, windows.length); turn++) {
    const round = bySeries.flatMap((list) => list[turn]?.w ?? []);
    taken.push(...round.slice(0, most - taken.length));
  }
  return taken;
}

interface Asked {
  readonly found: readonly Series[];
  readonly shapes: readonly Shape[];
  readonly presets: readonly string[];
  readonly capacity: string | null;
  readonly cacheDir: string;
}

/** The windows of all lengths, numbered in one row, and what is simulated in them. */
function casesOf({ found, shapes, presets, capacity, cacheDir }: Asked): { windows: Window[]; cases: Case[] } {
  const windows: Window[] = [];
  const cases = shapes.flatMap(({ hours, fractions, overheads }) => {
    const taken = sampled(
      windowsOf(found, options.part, hours * 3_600_000),
      Number(options.sample),
      Number(options.seed),
    );
    const first = windows.push(...taken) - taken.length;
    return taken.flatMap((w, n) =>
      fractions.flatMap((fraction) =>
        overheads.flatMap((overheadHours) =>
          presets.map((preset): Case => ({
            window: first + n,
            path: w.series.path,
            startMs: w.startMs,
            hours,
            fraction,
            overheadHours,
            preset,
            capacity: preset.endsWith(BY_MODEL) ? capacity : null,
            lateBudget: Number(options['late-budget']),
            cacheDir,
          })),
        ),
      ),
    );
  });
  return { windows, cases };
}

async function main(): Promise<void> {
  const folder = join(process.env['EBB_DATA_DIR'] ?? '../shared/data', 'spot-availability-2022-2023');
  if (!existsSync(folder)) {
    console.log(
      `skipped: there is no ${folder}; set EBB_DATA_DIR to the folder that holds the data sets (docs/datasets.md)`,
    );
    return;
  }
  const began = performance.now();
  const cacheDir = mkdtempSync(join(tmpdir(), 'ebb-deadline-on-spot-'));
  try {
    const { found, left } = options.zones
      ? { found: await marketsIn(folder, cacheDir), left: [] }
      : await seriesIn(folder, cacheDir);
    const shapes: readonly Shape[] = options.grid
      ? GRID
      : [{ hours: Number(options.hours), fractions: FRACTIONS, overheads: OVERHEAD_HOURS }];
    const capacity = options.capacity === undefined ? null : resolve(options.capacity);
    const presets = options.presets
      .split(',')
      .flatMap((preset) =>
        capacity === null || ['on-demand', 'oracle'].includes(preset) ? [preset] : [preset, `${preset}${BY_MODEL}`],
      );
    const { windows, cases } = casesOf({ found, shapes, presets, capacity, cacheDir });
    const used = new Set(windows.map((w) => w.series.name));
    console.log(
      `node ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} threads, ${options.procs} processes`,
    );
    console.log(
      `${windows.length} windows of ${shapes.map((shape) => shape.hours).join(', ')} h (part '${options.part}', seed ${options.seed}) from ${used.size} of ${found.length} series: ${[...used].join('; ')}`,
    );
    console.log(
      `work ${options.grid ? `${WORK_HOURS} h` : `${FRACTIONS.join(', ')} of the window`}; set-up ${shapes[0]?.overheads.join(', ')} h per start; late budget ${options['late-budget']}; ${cases.length} simulations`,
    );
    for (const l of left) console.log(`left out: ${l}`);
    const results = await inProcesses(cases, Number(options.procs));
    report(results, presets);
    console.log(`took ${((performance.now() - began) / 1000).toFixed(0)} s`);
    if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(results));
  } finally {
    rmSync(cacheDir, { recursive: true });
  }
}

/** Windows by process: the cases of a window stay together, so that its market is read once. */
async function inProcesses(cases: readonly Case[], procs: number): Promise<CaseResult[]> {
  const parts = Array.from({ length: procs }, (_, p) => cases.filter((c) => c.window % procs === p)).filter(
    (p) => p.length > 0,
  );
  const results = await Promise.all(
    parts.map(
      (part) =>
        new Promise<CaseResult[]>((resolve, reject) => {
          const child = fork(fileURLToPath(import.meta.url), ['--worker'], { serialization: 'advanced' });
          child.once('message', (done) => {
            resolve(done as CaseResult[]);
            child.disconnect();
          });
          child.once('exit', (code) => reject(new Error(`a process ended with code ${code} before its simulations`)));
          child.send(part);
        }),
    ),
  );
  return results.flat();
}

function report(results: readonly CaseResult[], presets: readonly string[]): void {
  const byCase = Map.groupBy(results, (r) => `${r.window} ${r.fraction} ${r.overheadHours}`);
  const complete = [...byCase.values()].filter((rs) => presets.every((p) => rs.some((r) => r.preset === p)));
  const cost = (rs: readonly CaseResult[], preset: string): number => rs.find((r) => r.preset === preset)?.usd ?? NaN;
  const late = (preset: string): number => results.filter((r) => r.preset === preset && r.late).length;
  const ratio = (preset: string, to: string, of: readonly (readonly CaseResult[])[]): string =>
    presets.includes(to)
      ? fractionText(
          clusterRatio(of.map((rs) => ({ cluster: rs[0]?.window ?? 0, over: cost(rs, preset), under: cost(rs, to) }))),
        )
      : '-';
  console.log('\nlate jobs: ' + presets.map((p) => `${p} ${late(p)}`).join(', ') + ` of ${complete.length} each`);
  const table = (title: string, of: readonly (readonly CaseResult[])[]): void => {
    console.log(`\n${title} (${of.length} jobs; 95 % intervals by resampling windows)`);
    const head = ['/ on-demand', '/ uniform-progress', '/ oracle'].map((text) => text.padEnd(24)).join('');
    console.log(`${'preset'.padEnd(18)}${head}mean starts`);
    for (const p of presets) {
      const launches = of.reduce((n, rs) => n + (rs.find((r) => r.preset === p)?.attempts ?? 0), 0) / of.length;
      console.log(
        p.padEnd(18) +
          ['on-demand', 'uniform-progress', 'oracle'].map((to) => ratio(p, to, of).padEnd(24)).join('') +
          launches.toFixed(1),
      );
    }
  };
  table('mean cost, all', complete);
  const values = (of: (r: CaseResult) => number): number[] => [...new Set(results.map(of))].sort((a, b) => a - b);
  const where = (of: (r: CaseResult) => number, value: number) =>
    complete.filter((rs) => rs[0] !== undefined && of(rs[0]) === value);
  if (options.grid)
    for (const h of values((r) => r.hours))
      table(
        `${WORK_HOURS} h in ${h} h`,
        where((r) => r.hours, h),
      );
  else
    for (const f of values((r) => r.fraction))
      table(
        `work ${f} of the window`,
        where((r) => r.fraction, f),
      );
  for (const o of values((r) => r.overheadHours))
    table(
      `set-up ${o} h`,
      where((r) => r.overheadHours, o),
    );
}

if (options.worker) {
  process.once('message', (cases) => {
    void (async () => {
      const results: CaseResult[] = [];
      for (const c of cases as Case[]) results.push(await runCase(c));
      process.send?.(results);
    })();
  });
} else await main();
