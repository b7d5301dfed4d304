/**
 * Speed of the simulator: events per second, peak memory, and the solver's share of the time.
 *
 *   node bench/simulate.ts [--only greedy,milp,growth] [--gap 60] [--vcpus 100000] [--from-s S] [--to-s S]
 *   [--market FILE|FOLDER] [--references]
 *
 * greedy: the Google trace's task attempts (EBB_DATA_DIR, docs/datasets.md) under `spot-greedy`. milp: the same under
 * `ebbtide`, whose solver stops by nodes. growth: a synthetic workload under `spot-greedy`, then ten times its jobs.
 * These come once over ten times as long (equal live set), and once in the same time on ten times the vCPUs (larger
 * live set). Load per vCPU is equal in all three. Start-up time (reading, compiling) is measured with a single job and
 * subtracted.
 *
 * An event is a change of an instance or a task, a submission, or a cycle. `--gap` is the least time between two
 * decisions, seconds; `--from-s` and `--to-s` select a part of the trace. Requests are fractions of the market's
 * largest machine: 16 vCPUs, and 64 GiB by assumption. Each run is a thread of its own process, as in `ebb simulate`,
 * one after the other: peak memory is that of the process. Processor time counts all its threads. Judges nothing.
 * `--references`: with the on-demand reference and the lower bound that `ebb simulate` computes after a run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { RunOrder } from '../lib/cli/simulation/run-order.ts';
import { runAll } from '../lib/cli/simulation/pool.ts';
import { DEFAULT_SEED } from '../lib/market/default-market.ts';
import { machine, peakMiB } from './figures.ts';

const { values: args } = parseArgs({
  options: {
    only: { type: 'string', default: 'greedy,milp,growth' },
    gap: { type: 'string', default: '60' },
    vcpus: { type: 'string', default: '100000' },
    'from-s': { type: 'string' },
    'to-s': { type: 'string' },
    market: { type: 'string' },
    references: { type: 'boolean', default: false },
    order: { type: 'string' },
  },
});

const TRACE = join(process.env['EBB_DATA_DIR'] ?? '../shared/data', 'google-2011', 'task_attempts.csv.gz');
const MACHINE = { vcpus: 16, memoryGiB: 64 };
/** Arrivals of an hour, some 7,000 tasks; the limit binds at none of the three sizes. */
const GROWTH = { jobs: 500, perHour: 500, vcpus: 20_000 };

interface Figures {
  readonly tookS: number;
  readonly cpuS: number;
  readonly mib: number;
  readonly steps: number;
  readonly cycles: number;
  readonly solved: number;
  readonly solverS: number;
  readonly jobs: number;
  readonly tasks: number;
  readonly refused: number;
  readonly missed: number;
  readonly deadlines: number;
  readonly ended: string;
}

function orderOf(preset: string, path: string, over: Partial<RunOrder> = {}): RunOrder {
  return {
    preset,
    seed: 1,
    workload: { path, options: {} },
    market: args.market === undefined ? null : resolve(args.market),
    marketSeed: DEFAULT_SEED,
    ownMarkets: false,
    dir: join(tmpdir(), 'ebb-bench-simulate'),
    cache: join(tmpdir(), 'ebb-bench-simulate'),
    fromMs: null,
    toMs: null,
    config: {},
    vcpus: Number(args.vcpus),
    minGapS: Number(args.gap),
    setupS: 0,
    references: args.references,
    log: null,
    ...over,
  };
}

async function measure(order: RunOrder): Promise<Figures> {
  const began = performance.now();
  const cpuBegan = process.cpuUsage();
  const never = new AbortController().signal;
  const { results, failure } = await runAll([order], { onProgress: () => undefined, signal: never });
  const [result] = results;
  if (result === undefined) throw failure ?? new Error('a simulation that is not aborted has a result');
  const { user, system } = process.cpuUsage(cpuBegan);
  const { totals, cycles, steps, ended } = result.outcome;
  return {
    tookS: (performance.now() - began) / 1000,
    cpuS: (user + system) / 1e6,
    mib: peakMiB(),
    steps,
    cycles: cycles.count,
    solved: cycles.solved,
    solverS: cycles.solverMs / 1000,
    jobs: totals.jobs,
    tasks: totals.tasks,
    refused: totals.refused,
    missed: totals.missed,
    deadlines: totals.deadlines,
    ended,
  };
}

/** Runs one order in a process of its own. */
function measured(order: RunOrder): Figures {
  const self = fileURLToPath(import.meta.url);
  const { stdout, status } = spawnSync(process.execPath, [self, '--order', JSON.stringify(order)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`the simulation's process ended with ${status}`);
  return JSON.parse(stdout) as Figures;
}

const count = (n: number): string => Math.round(n).toLocaleString('en-US');
const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

function print(name: string, f: Figures): void {
  console.log(
    `${name}: ${count(f.tasks)} tasks of ${count(f.jobs)} jobs (${count(f.refused)} refused), ${count(f.steps)} events, of them ${count(f.cycles)} cycles; ${f.ended}`,
  );
  console.log(
    `  ${f.tookS.toFixed(1)} s, ${f.cpuS.toFixed(1)} s of processor time: ${count(f.steps / f.tookS)} events/s, ${count(f.steps / f.cpuS)} per second of processor time; peak ${count(f.mib)} MiB`,
  );
  console.log(
    `  solver ${f.solverS.toFixed(1)} s in ${count(f.solved)} cycles: ${percent(f.solverS / f.tookS)} of the time; ${count(f.missed)} of ${count(f.deadlines)} deadlines missed`,
  );
}

function google(name: string, preset: string): void {
  if (!existsSync(TRACE)) {
    console.log(
      `${name}: skipped: there is no ${TRACE}; set EBB_DATA_DIR to the folder of the data sets (docs/datasets.md)`,
    );
    return;
  }
  const part = {
    ...(args['from-s'] === undefined ? {} : { fromS: Number(args['from-s']) }),
    ...(args['to-s'] === undefined ? {} : { toS: Number(args['to-s']) }),
  };
  const order = orderOf(preset, TRACE);
  print(
    `${name} (${preset})`,
    measured({ ...order, workload: { path: TRACE, options: { machine: MACHINE, ...part } } }),
  );
}

function growth(): void {
  const { jobs, perHour, vcpus } = GROWTH;
  const run = (of: number, rate: number, limit: number): Figures =>
    measured(orderOf('spot-greedy', `synthetic:jobs=${of},perHour=${rate},dailyCycle=0`, { vcpus: limit }));
  const start = run(1, perHour, vcpus);
  const rate = (f: Figures): number => (f.steps - start.steps) / (f.cpuS - start.cpuS);
  const once = run(jobs, perHour, vcpus);
  print('growth, 1x', once);
  for (const [name, f] of [
    ['growth, 10x, as long again ten times', run(10 * jobs, perHour, vcpus)],
    ['growth, 10x, at once', run(10 * jobs, 10 * perHour, 10 * vcpus)],
  ] as const) {
    print(name, f);
    console.log(
      `  events per second of processor time, the start (${start.cpuS.toFixed(1)} s) taken off: ${percent(rate(f) / rate(once))} of those at 1x`,
    );
  }
}

if (args.order !== undefined) console.log(JSON.stringify(await measure(JSON.parse(args.order) as RunOrder)));
else {
  console.log(`${machine()}; ${args.gap} s between decisions at least, ${args.vcpus} vCPUs, seed 1`);
  for (const what of args.only.split(',')) {
    if (what === 'greedy') google('greedy', 'spot-greedy');
    else if (what === 'milp') google('milp', 'ebbtide');
    else if (what === 'growth') growth();
    else throw new Error(`--only takes greedy, milp and growth; got ${what}`);
  }
}
