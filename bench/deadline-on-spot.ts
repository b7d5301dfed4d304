/**
 * Single jobs with a deadline on spot: the setting of Wu et al., "Can't Be Late" (NSDI 2024).
 *   node bench/deadline-on-spot.ts [--sample N] [--part tune|report|all] [--presets a,b] [--hours 24] [--procs 2]
 *   [--seed 1] [--json FILE]
 * needs EBB_DATA_DIR (default ../shared/data) with spot-availability-2022-2023.
 *
 * One job of one task that fills one machine, on each zone and type series (spot 0.3 of on-demand, capacity as the
 * series has it). Its window (submission to deadline) is --hours; its work 0.2 to 0.8 of that; each start costs 0.05 to
 * 0.4 h of set-up besides the machine's own start-up. The program saves when told to, so interruptions keep its work.
 * As in the paper the running time is known, to all presets alike, and they plan with the set-up time (`restoreS`).
 * Presets were tuned on the windows of `--part tune` alone; `report` is the rest.
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
import { seriesIn, windowsOf, type Window } from './deadline-windows.ts';

export const FRACTIONS = [0.2, 0.4, 0.6, 0.8] as const;
export const OVERHEAD_HOURS = [0.05, 0.2, 0.4] as const;
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
    const hours = Number(options.hours);
    const { found, left } = await seriesIn(folder, cacheDir);
    const windows = sampled(
      windowsOf(found, options.part, hours * 3_600_000),
      Number(options.sample),
      Number(options.seed),
    );
    const capacity = options.capacity === undefined ? null : resolve(options.capacity);
    const presets = options.presets
      .split(',')
      .flatMap((preset) =>
        capacity === null || ['on-demand', 'oracle'].includes(preset) ? [preset] : [preset, `${preset}${BY_MODEL}`],
      );
    const cases = windows.flatMap((w, window) =>
      FRACTIONS.flatMap((fraction) =>
        OVERHEAD_HOURS.flatMap((overheadHours) =>
          presets.map((preset): Case => ({
            window,
            path: w.series.path,
            startMs: w.startMs,
            hours,
            fraction,
            overheadHours,
            preset,
            capacity: preset.endsWith(BY_MODEL) ? capacity : null,
            cacheDir,
          })),
        ),
      ),
    );
    const used = new Set(windows.map((w) => w.series.name));
    console.log(
      `node ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} threads, ${options.procs} processes`,
    );
    console.log(
      `${windows.length} windows of ${hours} h (part '${options.part}', seed ${options.seed}) from ${used.size} of ${found.length} series: ${[...used].join('; ')}`,
    );
    console.log(
      `work ${FRACTIONS.join(', ')} of the window; set-up ${OVERHEAD_HOURS.join(', ')} h per start; ${cases.length} simulations`,
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
    console.log(`${'preset'.padEnd(18)}${'/ on-demand'.padEnd(24)}${'/ oracle'.padEnd(24)}mean starts`);
    for (const p of presets) {
      const launches = of.reduce((n, rs) => n + (rs.find((r) => r.preset === p)?.attempts ?? 0), 0) / of.length;
      console.log(
        `${p.padEnd(18)}${ratio(p, 'on-demand', of).padEnd(24)}${ratio(p, 'oracle', of).padEnd(24)}${launches.toFixed(1)}`,
      );
    }
  };
  table('mean cost, all', complete);
  for (const f of FRACTIONS)
    table(
      `work ${f} of the window`,
      complete.filter((rs) => rs[0]?.fraction === f),
    );
  for (const o of OVERHEAD_HOURS)
    table(
      `set-up ${o} h`,
      complete.filter((rs) => rs[0]?.overheadHours === o),
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
