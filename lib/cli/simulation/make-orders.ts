/** Orders of `ebb simulate`: one per simulation. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../domain/config.ts';
import { settingsOf, vcpuLimit, MIN_GAP_WALL_S } from '../../drivers/local/market/world.ts';
import { readWorldRecord, type WorldRecord } from '../../drivers/local/market/world-record.ts';
import { DEFAULT_SEED } from '../../market/default-market.ts';
import { ownVcpus } from '../../market/cluster.ts';
import type { MarketTrace } from '../../market/trace.ts';
import { loadPolicies } from '../../drivers/local/policies/load-policies.ts';
import { decidersNamed } from '../../drivers/sim/deciders.ts';
import { isSynthetic } from '../../workload/synthetic.ts';
import { givenSettings } from '../engine-options.ts';
import { marketOf } from './compose-simulation.ts';
import type { RunOrder } from './run-order.ts';
import { servicesOf } from './simulated-services.ts';
import { targetsOf } from './targets.ts';
import { usualStart, windowStarts } from './windows.ts';
import type { SimulateOptions } from '../flags/simulate-flags.ts';

const DEFAULT_WORKLOAD = 'synthetic:jobs=200';
const DEFAULT_PRESET = 'ebbtide';
/** Default vCPU limit, too high to bind. */
const DEFAULT_VCPUS = 100_000;
const DEFAULT_GAP_S = 5;
/** Most simulations: outcomes are held in memory, some 100 KB each plus a row per job. */
export const MOST_RUNS = 10_000;

export interface Ordered {
  readonly orders: readonly RunOrder[];
  /** Path of the report, links resolved; null: none. */
  readonly report: string | null;
  /** Assumptions about requests to services, for people. */
  readonly notes: readonly string[];
}

/** Checks everything that needs no simulation: presets, settings, files, windows, market. Throws EbbError `usage`. */
export async function ordersOf(options: SimulateOptions, cwd: string): Promise<Ordered> {
  const { presets, settings } = await decidingOf(options, cwd);
  const path = (given: string | undefined): string | null => (given === undefined ? null : resolve(cwd, given));
  const files = targetsOf({ report: path(options.report), log: path(options.log) });
  expectOneSource(options);
  const { services, notes } = await servicesOf(options, cwd, settings.policyModules ?? []);
  const replay = path(options.replay);
  const record = replay === null ? null : readWorldRecord(replay);
  const firstSeed = options.seed ?? 1;
  const seeds = Array.from({ length: options.seeds }, (_, i) => firstSeed + i);
  const market = path(options.market) ?? marketOfRecord(record);
  const marketSeed = (seed: number): number => record?.seed ?? DEFAULT_SEED + seed - firstSeed;
  const cluster = options.cluster ?? (options.market === undefined ? record?.cluster : undefined);
  const place = {
    market,
    ...(cluster === undefined ? {} : { cluster }),
    cache: join(resolve(cwd, options.dir), 'markets'),
  };
  const { trace } = await marketOf({ ...place, marketSeed: marketSeed(firstSeed) });
  const base = {
    ...place,
    dir: replay ?? resolve(cwd, options.dir),
    ownMarkets: market === null && record === null && cluster === undefined,
    toMs: options.to ?? null,
    ...termsOf(options, { settings, record, trace }),
    setupS: options.setup,
    migrationMBPerS: options.migrationRate,
    services,
    ...(options.stragglers === undefined ? {} : { stragglers: options.stragglers }),
    // They take the running times of the workload, and know nothing of services.
    references: options.stragglers === undefined && services.length === 0,
    log: files.log,
  };
  const windows = windowsOf(options, trace, market === null);
  expectPossible(windows.length * seeds.length * presets.length, files.log);
  const runs = windows.flatMap((fromMs) =>
    seeds.flatMap((seed) => presets.map((preset) => ({ fromMs, seed, preset: preset ?? record?.preset }))),
  );
  const orders = runs.map(({ fromMs, seed, preset = DEFAULT_PRESET }): RunOrder => {
    const path = workloadOf(options, cwd);
    const workload =
      replay !== null ? { replay } : path === null ? null : { path, options: readerOptions(options, seed) };
    return { ...base, preset, seed, marketSeed: marketSeed(seed), fromMs, workload };
  });
  return { orders, report: files.report, notes };
}

/** Market of a record; null: a generated one, or no record. */
function marketOfRecord(record: WorldRecord | null): string | null {
  const market = record?.market ?? null;
  if (market === null || existsSync(market)) return market;
  throw new EbbError('market.invalid', {
    what: 'the market of the record no longer exists',
    got: market,
    next: 'put it back, or name another one by --market',
  });
}

interface Deciding {
  /** Presets; null: the one of the record, else the default. */
  readonly presets: readonly (string | null)[];
  readonly settings: Partial<SchedulerConfig>;
}

async function decidingOf(options: SimulateOptions, cwd: string): Promise<Deciding> {
  const { preset, compare, set } = options;
  const { preset: asSetting, ...settings } = givenSettings(options, cwd);
  const named = { '--preset': preset, '--compare': compare, '--set preset=': set?.['preset'] };
  const given = Object.entries(named).flatMap(([flag, name]) => (name === undefined ? [] : [flag]));
  if (given.length > 1) {
    throw new EbbError('usage', { what: `${given.join(' and ')} both name what decides`, next: 'leave one out' });
  }
  const names = [...new Set(compare ?? [preset ?? asSetting ?? null])];
  const own = await loadPolicies(settings);
  for (const name of names) if (name !== null) decidersNamed(name, settings.presets, own);
  return { presets: names, settings };
}

/** Options for workloads that are read from files. */
const READING = ['scale', 'jobsLimit', 'workloadOption'] as const;

function expectOneSource(options: SimulateOptions): void {
  if (options.replay === undefined) return;
  if (options.workload !== undefined) {
    throw new EbbError('usage', { what: '--workload and --replay both name the jobs', next: 'leave one out' });
  }
  const idle = READING.filter((name) => options[name] !== undefined);
  if (idle.length > 0) {
    throw new EbbError('usage', {
      what: 'a record is replayed as it is',
      got: `--replay with ${idle.map((name) => `--${name.replace(/[A-Z]/, (c) => `-${c.toLowerCase()}`)}`).join(', ')}`,
      next: 'leave them out',
    });
  }
  if (options.windows > 1 && options.from === undefined) {
    throw new EbbError('usage', {
      what: 'a record has one beginning',
      got: '--replay with --windows',
      next: 'say with --from where the windows are to begin',
    });
  }
}

/** Decision settings: in a replay those of the record, with the given ones over them. */
function termsOf(
  options: SimulateOptions,
  of: { readonly settings: Partial<SchedulerConfig>; readonly record: WorldRecord | null; readonly trace: MarketTrace },
): Pick<RunOrder, 'config' | 'vcpus' | 'minGapS'> {
  const { settings, record, trace } = of;
  const { vcpus = record === null ? Math.max(DEFAULT_VCPUS, ownVcpus(trace)) : (record.vcpus ?? vcpuLimit(trace)) } =
    options;
  const { gap = record === null ? DEFAULT_GAP_S : MIN_GAP_WALL_S * record.speed } = options;
  if (record === null) return { config: settings, vcpus, minGapS: gap };
  const recorded = settingsOf(record, trace);
  const restoreS = Math.max(recorded.restoreS, options.setup);
  const usualS = schedulerConfig.parse({}).turnoverS;
  const turnoverS = options.gap === undefined ? recorded.turnoverS : Math.max(usualS, gap);
  const migrationMBPerS = options.migrationRate;
  return { config: { ...recorded, restoreS, migrationMBPerS, turnoverS, ...settings }, vcpus, minGapS: gap };
}

/** Starts of windows; null: the first recorded submission. */
function windowsOf(
  { windows, from, to, replay }: SimulateOptions,
  trace: MarketTrace,
  generated: boolean,
): readonly (number | null)[] {
  if (replay !== undefined && from === undefined) return [null];
  const fromMs = from ?? raw(usualStart(trace, generated));
  return windowStarts(windows, { fromMs, toMs: Math.min(to ?? Infinity, raw(trace.endMs)) });
}

function expectPossible(runs: number, log: string | null): void {
  if (runs > MOST_RUNS) {
    throw new EbbError('usage', {
      what: 'these are too many simulations for one comparison',
      got: `${runs.toLocaleString('en-US')} (presets x windows x seeds)`,
      allowed: `at most ${MOST_RUNS.toLocaleString('en-US')}`,
      next: 'ask for fewer --windows or --seeds',
    });
  }
  if (log !== null && runs > 1) {
    throw new EbbError('usage', {
      what: '--log is the log of one simulation',
      got: `${runs} simulations`,
      next: 'leave out --compare, --windows and --seeds, or --log',
    });
  }
}

/** Workload by path; names of generated workloads are no paths. Null: services alone. */
function workloadOf({ workload: given, service = [] }: SimulateOptions, cwd: string): string | null {
  if (given === undefined && service.length > 0) return null;
  const workload = given ?? DEFAULT_WORKLOAD;
  return isSynthetic(workload) ? workload : resolve(cwd, workload);
}

const readerOptions = ({ scale, jobsLimit, workloadOption }: SimulateOptions, seed: number) => ({
  seed,
  ...(scale === undefined ? {} : { scale }),
  ...(jobsLimit === undefined ? {} : { jobsLimit }),
  ...workloadOption,
});
