import { renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import { presetNamed } from '../../cycle/presets.ts';
import { readWorldRecord } from '../../local/world-record.ts';
import { DEFAULT_SEED } from '../../market/default-market.ts';
import { compare } from '../../sim/report/comparison.ts';
import type { SimulateOptions } from '../commands/simulate.ts';
import type { Action, Context } from '../context.ts';
import { checkedSettings } from '../engine-options.ts';
import { json } from '../output.ts';
import { traceOf } from '../simulation/compose.ts';
import type { RunOrder, RunResult } from '../simulation/order.ts';
import { runAll } from '../simulation/pool.ts';
import { showProgress } from '../simulation/progress.ts';
import { onStopRequest } from '../signals.ts';

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
  if (results.length > 0) await report(context, options, results);
  return abort.signal.aborted ? PARTIAL : 0;
};

/** Everything that can be found wrong without simulating is: presets, settings, window, market. */
async function ordersOf(options: SimulateOptions, { world }: Context): Promise<readonly RunOrder[]> {
  const presets = presetsOf(options);
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

function presetsOf({ preset, compare: several }: SimulateOptions): readonly string[] {
  if (preset !== undefined && several !== undefined) {
    throw new EbbError('usage', { what: '--preset and --compare both name what decides', next: 'leave one out' });
  }
  const names = [...new Set(several ?? [preset ?? 'ebbtide'])];
  for (const name of names) presetNamed(name);
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

async function report(
  { output, json: asJson, world }: Context,
  options: SimulateOptions,
  results: readonly RunResult[],
): Promise<void> {
  const comparison = compare(results.map((r) => r.outcome));
  if (asJson) json(output, comparison);
  else output.line(JSON.stringify(comparison, null, 1));
}

/** Whole or not at all. */
export function writeWhole(path: string, text: string): void {
  const temporary = `${path}.part`;
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}
