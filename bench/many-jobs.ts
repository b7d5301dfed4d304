/**
 * Many jobs with deadlines at once, on the spot prices of 2016 and of 2021: cost and misses of each preset.
 *   node bench/many-jobs.ts [--part report|tune] [--markets 2016,2021] [--last-share 0.2] [--windows 4] [--jobs 32]
 *   [--presets a,b@FORECAST] [--known cold|guessed|warm] [--seed 1] [--parts] [--json FILE]
 * needs EBB_DATA_DIR (default ../shared/data) with spot-prices-us-east-1-2016 and -2021.
 *
 * A window is the time in which the jobs of one synthetic workload arrive; windows are spread evenly over the market
 * after its first week, from which forecasts learn. The part to tune on has the beginning of each stretch, the part to
 * report on its middle, with other seeds: nothing was chosen by looking at the latter. All jobs have a deadline, with
 * slack as in JamaisVu's EXP1 (20 to 80 %, table 3); tasks save their state every ten minutes. The market is cut down
 * to a few common types, each in all its zones, so that a simulation takes seconds. 2016 is billed by the hour, 2021 by
 * the second. Running times are learned as the jobs end. `--known guessed` tells them within 25 %; with `--known warm`
 * the runs of 600 earlier jobs of the same workload are known.
 *
 * `ebbtide@model` is a preset under another forecast of interruptions (docs/forecast.md: `history`, `model`, a version,
 * `oracle`); with `--last-share 0.2` windows lie in the last fifth of each market, of which no shipped model has seen
 * anything.
 *
 * Jobs that any preset refuses at submission are removed for all, so that all run the same jobs. Presets refuse
 * different jobs because they have learned different running times.
 *
 * `--parts` prints where the money of each preset went, by window and in all (cost-parts.ts).
 *
 * Costs are given over the on-demand reference (the cheapest on-demand way that knows nothing of the future) and,
 * before refunds, over the lower bound of the same jobs: lib/drivers/sim/reference.
 *
 * Reach: `ebbtide` cheapest among the presets with at most 1 % of the deadlines missed.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { schedulerConfig, type SchedulerConfig } from '../lib/domain/config.ts';
import { epochMs, plus, raw, seconds, ZERO_S, type EpochMs } from '../lib/kernel/units.ts';
import { highsSolver } from '../lib/drivers/solver/highs-solver.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import { replayMarket } from '../lib/drivers/local/market/replay.ts';
import { billingAt } from '../lib/market/billing.ts';
import type { MarketTrace } from '../lib/market/trace.ts';
import { deterministic } from '../lib/policy/solver.ts';
import { decidersNamed } from '../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../lib/drivers/sim/outcome-of-run.ts';
import { referencesOf } from '../lib/drivers/sim/reference/references.ts';
import type { Estimate } from '../lib/report/bootstrap.ts';
import type { References } from '../lib/report/outcome.ts';
import { simulate } from '../lib/drivers/sim/simulation.ts';
import type { WorkloadJob } from '../lib/workload/workload.ts';
import { forecastOf } from '../lib/cli/simulation/compose-simulation.ts';
import { divided, guessed, jobsOf } from './default/jobs.ts';
import { earlierRuns } from './default/runner.ts';
import { PARTS_HEADER, PartsTally, partsText, sumOf, type CostParts } from './cost-parts.ts';
import { clusterRatio, fractionText } from './intervals.ts';

const PRESETS = ['on-demand', 'spot-greedy', 'uniform-progress', 'fleet', 'ebbtide', 'oracle'] as const;
/** Start of a window in its stretch of the market, and offset of the seed. */
const PARTS: Readonly<Record<string, { readonly at: number; readonly seed: number }>> = {
  tune: { at: 0, seed: 0 },
  report: { at: 0.5, seed: 1000 },
};
const MOST_MISSED = 0.01;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** Rate of arrivals, which last over an hour. A day follows for late jobs. */
const PER_HOUR = 20;
const AFTER_S = 86_400;
const CHECKPOINT_S = 600;
/**
 * Shape of the workload: half of the tasks below 20 minutes, one in six above an hour. Deadlines leave time for starts.
 */
const SHAPE = 'medianRuntimeS=1200,runtimeSigma=1,maxTasks=20,dailyCycle=0';
const VCPUS = 2000;
const CYCLE_S = 60;
const SOLVER_NODES = 50;
/** Types with prices in both years that hold any of the tasks. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  '2016': ['m1.large', 'm1.xlarge', 'm2.xlarge', 'm3.large', 'c1.medium', 'c1.xlarge', 'r3.large', 'm4.4xlarge'],
  '2021': ['m5', 'c5', 'r5'].flatMap((f) => ['large', 'xlarge', '2xlarge', '4xlarge'].map((size) => `${f}.${size}`)),
};

const { values: options } = parseArgs({
  options: {
    markets: { type: 'string', default: '2016,2021' },
    part: { type: 'string', default: 'report' },
    'last-share': { type: 'string' },
    windows: { type: 'string', default: '4' },
    jobs: { type: 'string', default: '32' },
    presets: { type: 'string', default: PRESETS.join(',') },
    known: { type: 'string', default: 'cold' },
    seed: { type: 'string', default: '1' },
    parts: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});

interface Run {
  readonly market: string;
  readonly window: number;
  readonly preset: string;
  readonly usd: number;
  readonly refundedUsd: number;
  /** Of the same jobs. */
  readonly references: References;
  readonly jobs: number;
  readonly missed: number;
  readonly interruptions: number;
  readonly utilisation: number;
  readonly refused: readonly string[];
  readonly parts: CostParts;
  readonly tookS: number;
}

/** The same market with pools of some types only. */
function cutDown(trace: MarketTrace, types: readonly string[]): MarketTrace {
  return {
    name: trace.name,
    startMs: trace.startMs,
    endMs: trace.endMs,
    pools: trace.pools.filter((pool) => types.includes(pool.type.name)),
    prices: (id) => trace.prices(id),
    availability: (id) => trace.availability(id),
  };
}

/** Values of `--known`: running times unknown, told by the user, or learned from earlier jobs. */
const KNOWN: readonly string[] = ['cold', 'guessed', 'warm'];
/** Earlier jobs of a warm run, and the error of guesses. */
const EARLIER = 600;
const GUESS_ERROR = 0.25;

interface Work {
  readonly jobs: readonly WorkloadJob[];
  readonly earlier: readonly WorkloadJob[];
}

async function workOf(seed: number): Promise<Work> {
  const last = Number(options.jobs);
  const all = await jobsOf(
    `synthetic:jobs=${options.known === 'warm' ? EARLIER + last : last},perHour=${PER_HOUR},${SHAPE}`,
    { seed, checkpointEveryS: CHECKPOINT_S, deadlines: { share: 1 } },
  );
  if (options.known === 'warm') return divided(all, last);
  return { jobs: options.known === 'guessed' ? guessed(all, GUESS_ERROR, seed) : all, earlier: [] };
}

interface Setting {
  readonly market: string;
  readonly trace: MarketTrace;
  readonly window: number;
  readonly startMs: number;
  readonly earlier: readonly WorkloadJob[];
}

const toOf = (fromMs: EpochMs, jobs: readonly WorkloadJob[]): EpochMs =>
  plus(fromMs, seconds((jobs.at(-1)?.submittedS ?? 0) + AFTER_S));

const configAt = (startMs: number): SchedulerConfig =>
  schedulerConfig.parse({ billing: billingAt(epochMs(startMs)), cyclePeriodS: CYCLE_S });

/** Run of a preset with its interruption forecast: `PRESET` or `PRESET@FORECAST`. */
async function runOf(setting: Setting, named: string, jobs: readonly WorkloadJob[]): Promise<Omit<Run, 'references'>> {
  const [preset = '', asked = 'preset'] = named.split('@');
  const { market, trace, window, startMs } = setting;
  const began = performance.now();
  const fromMs = epochMs(startMs);
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const tally = new PartsTally();
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: asked, presets: {} });
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs,
      toMs: toOf(fromMs, jobs),
      jobs,
      namesJobs: false,
      deciders: decidersNamed(preset),
      forecast,
      solver,
      config: configAt(startMs),
      vcpus: VCPUS,
      seed: Number(options.seed),
      minGapS: seconds(5),
      setupS: ZERO_S,
      earlier: earlierRuns({ earlier: setting.earlier, fromMs }),
      onSettled: tally.add,
    });
    const { totals, refused } = outcomeOf(result, { preset, seed: Number(options.seed), fromMs });
    return {
      market,
      window,
      preset: named,
      usd: totals.billedUsd,
      refundedUsd: totals.refundedUsd,
      jobs: totals.deadlines,
      missed: totals.missed,
      interruptions: totals.interruptions,
      utilisation: totals.utilisation,
      refused: refused.map((r) => r.key),
      parts: tally.parts,
      tookS: (performance.now() - began) / 1000,
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}

/** Runs of all presets on the jobs that each accepts. */
async function windowRuns(setting: Setting, presets: readonly string[], all: readonly WorkloadJob[]): Promise<Run[]> {
  const refused = new Set<string>();
  for (;;) {
    const jobs = all.filter((j) => !refused.has(j.key));
    const ran: Omit<Run, 'references'>[] = [];
    for (const preset of presets) {
      const run = await runOf(setting, preset, jobs);
      for (const key of run.refused) refused.add(key);
      // Further presets would run jobs that are refused now.
      if (run.refused.length > 0) break;
      ran.push(run);
    }
    if (ran.length === presets.length) {
      const fromMs = epochMs(setting.startMs);
      const scene = { trace: setting.trace, config: configAt(setting.startMs), fromMs, setupS: ZERO_S };
      const references = referencesOf(jobs, { ...scene, toMs: toOf(fromMs, jobs) });
      const runs = ran.map((r) => ({ ...r, references }));
      const gone = refused.size === 0 ? '' : `; refused by one or other: ${[...refused].join(', ')}`;
      console.log(
        `${setting.market}, window ${setting.window} from ${new Date(setting.startMs).toISOString()}: ${jobs.length} of ${all.length} jobs${gone}`,
      );
      for (const r of runs)
        console.log(
          `  ${r.preset.padEnd(17)} $${r.usd.toFixed(2).padStart(8)}  ${r.missed} missed, ${r.interruptions} interruptions, ${(100 * r.utilisation).toFixed(0)} % used (${r.tookS.toFixed(1)} s)`,
        );
      if (options.parts) printParts(runs);
      return runs;
    }
  }
}

async function main(): Promise<void> {
  const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
  const began = performance.now();
  const cacheDir = mkdtempSync(join(tmpdir(), 'ebb-many-jobs-'));
  const presets = options.presets.split(',');
  const part = PARTS[options.part];
  if (part === undefined) throw new Error(`--part is ${options.part}; there are ${Object.keys(PARTS).join(' and ')}`);
  if (!KNOWN.includes(options.known)) throw new Error(`--known is ${options.known}; there are ${KNOWN.join(', ')}`);
  const runs: Run[] = [];
  console.log(`node ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} threads`);
  console.log(
    `synthetic:jobs=${options.jobs},perHour=${PER_HOUR},${SHAPE}; running times ${options.known}; part ${options.part}, seed ${part.seed + Number(options.seed)} and on; ${VCPUS} vCPUs; a cycle each ${CYCLE_S} s`,
  );
  try {
    for (const market of options.markets.split(',')) {
      const file = join(data, `spot-prices-us-east-1-${market}`, 'spot_price_changes.csv.gz');
      if (!existsSync(file)) {
        console.log(
          `skipped: there is no ${file}; set EBB_DATA_DIR to the folder that holds the data sets (docs/datasets.md)`,
        );
        continue;
      }
      const trace = cutDown((await openMarket(file, cacheDir)).trace, TYPES[market] ?? []);
      const count = Number(options.windows);
      const share = options['last-share'];
      const firstMs =
        share === undefined
          ? raw(trace.startMs) + WEEK_MS
          : raw(trace.endMs) - Number(share) * (raw(trace.endMs) - raw(trace.startMs));
      const stepMs = (raw(trace.endMs) - 2 * 24 * HOUR_MS - firstMs) / count;
      console.log(`\n${market}: ${trace.pools.length} pools`);
      for (let window = 0; window < count; window++) {
        const setting = { market, trace, window, startMs: Math.round(firstMs + (window + part.at) * stepMs) };
        const work = await workOf(part.seed + Number(options.seed) + window);
        runs.push(...(await windowRuns({ ...setting, earlier: work.earlier }, presets, work.jobs)));
      }
    }
  } finally {
    rmSync(cacheDir, { recursive: true });
  }
  for (const [market, of] of Map.groupBy(runs, (r) => r.market)) report(`prices of ${market}`, of, presets);
  if (options.markets.includes(',')) report('all', runs, presets);
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
  if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(runs));
}

function printParts(runs: readonly Run[]): void {
  console.log(`  ${PARTS_HEADER}`);
  for (const [preset, of] of Map.groupBy(runs, (r) => r.preset))
    console.log(`  ${partsText(preset, sumOf(of.map((r) => r.parts)))}`);
}

/** Costs as ratios of sums over windows, intervals by resampling windows. */
function report(title: string, runs: readonly Run[], presets: readonly string[]): void {
  const windows = [...Map.groupBy(runs, (r) => `${r.market} ${r.window}`).values()];
  const usd = (of: readonly Run[], preset: string): number => of.find((r) => r.preset === preset)?.usd ?? NaN;
  const ratio = (preset: string, to: string): Estimate =>
    clusterRatio(windows.map((of, cluster) => ({ cluster, over: usd(of, preset), under: usd(of, to) })));
  const toReference = (preset: string, reference: keyof References): Estimate =>
    clusterRatio(
      windows.flatMap((of, cluster) => {
        const run = of.find((r) => r.preset === preset);
        const under = run?.references[reference] ?? null;
        if (run === undefined || under === null) return [];
        // The bound is of charges before refunds.
        return [{ cluster, over: run.usd + (reference === 'lowerBoundUsd' ? run.refundedUsd : 0), under }];
      }),
    );
  const missed = (preset: string): { readonly missed: number; readonly jobs: number } =>
    runs
      .filter((r) => r.preset === preset)
      .reduce((n, r) => ({ missed: n.missed + r.missed, jobs: n.jobs + r.jobs }), { missed: 0, jobs: 0 });
  console.log(`\n${title}: ${windows.length} windows; 95 % intervals by resampling windows`);
  console.log('preset             / on-demand reference   / ebbtide               / lower bound           missed');
  for (const preset of presets) {
    const m = missed(preset);
    const share = `${m.missed} of ${m.jobs} (${((100 * m.missed) / Math.max(1, m.jobs)).toFixed(1)} %)`;
    const toEbbtide = presets.includes('ebbtide') ? fractionText(ratio(preset, 'ebbtide')) : '-';
    const [onDemand, bound] = [toReference(preset, 'onDemandUsd'), toReference(preset, 'lowerBoundUsd')];
    console.log(
      `${preset.padEnd(18)} ${fractionText(onDemand).padEnd(23)} ${toEbbtide.padEnd(23)} ${fractionText(bound).padEnd(23)} ${share}`,
    );
  }
  if (options.parts) printParts(runs);
  const able = presets.filter((p) => p !== 'oracle' && missed(p).missed <= MOST_MISSED * missed(p).jobs);
  const total = (preset: string): number => windows.reduce((sum, of) => sum + usd(of, preset), 0);
  const cheapest = able.toSorted((a, b) => total(a) - total(b));
  console.log(
    cheapest.length === 0
      ? `no preset misses at most ${100 * MOST_MISSED} % of the deadlines`
      : `of those that miss at most ${100 * MOST_MISSED} %, by cost: ${cheapest.join(', ')}`,
  );
}

await main();
