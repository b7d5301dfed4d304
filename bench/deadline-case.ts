/** One job with a deadline on one series under one preset, for deadline-on-spot.ts and its tests. */
import { basename, dirname } from 'node:path';
import { presetNamed } from '../lib/stages/registry.ts';
import { schedulerConfig } from '../lib/domain/config.ts';
import { certain } from '../lib/domain/distribution.ts';
import { FROM_OBSERVED, type ChosenCapacity } from '../lib/domain/forecast.ts';
import type { JobSpec } from '../lib/domain/job.ts';
import type { EstimatePolicy } from '../lib/policy/contracts.ts';
import { forecastStages } from '../lib/stages/estimate/stage-forecasts.ts';
import { epochMs, plus, seconds, ZERO_S } from '../lib/kernel/units.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import { replayMarket } from '../lib/drivers/local/market/replay.ts';
import { CAPACITY_FEATURES } from '../lib/market/features/capacity-features.ts';
import type { MarketTrace } from '../lib/market/trace.ts';
import { openCapacity } from '../lib/models/preemption.ts';
import { outcomeOf } from '../lib/drivers/sim/outcome-of-run.ts';
import { oracle } from '../lib/drivers/sim/oracle.ts';
import { simulate } from '../lib/drivers/sim/simulation.ts';
import { noSolver } from './load/no-solver.ts';
import { spec, stage } from './load/values.ts';

export interface Case {
  /** Number of the window in the sample. */
  readonly window: number;
  /** Path of a series: a market of one spot pool and its on-demand pool. */
  readonly path: string;
  readonly cacheDir: string;
  readonly startMs: number;
  /** Time from submission to deadline. */
  readonly hours: number;
  /** Work as a fraction of the window. */
  readonly fraction: number;
  /** Set-up time at each start. */
  readonly overheadHours: number;
  /** Preset; `+capacity` after its name distinguishes it in results only. */
  readonly preset: string;
  /** Folder of the capacity model; absent or null: observed interruptions. */
  readonly capacity?: string | null;
  /** Share of jobs that may be late; absent: 0, none is put at risk. */
  readonly lateBudget?: number;
}

export interface CaseResult extends Pick<Case, 'window' | 'hours' | 'fraction' | 'overheadHours' | 'preset'> {
  readonly usd: number;
  readonly late: boolean;
  readonly attempts: number;
  readonly interruptions: number;
  readonly finishedInS: number;
}

/** Known running times: the job file is right, as in the paper. */
const known: EstimatePolicy = ({ snapshot }) =>
  forecastStages(snapshot, (_, stage) => ({
    runtime: certain(stage.expectedRuntimeS ?? ZERO_S),
    basis: 'hint',
    reason: 'the running time is known',
  }));

/** Cycle period: longer ones would miss the return of a pool, shorter ones cost time without effect. */
const CYCLE_S = 120;

const opened = new Map<string, MarketTrace>();

const models = new Map<string, ChosenCapacity>();

async function capacityOf(folder: string | null): Promise<ChosenCapacity> {
  if (folder === null) return FROM_OBSERVED;
  let model = models.get(folder);
  if (model === undefined) {
    const opened = await openCapacity(basename(folder), { shipped: null, own: dirname(folder) }, CAPACITY_FEATURES);
    if (opened.refused !== null) throw new Error(opened.refused);
    models.set(folder, (model = opened));
  }
  return model;
}

export async function runCase(c: Case): Promise<CaseResult> {
  let trace = opened.get(c.path);
  if (trace === undefined) opened.set(c.path, (trace = (await openMarket(c.path, c.cacheDir)).trace));
  return runOn(trace, c);
}

export async function runOn(trace: MarketTrace, c: Omit<Case, 'path' | 'cacheDir'>): Promise<CaseResult> {
  const fromMs = epochMs(c.startMs);
  const windowS = c.hours * 3600;
  const setupS = seconds(c.overheadHours * 3600);
  const workS = c.fraction * windowS;
  const preset = c.preset.split('+')[0] ?? c.preset;
  const spec = jobSpec(trace, { workS, setupS: c.overheadHours * 3600, windowS });
  const result = await simulate({
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs,
    toMs: plus(fromMs, seconds(2 * windowS)),
    jobs: [{ key: 'job', submittedS: 0, spec, truth: new Map([['main', { runtimeS: Float64Array.of(workS) }]]) }],
    namesJobs: false,
    deciders: (truth) =>
      c.preset === 'oracle'
        ? oracle(truth)
        : { name: preset, stages: { ...presetNamed(preset).stages, estimate: known } },
    capacity: await capacityOf(c.capacity ?? null),
    solver: noSolver,
    config: schedulerConfig.parse({
      cyclePeriodS: CYCLE_S,
      restoreS: c.overheadHours * 3600,
      refundRule: 'none',
      lateBudget: c.lateBudget ?? 0,
    }),
    vcpus: 100_000,
    seed: 1,
    minGapS: seconds(1),
    setupS,
  });
  const { totals, jobs, refused } = outcomeOf(result, { preset: c.preset, seed: 1, fromMs });
  if (refused[0] !== undefined) throw new Error(`the job was refused: ${refused[0].what}`);
  const { window, hours, fraction, overheadHours } = c;
  return {
    window,
    hours,
    fraction,
    overheadHours,
    preset: c.preset,
    usd: totals.billedUsd,
    late: totals.missed > 0,
    attempts: totals.attempts,
    interruptions: totals.interruptions,
    finishedInS: ((jobs.finishedMs[0] ?? NaN) - c.startMs) / 1000,
  };
}

/** Task that fills the machine. Its stated running time includes one set-up, as a user would state it. */
function jobSpec(
  trace: MarketTrace,
  of: { readonly workS: number; readonly setupS: number; readonly windowS: number },
): JobSpec {
  const [pool] = trace.pools;
  if (pool === undefined) throw new Error('the market has no pool');
  const task = stage({
    resources: pool.type.capacity,
    checkpoint: { signal: 'SIGTERM', graceS: seconds(60), everyS: null },
    expectedRuntimeS: seconds(of.workS + of.setupS),
  });
  return spec({ name: 'long', class: 'deadline', deadline: { afterS: seconds(of.windowS) }, stages: [task] });
}
