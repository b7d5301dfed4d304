/**
 * Which instances to buy for 20,000 tasks that came at once: processor seconds of the decision, memory, and the bill
 * over its lower bound. The question of Karpenter's scheduling benchmark (kubernetes-sigs/karpenter,
 * pkg/controllers/provisioning/scheduling), with the whole decision of the preset `ebbtide`: value, appraisal, plan,
 * packing, purchase and explanations.
 *
 *   npm run bench:provision -- [--only time|bill|growth] [--tasks 20000] [--types FILE] [--requests FILE]... [--verbose]
 *
 * `--types` and `--requests` read types and tasks from JSON files (bench/provision/load.ts); default: the first 400
 * types of the catalogue, and tasks with drawn requests. Each measurement has a process of its own. Cold is the
 * first decision of a process, warm the median of the next three on fresh input.
 *
 * Prints inputs, versions and figures; judges nothing.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { planId, type PoolId } from '../lib/kernel/ids.ts';
import { raw } from '../lib/kernel/units.ts';
import { schedulerConfig } from '../lib/domain/config.ts';
import type { InterruptionCurve } from '../lib/domain/forecast.ts';
import { NEVER_INTERRUPTED } from '../lib/domain/forecast.ts';
import type { MarketForecast } from '../lib/domain/forecasts.ts';
import type { Job } from '../lib/domain/job.ts';
import type { Pool, PoolView } from '../lib/domain/pool.ts';
import { decide } from '../lib/cycle/decide/decide.ts';
import { takeSnapshot } from '../lib/cycle/state/snapshot.ts';
import { WorkingState } from '../lib/cycle/state/working-state.ts';
import { highsSolver } from '../lib/drivers/solver/highs-solver.ts';
import { DecisionMemory } from '../lib/policy/memory.ts';
import type { ActiveState } from '../lib/ports/store.ts';
import { presetNamed } from '../lib/stages/registry.ts';
import { lowestBill } from './provision/bound.ts';
import { beforePurchase, purchased, started } from './provision/cycles.ts';
import {
  catalogueShapes,
  drawnTasks,
  fakeShapes,
  jobsOf,
  manyClasses,
  poolViews,
  shapesIn,
  tasksIn,
  vcpusOfTasks,
  type TaskClass,
} from './provision/load.ts';
import { NO_BELIEFS } from './load/no-beliefs.ts';
import { NOW } from './load/values.ts';
import { machine, peakMiB, percentile } from './figures.ts';

const { values: args } = parseArgs({
  options: {
    only: { type: 'string' },
    tasks: { type: 'string', default: '20000' },
    types: { type: 'string' },
    requests: { type: 'string', multiple: true, default: [] },
    verbose: { type: 'boolean', default: false },
    measure: { type: 'string' },
  },
});

/** One measurement, as text for its own process. */
interface Case {
  readonly title: string;
  readonly tasks: number;
  /** Null: drawn requests. */
  readonly requests: string | null;
  readonly kinds: boolean;
  /** Number of classes; null: as drawn. */
  readonly classes: number | null;
  readonly single: boolean;
  readonly shapes: 'catalogue' | 'fake';
  readonly types: number;
  /** False: no pool is ever lost, and spreading over pools is worth nothing. */
  readonly risk: boolean;
  readonly bound: boolean;
  readonly rounds: number;
  readonly seed: number;
  /** True: the cycles after the purchase too. */
  readonly next?: boolean;
}

const BASE: Omit<Case, 'title'> = {
  tasks: Number(args.tasks),
  requests: null,
  kinds: true,
  classes: null,
  single: false,
  shapes: 'catalogue',
  types: 400,
  risk: true,
  bound: false,
  rounds: 4,
  seed: 42,
};

function casesOf(): readonly Case[] {
  const cases: Case[] = [];
  const is = (part: string): boolean => args.only === undefined || args.only === part;
  if (is('time')) {
    cases.push({ ...BASE, title: 'a job for each class' }, { ...BASE, title: 'a job for each task', single: true });
  }
  if (is('bill')) {
    for (const risk of [false, true]) {
      const bill = { ...BASE, risk, bound: true, rounds: 1 };
      const also = risk ? ', spread over pools for risk' : '';
      const given = args.requests.map((requests): Case => ({ ...bill, requests, title: `${requests}${also}` }));
      cases.push(
        { ...bill, title: `five kinds of constraints${also}` },
        { ...bill, kinds: false, title: `sizes only${also}` },
        { ...bill, shapes: 'fake', title: `fake types${also}` },
        ...given,
      );
    }
  }
  if (is('growth')) {
    const grown = { ...BASE, types: 84, rounds: 1, next: true };
    for (const [classes, tasks] of [
      [200, 100_000],
      [2000, 100_000],
      [20_000, 100_000],
      [2000, 1_000_000],
      [20_000, 1_000_000],
    ] as const) {
      cases.push({ ...grown, classes, tasks, title: `${classes} groups, ${tasks} tasks` });
    }
  }
  return cases;
}

const classesOf = (of: Case): readonly TaskClass[] =>
  of.requests !== null
    ? tasksIn(of.requests)
    : of.classes === null
      ? drawnTasks(of.tasks, of.seed, of.kinds)
      : manyClasses(of.classes, of.tasks);

const HOURLY = 0.02;
const HORIZONS = Float64Array.from([60, 900, 3600, 10_800, 21_600, 86_400, 259_200]);
const EQUAL_RISK: InterruptionCurve = {
  horizonS: HORIZONS,
  pInterrupted: HORIZONS.map((s) => 1 - Math.exp((-HOURLY * s) / 3600)),
  reason: 'given',
};

function marketOf(views: readonly PoolView[], risk: boolean): MarketForecast {
  const quotes = new Map(views.map((v) => [v.pool.id, v.quote]));
  return {
    interruption: (pool) => (risk && pool.option === 'spot' ? EQUAL_RISK : NEVER_INTERRUPTED),
    expectedPrice: (pool) => quotes.get(pool.id) ?? null,
    correlation: (a, b) => (a.id === b.id ? 1 : 0.1),
  };
}

interface Measured {
  readonly cpuS: readonly number[];
  /** Of each round the next cycle, in which all tasks start, and the one after it. */
  readonly laterS: readonly number[];
  readonly peakMiB: number;
  readonly usd: number;
  readonly instances: number;
  readonly unplaced: number;
  readonly boundUsd: number | null;
}

async function measured(of: Case): Promise<Measured> {
  const classes = classesOf(of);
  const shapes = args.types !== undefined && of.shapes === 'catalogue' ? shapesIn(args.types) : null;
  const views = poolViews(
    shapes ?? (of.shapes === 'fake' ? fakeShapes(of.types) : catalogueShapes(of.types)),
    of.shapes === 'fake',
  );
  const jobs = jobsOf(classes, of.single);
  const solver = highsSolver();
  const decides = deciderOf({ of, jobs, views, solver });
  const cpuS: number[] = [];
  const laterS: number[] = [];
  let bought = { usd: 0, instances: 0, unplaced: 0 };
  for (let round = 0; round < of.rounds; round++) {
    const memory = new DecisionMemory();
    const first = await decides(beforePurchase(jobs), memory);
    cpuS.push(first.cpuS);
    bought = { ...billOf(first.effects, views), unplaced: first.unplaced };
    if (of.next !== true) continue;
    // The bill is that of both cycles.
    const ready = purchased(jobs, first.effects);
    const placed = await decides(ready, memory);
    const more = billOf(placed.effects, views);
    const count = placed.effects.filter((e) => e.kind === 'start').length;
    const given = placed.effects.filter((e) => e.kind === 'release').length;
    const steady = await decides(started(ready, placed.effects), memory);
    laterS.push(placed.cpuS, steady.cpuS);
    console.error(`  placed ${count} tasks, bought ${more.instances} more, gave back ${given}`);
  }
  await solver.close();
  const boundUsd = of.bound ? await lowestBill(classes, views) : null;
  return { cpuS, laterS, peakMiB: peakMiB(), ...bought, boundUsd };
}

interface Decision {
  readonly cpuS: number;
  readonly effects: Decided['plan']['effects'];
  readonly unplaced: number;
}

/** One whole decision after the other, each on a state that it has not seen. */
function deciderOf({
  of,
  jobs,
  views,
  solver,
}: {
  readonly of: Case;
  readonly jobs: readonly Job[];
  readonly views: readonly PoolView[];
  readonly solver: ReturnType<typeof highsSolver>;
}): (active: ActiveState, memory: DecisionMemory) => Promise<Decision> {
  const config = schedulerConfig.parse(of.risk ? {} : { correlationPenalty: 0 });
  const poolById = new Map<PoolId, Pool>(views.map(({ pool }) => [pool.id, pool]));
  const limits = { vcpus: 100 * vcpusOfTasks(jobs) };
  let n = 0;
  return async (active, memory) => {
    const { stages } = presetNamed('ebbtide');
    const state = new WorkingState(active);
    const took = process.cpuUsage();
    const [dependencies, spentUsd] = [new Map(), new Map()];
    const snapshot = takeSnapshot({ state, nowMs: NOW, pools: views, poolById, dependencies, spentUsd, limits });
    const runtime = stages.estimate({ snapshot, config, memory, beliefs: NO_BELIEFS });
    const { plan, deliberation } = await decide({
      snapshot,
      forecasts: { runtime, market: marketOf(views, of.risk) },
      stages,
      memory,
      beliefs: NO_BELIEFS,
      preset: 'ebbtide',
      solver,
      config,
      plan: planId(`p-${n++}`),
      token: 1,
    });
    const { user, system } = process.cpuUsage(took);
    return { cpuS: (user + system) / 1e6, effects: plan.effects, unplaced: unplacedOf(deliberation) };
  };
}

type Decided = Awaited<ReturnType<typeof decide>>;

/** Tasks without an instance that was bought for them. */
function unplacedOf({ allotment, snapshot }: Decided['deliberation']): number {
  const wanted = snapshot.groups.reduce((n, g) => n + g.count, 0);
  return wanted - allotment.starts.reduce((n, s) => n + s.count, 0);
}

function billOf(effects: Decided['plan']['effects'], views: readonly PoolView[]) {
  const quotes = new Map(views.map((v) => [v.pool.id, v.quote === null ? 0 : raw(v.quote)]));
  const launches = effects.flatMap((e) => (e.kind === 'launch' ? [e] : []));
  if (args.verbose) {
    const pools = Map.groupBy(launches, (l) => l.pool);
    for (const [pool, list] of pools) console.error(`  ${list.length} x ${pool} at ${quotes.get(pool)?.toFixed(3)}`);
  }
  return { usd: launches.reduce((sum, l) => sum + (quotes.get(l.pool) ?? 0), 0), instances: launches.length };
}

function print({ title }: Case, of: Measured): void {
  const [cold = NaN, ...warm] = of.cpuS;
  const time =
    warm.length === 0
      ? `${cold.toFixed(2)} s`
      : `cold ${cold.toFixed(2)} s, warm ${percentile(warm, 0.5).toFixed(2)} s`;
  const bill = `${of.instances} instances, ${of.usd.toFixed(2)} USD/h`;
  const over = of.boundUsd === null ? '' : `, ${(of.usd / of.boundUsd).toFixed(3)} x the LP bound`;
  const left = of.unplaced === 0 ? '' : `, ${of.unplaced} tasks without room`;
  const [placed, steady] = of.laterS;
  const later = placed === undefined ? '' : `, next cycle ${placed.toFixed(2)} s, then ${steady?.toFixed(2)} s`;
  console.log(`  ${title}: processor ${time}${later}; peak ${of.peakMiB.toFixed(0)} MiB; ${bill}${over}${left}`);
}

if (args.measure !== undefined) {
  const of = JSON.parse(args.measure) as Case;
  print(of, await measured(of));
} else {
  console.log(`${JSON.stringify({ tasks: args.tasks, seed: 42, types: args.types ?? 'catalogue' })}\n  ${machine()}`);
  for (const of of casesOf()) {
    const script = fileURLToPath(import.meta.url);
    const flags = [script, ...process.argv.slice(2), '--measure', JSON.stringify(of)];
    const { status } = spawnSync(process.execPath, flags, { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
