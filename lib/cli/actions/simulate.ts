import { accessSync, constants, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import { readWorldRecord } from '../../local/world-record.ts';
import { DEFAULT_SEED } from '../../market/default-market.ts';
import { VERSION } from '../../local/version.ts';
import { decidersNamed } from '../../sim/deciders.ts';
import { compare, type Comparison } from '../../sim/report/comparison.ts';
import { refusalsOf } from '../../sim/report/details.ts';
import { pricesOf } from '../../sim/report/prices.ts';
import type { SimulateOptions } from '../commands/simulate.ts';
import type { Action, Context } from '../context.ts';
import { checkedSettings } from '../engine-options.ts';
import { json } from '../output.ts';
import { traceOf } from '../simulation/compose.ts';
import type { RunOrder, RunResult, WorkloadFacts } from '../simulation/order.ts';
import { runAll } from '../simulation/pool.ts';
import { showProgress } from '../simulation/progress.ts';
import { onStopRequest } from '../signals.ts';
import { simulationSummary } from '../views/simulation.ts';

/** Exit code of a program ended by SIGINT, as shells report it: what was simulated until then is reported as partial. */
const PARTIAL = 130;
const DEFAULT_WORKLOAD = 'synthetic:jobs=200';

/** `ebb simulate`: presets x windows x seeds, in parallel, compared. */
export const simulate: Action<SimulateOptions> = async (context, _args, options) => {
  const orders = await ordersOf(options, context);
  const abort = new AbortController();
  const unlisten = onStopRequest((count) => {
    if (count > 1) process.exit(PARTIAL);
    context.output.note('\nstopping: what has been simulated so far is reported (Ctrl-C again reports nothing)');
    abort.abort();
  });
  const progress = await showProgress(context.output, orders);
  let results: readonly RunResult[];
  try {
    results = await runAll(orders, { onProgress: progress.update, signal: abort.signal });
  } finally {
    progress.close();
    unlisten();
  }
  if (results.length > 0) await report(context, { options, orders, results });
  return abort.signal.aborted ? PARTIAL : 0;
};

/** Everything that can be found wrong without simulating is: presets, settings, window, market. */
async function ordersOf(options: SimulateOptions, { world }: Context): Promise<readonly RunOrder[]> {
  const presets = presetsOf(options);
  for (const flag of ['report', 'log'] as const) {
    const path = options[flag];
    if (path !== undefined) expectWritable(`--${flag}`, resolve(world.cwd, path));
  }
  const { preset: _, ...settings } = checkedSettings(options.set ?? {});
  if (options.replay !== undefined && options.workload !== undefined) {
    throw new EbbError('usage', { what: '--workload and --replay both name the jobs', next: 'leave one out' });
  }
  const replay = options.replay === undefined ? null : resolve(world.cwd, options.replay);
  const recorded = replay === null ? null : readWorldRecord(replay);
  const market = options.market === undefined ? (recorded?.market ?? null) : resolve(world.cwd, options.market);
  const firstSeed = options.seed ?? 1;
  const seeds = Array.from({ length: options.seeds }, (_, i) => firstSeed + i);
  const base = {
    market,
    cache: join(resolve(world.cwd, options.dir), 'markets'),
    toMs: options.to ?? null,
    config: settings,
    vcpus: options.vcpus,
    minGapS: options.gap,
    setupS: options.setup,
    log: options.log === undefined ? null : resolve(world.cwd, options.log),
  };
  const marketSeed = (seed: number): number => recorded?.seed ?? DEFAULT_SEED + seed - firstSeed;
  const trace = await traceOf({ ...base, marketSeed: marketSeed(firstSeed) });
  const windows = windowsOf(options, { fromMs: raw(trace.startMs), toMs: raw(trace.endMs) });
  const runs = windows.flatMap((fromMs) =>
    seeds.flatMap((seed) => presets.map((preset) => ({ fromMs, seed, preset }))),
  );
  if (base.log !== null && runs.length > 1) {
    throw new EbbError('usage', {
      what: '--log is the log of one simulation',
      got: `${runs.length} simulations`,
      next: 'leave out --compare, --windows and --seeds, or --log',
    });
  }
  return runs.map(({ fromMs, seed, preset }): RunOrder => {
    const workload =
      replay === null ? { path: pathOf(options, world.cwd), options: readerOptions(options, seed) } : { replay };
    return { ...base, preset, seed, marketSeed: marketSeed(seed), fromMs, workload };
  });
}

/** Before hours are spent on what cannot be written. Throws `usage`. */
function expectWritable(flag: string, path: string): void {
  const folder = dirname(path);
  const refuse = (what: string, next: string): never => {
    throw new EbbError('usage', { what: `${flag} cannot be written: ${what}`, got: path, next });
  };
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    refuse('its folder does not exist', `create it with: mkdir -p ${folder}`);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) refuse('it is a folder', 'name a file in it');
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    refuse('its folder is not yours to write to', 'name a file in another folder');
  }
}

function presetsOf({ preset, compare: several }: SimulateOptions): readonly string[] {
  if (preset !== undefined && several !== undefined) {
    throw new EbbError('usage', { what: '--preset and --compare both name what decides', next: 'leave one out' });
  }
  const names = [...new Set(several ?? [preset ?? 'ebbtide'])];
  for (const name of names) decidersNamed(name);
  return names;
}

function windowsOf(
  { windows, from, to }: SimulateOptions,
  market: { readonly fromMs: number; readonly toMs: number },
): readonly (number | null)[] {
  if (windows <= 1) return [from ?? null];
  const first = from ?? market.fromMs;
  const stepMs = (Math.min(to ?? market.toMs, market.toMs) - first) / windows;
  return Array.from({ length: windows }, (_, i) => Math.round(first + i * stepMs));
}

/** Names of generated workloads are no paths. */
function pathOf({ workload = DEFAULT_WORKLOAD }: SimulateOptions, cwd: string): string {
  return workload.startsWith('synthetic:') ? workload : resolve(cwd, workload);
}

const readerOptions = ({ scale, jobsLimit, workloadOption }: SimulateOptions, seed: number) => ({
  seed,
  ...(scale === undefined ? {} : { scale }),
  ...(jobsLimit === undefined ? {} : { jobsLimit }),
  ...workloadOption,
});

/** What was asked for and what came of it. */
interface Done {
  readonly options: SimulateOptions;
  readonly orders: readonly RunOrder[];
  readonly results: readonly RunResult[];
}

async function report({ output, json: asJson, world }: Context, { options, orders, results }: Done): Promise<void> {
  const comparison = compare(results.map((r) => r.outcome));
  const path = options.report === undefined ? null : resolve(world.cwd, options.report);
  if (path !== null) await writeReport(path, { options, orders, results, comparison });
  const workload = results[0]?.workload;
  const refusals = refusalsOf(results.map((r) => r.outcome));
  if (asJson) json(output, { ...comparison, refusals, workload: workload === undefined ? null : factsOf(workload) });
  else {
    for (const note of workload === undefined ? [] : [...workload.notes, ...findingsOf(workload)]) output.note(note);
    for (const { code, count, first } of refusals) {
      const [example] = first;
      const where = results.length > 1 ? `, in ${results.length} simulations` : '';
      output.note(`${count} refused at submission${where}: ${code}; ${example?.key ?? ''}: ${example?.what ?? ''}`);
    }
    output.line(simulationSummary(output, comparison, options.report ?? null));
  }
}

/** Whole or not at all. */
async function writeReport(
  path: string,
  { options, orders, results, comparison }: Done & { readonly comparison: Comparison },
): Promise<void> {
  const [first] = orders;
  const [run] = results;
  if (first === undefined || run === undefined) return;
  const { reportHtml } = await import('../../sim/report/html.ts');
  const trace = await traceOf(first);
  const runs = results.map((r) => r.outcome);
  const text = await reportHtml({
    title: `${run.workload.name} on ${trace.name}`,
    workload: `${run.workload.name} (${run.workload.format})`,
    market: trace.name,
    command: commandOf(options),
    versions: { ebbtide: VERSION, node: process.versions.node },
    notes: findingsOf(run.workload),
    assumptions: run.workload.notes,
    runs,
    comparison,
    prices: pricesOf(trace, runs),
  });
  const temporary = `${path}.part`;
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}

/** What the reader left out, changed and could not use: for people. */
function findingsOf({ report }: WorkloadFacts): readonly string[] {
  const counted = (what: ReadonlyMap<string, number>): string[] => [...what].map(([why, n]) => `${n} ${why}`);
  const bad = report.bad.first.map((b) => `${b.file}:${b.line}: ${b.what}`);
  const more = report.bad.count - bad.length;
  return [
    ...counted(report.dropped),
    ...counted(report.adjusted),
    ...bad,
    ...(more > 0 ? [`${more} more bad lines`] : []),
  ];
}

/** The command line again, as far as it decides what comes out. */
function commandOf(options: SimulateOptions): string {
  const given = Object.entries(options).filter(([name]) => DECIDES.some((d) => d === name));
  const words = given.flatMap(([name, value]): string[] => {
    const flag = `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
    if (value === undefined) return [];
    if (name === 'from' || name === 'to') return [`${flag} ${new Date(value as number).toISOString()}`];
    if (Array.isArray(value)) return [`${flag} ${value.join(',')}`];
    if (typeof value === 'object')
      return Object.entries(value as object).map(([k, v]) => `${flag} ${k}=${JSON.stringify(v)}`);
    return [`${flag} ${String(value)}`];
  });
  return ['ebb simulate', ...words].join(' ');
}

const DECIDES = [
  'workload',
  'replay',
  'market',
  'preset',
  'compare',
  'from',
  'to',
  'windows',
  'seeds',
  'seed',
  'scale',
  'jobsLimit',
  'workloadOption',
  'set',
  'vcpus',
  'gap',
  'setup',
] as const satisfies readonly (keyof SimulateOptions)[];

const factsOf = ({ report, ...facts }: WorkloadFacts) => ({
  ...facts,
  report: { ...report, dropped: Object.fromEntries(report.dropped), adjusted: Object.fromEntries(report.adjusted) },
});
