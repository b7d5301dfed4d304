/** Composes one simulation from its order: market, workload, deciders, solver. The composition root of a thread. */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { EbbError } from '../../kernel/errors.ts';
import { epochMs, lt, raw, seconds, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../domain/config.ts';
import { FROM_HISTORY, type ChosenForecast } from '../../domain/forecast.ts';
import { expectFootprint } from '../../stages/services/footprints.ts';
import { forecastNamed } from '../../stages/registry.ts';
import { modelPlaces } from '../../drivers/local/models/model-places.ts';
import { loadPolicies, loadScalings } from '../../drivers/local/policies/load-policies.ts';
import { highsSolver } from '../../drivers/solver/highs-solver.ts';
import { openMarket } from '../../drivers/local/market/import.ts';
import { replayMarket } from '../../drivers/local/market/replay.ts';
import { straggling } from '../../drivers/sim/stragglers.ts';
import { readRecorded, type Recorded, type RecordedJob } from '../../drivers/local/engine/recorded.ts';
import { billingAt } from '../../market/billing.ts';
import { marketWithCluster, settingsOfCluster } from '../../market/cluster.ts';
import { defaultMarket } from '../../market/default-market.ts';
import { CAPACITY_FEATURES } from '../../market/features/capacity-features.ts';
import { FEATURES } from '../../market/features/names.ts';
import type { MarketTrace } from '../../market/trace.ts';
import { openCapacity, openForecast, type OpenedCapacity, type OpenedForecast } from '../../models/preemption.ts';
import type { OwnPolicy } from '../../policy/own/own-policy.ts';
import { settingsUnder } from '../../policy/preset-chain.ts';
import { deterministic } from '../../policy/solver.ts';
import type { EventRecord } from '../../ports/store.ts';
import { decidersNamed, decidesItself, marketOfDecider } from '../../drivers/sim/deciders.ts';
import { outcomeOf } from '../../drivers/sim/outcome-of-run.ts';
import { Admitted, referencesOf } from '../../drivers/sim/reference/references.ts';
import { ORACLE_FORECAST } from '../../drivers/sim/true-interruptions.ts';
import { simulate, type Progress } from '../../drivers/sim/simulation.ts';
import { openWorkload } from '../../workload/open.ts';
import type { StageTruth, WorkloadJob } from '../../workload/workload.ts';
import { dollars, instant, plural } from '../format.ts';
import type { RunOrder, RunResult, WorkloadFacts } from './run-order.ts';
import { unwritten } from './targets.ts';
import { usualStart } from './windows.ts';

/** Most branch-and-bound nodes of a plan's solver. It starts from a good plan and rarely needs more than a few. */
const SOLVER_NODES = 50;

export interface Watching {
  readonly onProgress: (progress: Progress & Pick<Source, 'mostJobs'>) => void;
  readonly signal: AbortSignal;
}

export async function runOrder(order: RunOrder, { onProgress, signal }: Watching): Promise<RunResult> {
  const began = performance.now();
  const { trace, notes: marketNotes } = await marketOf(order);
  const source = await sourceOf(order);
  const fromMs =
    order.fromMs === null ? (source.recordedFromMs ?? usualStart(trace, order.market === null)) : epochMs(order.fromMs);
  const toMs = order.toMs === null ? trace.endMs : epochMs(order.toMs);
  const config = configOf(order, trace);
  const ownPolicies = await loadPolicies(config);
  const forecast = await forecastOf({ ...order, forecast: config.forecast, presets: config.presets, ownPolicies });
  const capacity = await capacityOf(config, order.dir);
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const log = order.log === null ? null : new EventLog(order.log);
  const admitted = new Admitted();
  const setupS = seconds(order.setupS);
  try {
    const { preset, seed, ownMarkets, marketSeed } = order;
    const offered = marketOfDecider(trace, preset, order.config.presets, ownPolicies);
    const result = await simulate({
      trace: offered,
      market: (now) => replayMarket(offered, now),
      fromMs,
      toMs,
      jobs: source.jobs,
      namesJobs: source.namesJobs,
      deciders: decidersNamed(preset, order.config.presets, ownPolicies),
      forecast,
      capacity,
      solver,
      config,
      vcpus: order.vcpus,
      seed: order.seed,
      minGapS: seconds(order.minGapS),
      setupS,
      ...rateOf(order),
      ...(await conditionsOf(order, config)),
      ...(order.references && { onAdmitted: admitted.add }),
      ...(log === null ? {} : { onEvent: (event) => log.write(event) }),
      onProgress: (progress) => onProgress({ ...progress, mostJobs: source.mostJobs }),
      signal,
    });
    log?.finish();
    const of = { preset, seed, marketSeed: ownMarkets ? marketSeed : null, fromMs };
    const scene = { trace, config, fromMs, toMs, setupS };
    // A run that was cut short has done another part of its work than the references are of.
    const isWhole = order.references && result.ended !== 'aborted';
    const references = isWhole ? referencesOf(admitted.jobs, scene) : null;
    const outcome = outcomeOf(result, { ...of, ...(references && { references }) });
    return {
      outcome,
      workload: source.facts(),
      marketNotes: [...marketNotes, billingText(config), ...withoutModel(forecast)],
      tookS: (performance.now() - began) / 1000,
    };
  } finally {
    log?.close();
    await forecast.close();
    await capacity.close();
    await solver.close();
  }
}

/** A model that was to answer for spiky pools, opened by their first question, and could not be. */
const withoutModel = ({ chosen, refused }: ChosenForecast): readonly string[] =>
  refused === null ? [] : [`prices of pools that spike were forecast from history, not ${chosen}: ${refused}`];

/**
 * Price forecast of the setting or the preset. `oracle` knows future interruptions, in simulations only. Throws `usage`
 * for a model that cannot be loaded: history in its place would be another experiment.
 */
export async function forecastOf({
  preset,
  dir,
  forecast,
  presets,
  ownPolicies = [],
}: Pick<RunOrder, 'preset' | 'dir'> &
  Pick<SchedulerConfig, 'forecast' | 'presets'> & { readonly ownPolicies?: readonly OwnPolicy[] }): Promise<
  Pick<OpenedForecast, keyof ChosenForecast | 'close'>
> {
  const name = decidesItself(preset) ? FROM_HISTORY.chosen : forecastNamed(forecast, preset, presets, ownPolicies);
  if (name === ORACLE_FORECAST.chosen) return { ...ORACLE_FORECAST, close: async () => undefined };
  const opened = await openForecast(name, modelPlaces(dir), FEATURES);
  if (opened.refused === null) return opened;
  throw new EbbError('usage', {
    what: 'the model that is to forecast prices cannot be asked',
    got: opened.refused,
    next: 'name a version below models/preemption (docs/forecast.md), or leave prices to history: --set forecast=history',
  });
}

/** Capacity forecast, likewise. */
async function capacityOf({ capacityForecast }: SchedulerConfig, dir: string): Promise<OpenedCapacity> {
  const opened = await openCapacity(capacityForecast, modelPlaces(dir, 'capacity'), CAPACITY_FEATURES);
  if (opened.refused === null) return opened;
  throw new EbbError('usage', {
    what: 'the model that is to forecast capacity cannot be asked',
    got: opened.refused,
    next: 'train one with `ebb models train --risk capacity` (docs/forecast-capacity.md), or leave it out: --set capacityForecast=observed',
  });
}

/** Market with the assumptions of its import, for people. Throws `market.invalid`. */
export const marketOf = async ({
  market,
  cluster,
  marketSeed,
  cache,
}: Pick<RunOrder, 'market' | 'cluster' | 'marketSeed' | 'cache'>): Promise<{
  readonly trace: MarketTrace;
  readonly notes: readonly string[];
}> => {
  const generated = cluster === undefined ? defaultMarket(marketSeed) : null;
  const { trace, notes } = market === null ? { trace: generated, notes: [] } : await openMarket(market, cache);
  return { trace: trace === null || cluster !== undefined ? marketWithCluster(trace, cluster ?? '') : trace, notes };
};

/** Services with their scaling policies, and attempts that straggle. */
const conditionsOf = async ({ services = [], stragglers, seed }: RunOrder, config: SchedulerConfig) => ({
  services,
  scalings: await loadScalings(config),
  ...(stragglers === undefined ? {} : { runtime: straggling(stragglers, seed) }),
});

const rateOf = ({ migrationMBPerS }: Pick<RunOrder, 'migrationMBPerS'>) =>
  migrationMBPerS === undefined ? {} : { migrationMBPerS };

/**
 * Settings as in local mode: billing of the market's time, values that follow from the gap between decisions, then
 * those of the user, then those of the preset.
 */
export function configOf(
  order: Pick<RunOrder, 'preset' | 'config' | 'setupS' | 'migrationMBPerS' | 'minGapS'>,
  trace: MarketTrace,
): SchedulerConfig {
  const { preset, config, setupS, minGapS } = order;
  const defaults = schedulerConfig.parse({});
  const deployed = schedulerConfig.parse({
    billing: billingAt(trace.endMs),
    ...settingsOfCluster(trace),
    restoreS: Math.max(defaults.restoreS, setupS),
    ...rateOf(order),
    turnoverS: Math.max(defaults.turnoverS, minGapS),
    ...config,
  });
  expectFootprint(deployed.serviceFootprint);
  return decidesItself(preset) ? deployed : settingsUnder(preset, deployed);
}

/** Billing rules in words: old and new markets differ most by them, as jobs of minutes pay for hours. */
const billingText = ({ billing, refundRule }: SchedulerConfig): string =>
  (billing === 'per-hour'
    ? 'Billed by the hour, a started one in full, as EC2 did until October 2017 (--set billing=per-second for today'
    : 'Billed by the second, a minute at least (--set billing=per-hour for as it was until October 2017') +
  `); ${refundRule === 'first-hour' ? 'what the market takes in its first hour is free' : 'what the market takes is paid for as well'}.`;

interface Source {
  readonly jobs: AsyncIterable<WorkloadJob> | Iterable<WorkloadJob>;
  readonly namesJobs: boolean;
  /** Upper bound of the number of jobs; null: unknown before they are read. */
  readonly mostJobs: number | null;
  /** Market time of the first recorded submission. */
  readonly recordedFromMs: EpochMs | null;
  readonly facts: () => WorkloadFacts;
}

const NO_JOBS: Source = {
  jobs: [],
  namesJobs: false,
  mostJobs: null,
  recordedFromMs: null,
  facts: () => ({
    name: 'services',
    format: 'no jobs',
    notes: [],
    report: { jobs: 0, tasks: 0, bad: { count: 0, first: [] }, dropped: new Map(), adjusted: new Map() },
  }),
};

async function sourceOf({ workload }: RunOrder): Promise<Source> {
  if (workload === null) return NO_JOBS;
  if ('replay' in workload) return recordedSource(workload.replay);
  const opened = await openWorkload(workload.path, workload.options);
  const { name, format, notes, mostJobs } = opened;
  return {
    jobs: opened.jobs(),
    namesJobs: format === 'job-files',
    mostJobs,
    recordedFromMs: null,
    facts: () => ({ name, format, notes, report: opened.report() }),
  };
}

async function recordedSource(dir: string): Promise<Source> {
  const recorded = await readRecorded(dir);
  const { jobs, firstPurchaseMs } = recorded;
  const first = jobs[0];
  if (first === undefined) {
    throw new EbbError('workload.invalid', {
      what: 'nothing was recorded: no job was ever submitted to the engine of this directory',
      got: dir,
      next: 'name a directory in which jobs ran',
    });
  }
  const startMs = raw(first.job.submittedMs);
  const notes = recordNotes(recorded, startMs);
  const tasks = jobs.reduce((n, { job }) => n + job.stages.reduce((m, s) => m + s.tasks, 0), 0);
  const report = { jobs: jobs.length, tasks, bad: { count: 0, first: [] }, dropped: new Map(), adjusted: new Map() };
  const names = new Map<string, string>(jobs.map(({ job }) => [job.id, job.spec.name]));
  return {
    jobs: jobs.map((j) => {
      // No decision was made before: `ebb run` submits all jobs before its engine begins.
      const together = firstPurchaseMs !== null && lt(j.job.submittedMs, firstPurchaseMs);
      const submittedS = together ? 0 : secondsBetween(first.job.submittedMs, j.job.submittedMs);
      return asSubmitted(j, submittedS, names);
    }),
    namesJobs: true,
    mostJobs: jobs.length,
    recordedFromMs: first.job.submittedMs,
    facts: () => ({ name: dir, format: 'recorded', notes, report }),
  };
}

/** Notes for comparison with the recorded run, and on facts that a record lacks. */
function recordNotes({ jobs, world, billedUsd, open }: Recorded, startMs: number): readonly string[] {
  const guessed = jobs.reduce((n, j) => n + j.guessed, 0);
  // Live instances have no bill yet.
  const sofar = open ? 'not all of its jobs are over yet' : `there it cost ${dollars(billedUsd)} in all`;
  return [
    `Recorded by preset ${world.preset}, from ${instant(new Date(startMs).toISOString())} UTC; ${sofar}.`,
    'A task takes as long as it took on its instance there, whatever type it is given here.',
    ...(guessed === 0
      ? []
      : [
          `${plural(guessed, 'task')} did not finish there. Their running times are guesses: that of failed tries, else the median of the stage, else the expected one, and at least the time that they ran.`,
        ]),
  ];
}

/** The job as submitted here. Its dependencies have other ids and are found by name. */
function asSubmitted(
  { job, runtimeS, failures }: RecordedJob,
  submittedS: number,
  names: ReadonlyMap<string, string>,
): WorkloadJob {
  const truth = new Map<string, StageTruth>();
  for (const [stage, runtimes] of runtimeS) {
    truth.set(stage, { runtimeS: runtimes, failures: failures.get(stage) ?? new Uint16Array(runtimes.length) });
  }
  const spec = { ...job.spec, after: job.after.flatMap((id) => names.get(id) ?? []) };
  return { key: job.id, submittedS, spec, truth };
}

/** Log of events as JSON lines, in order: equal inputs give equal files. */
class EventLog {
  readonly #path: string;
  /** File, opened with the first event: a simulation that cannot begin leaves an older file alone. */
  #file: number | null = null;
  #lines: string[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  write(event: EventRecord): void {
    this.#lines.push(JSON.stringify(event));
    if (this.#lines.length >= 1000) this.#flush();
  }

  /** Writes the rest; without events the file is empty. */
  finish(): void {
    this.#flush();
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }

  #flush(): void {
    try {
      this.#file ??= openSync(this.#path, 'w');
      if (this.#lines.length > 0) writeFileSync(this.#file, `${this.#lines.join('\n')}\n`);
    } catch (error) {
      throw unwritten('--log', this.#path, error);
    }
    this.#lines = [];
  }
}
