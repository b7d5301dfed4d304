/**
 * Decision of one whole cycle, with solver, from a state as loaded from the store. Measured are snapshot, all stages of
 * the preset `ebbtide`, explanations, effects and intents, but not store, capacity and HTTP.
 *
 *   node bench/cycle.ts [--only small|large] [--seeds 30] [--market generated|FILE|FOLDER] [--solver-gap G] [--verbose]
 *
 * small: 200 waiting groups x 100 pools, contended; large: 100,000 tasks in 2,000 groups x 500 pools. Each size runs in
 * its own process, for its own peak memory. Seeds are a minute of market time apart, on the forecaster and solver of
 * one engine. `--solver-gap 0` runs the solver even if a fill is within the usual gap.
 *
 * Prints inputs, versions and figures; judges nothing.
 */
import { DecisionMemory } from '../lib/policy/memory.ts';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { invariant } from '../lib/kernel/errors.ts';
import { planId } from '../lib/kernel/ids.ts';
import { plus, seconds } from '../lib/kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../lib/domain/config.ts';
import type { PlanInput, Stages } from '../lib/policy/contracts.ts';
import type { LearnedRuntimes } from '../lib/domain/forecasts.ts';
import { decide } from '../lib/cycle/decide/decide.ts';
import { explain } from '../lib/cycle/explain/explain.ts';
import { recordIntents } from '../lib/cycle/act/intents.ts';
import { presetNamed } from '../lib/stages/registry.ts';
import { YOUNG_GENERATION_MIB } from '../lib/drivers/local/engine/engine-watch.ts';
import { highsSolver } from '../lib/drivers/solver/highs-solver.ts';
import { MarketForecaster } from '../lib/market/forecast/forecaster.ts';
import { CapacityEvidence } from '../lib/market/forecast/hazard.ts';
import { allotmentOf } from '../lib/stages/plan/allotment.ts';
import { planProblem, type Planned } from '../lib/stages/plan/milp.ts';
import { BY_PROGRAM } from '../lib/stages/plan/options.ts';
import { problemOf, type Problem } from '../lib/stages/plan/problem.ts';
import type { Solver } from '../lib/policy/solver.ts';
import {
  benchHistory,
  benchMarket,
  benchSnapshot,
  benchState,
  type BenchMarket,
  type LoadShape,
} from './cycle-load.ts';
import { asCount, asMs, asPercent, gapsOf, machine, peakMiB, percentile, printLine, type Gaps } from './figures.ts';

const { values: args } = parseArgs({
  options: {
    only: { type: 'string' },
    measure: { type: 'string' },
    seeds: { type: 'string' },
    market: { type: 'string', default: 'generated' },
    'solver-gap': { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});

const SIZES: Readonly<Record<string, { readonly pools: number; readonly seeds: number; readonly shape: LoadShape }>> = {
  small: { pools: 100, seeds: 30, shape: { groups: 200, tasksPerGroup: 20, instances: 80, supply: 0.4 } },
  large: { pools: 500, seeds: 5, shape: { groups: 2000, tasksPerGroup: 50, instances: 400, supply: 0.4 } },
};
/** Parts in the order of a cycle. `effects` is the time of `decide` without stages and explanations. */
const PARTS = [
  'snapshot',
  'estimate',
  'value',
  'appraise',
  'plan',
  'place',
  'scale',
  'explain',
  'effects',
  'intents',
] as const;
type Part = (typeof PARTS)[number];

/** Time per part of one cycle, ms. */
class Stopwatch {
  readonly ms = new Map<Part, number>();

  add(part: Part, ms: number): void {
    this.ms.set(part, (this.ms.get(part) ?? 0) + ms);
  }

  of(...parts: readonly Part[]): number {
    return parts.reduce((sum, part) => sum + (this.ms.get(part) ?? 0), 0);
  }

  time<T>(part: Part, work: () => T): T {
    const began = performance.now();
    const result = work();
    this.add(part, performance.now() - began);
    return result;
  }
}

interface Captured {
  problem?: Problem;
  planned?: Planned;
}

/** Policies with a stopwatch around each. The plan's problem is kept, for its bound after the measurement. */
function timed(stages: Stages<Solver>, watch: Stopwatch, captured: Captured): Stages<Solver> {
  return {
    estimate: (...of) => watch.time('estimate', () => stages.estimate(...of)),
    value: (...of) => watch.time('value', () => stages.value(...of)),
    appraise: (...of) => watch.time('appraise', () => stages.appraise(...of)),
    plan: async (input: PlanInput, solver) => {
      const began = performance.now();
      const problem = problemOf(input, BY_PROGRAM);
      const planned = await planProblem(problem, solver);
      const allotment = allotmentOf(problem, planned.selection, planned.report);
      watch.add('plan', performance.now() - began);
      Object.assign(captured, { problem, planned });
      return allotment;
    },
    place: (...of) => watch.time('place', () => stages.place(...of)),
    queue: (...of) => watch.time('place', () => stages.queue(...of)),
    move: stages.move,
    order: stages.order,
    speculate: stages.speculate,
    scale: (...of) => watch.time('scale', () => stages.scale(...of)),
  };
}

interface Figure {
  readonly ms: number;
  readonly cpuMs: number;
  readonly solverMs: number;
  readonly gaps: Gaps;
  readonly watch: Stopwatch;
  readonly used: string;
  readonly tasks: number;
  readonly effects: number;
  readonly options: number;
}

async function measure(size: string): Promise<void> {
  const { shape, pools, seeds: usual } = invariant(SIZES[size], `a size among ${Object.keys(SIZES).join(', ')}`);
  const seeds = args.seeds === undefined ? usual : Number(args.seeds);
  const world = await benchMarket(pools, args.market === 'generated' ? null : args.market);
  const inputs = { ...shape, pools: world.market.pools().length, market: world.name, seeds: `1..${seeds}` };
  const asked = args['solver-gap'];
  const config = schedulerConfig.parse(asked === undefined ? {} : { solverGap: Number(asked) });
  console.log(`${size}: ${JSON.stringify({ ...inputs, solverGap: config.solverGap })}\n  ${machine()}`);
  const solver = highsSolver();
  const history = benchHistory();
  const forecaster = new MarketForecaster({ history: (...of) => world.market.history(...of), config });
  const figures: Figure[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const figure = await decided(seed, { shape, world, history, forecaster, solver, config });
    figures.push(figure);
    if (args.verbose) {
      const { ms, cpuMs, gaps, used, watch } = figure;
      const parts = PARTS.map((part) => `${part} ${watch.of(part).toFixed(0)}`).join(' ');
      console.log(`  seed ${seed}: ${asMs(ms)} cpu ${asMs(cpuMs)} gap ${asPercent(gaps.plan)} ${used}: ${parts}`);
    }
  }
  await solver.close();
  print(figures);
}

interface Bench {
  readonly shape: LoadShape;
  readonly world: BenchMarket;
  readonly history: LearnedRuntimes;
  readonly forecaster: MarketForecaster;
  readonly solver: Solver;
  readonly config: SchedulerConfig;
}

/** One decision. Like an engine's round it keeps nothing, so that the next one does not find it in memory. */
async function decided(seed: number, { shape, world, history, forecaster, solver, config }: Bench): Promise<Figure> {
  const nowMs = plus(world.fromMs, seconds(60 * seed));
  const load = benchState(shape, world, seed, nowMs);
  const watch = new Stopwatch();
  const captured: Captured = {};
  const memory = new DecisionMemory();
  const beliefs = { of: <B>() => history as B };
  const stages = timed(presetNamed('ebbtide').stages, watch, captured);
  const began = performance.now();
  const cpuBegan = process.cpuUsage();
  const snapshot = watch.time('snapshot', () => benchSnapshot(load, world, nowMs));
  const decideBegan = performance.now();
  const { plan, deliberation } = await decide({
    snapshot,
    forecasts: {
      runtime: stages.estimate({ snapshot, config, memory, beliefs }),
      market: forecaster.at(nowMs, new CapacityEvidence()),
    },
    stages,
    memory,
    beliefs,
    preset: 'ebbtide',
    solver,
    config,
    plan: planId(`p-${seed}`),
    token: 1,
  });
  const decidedMs = performance.now() - decideBegan;
  watch.time('intents', () => recordIntents(load.state, plan));
  const ms = performance.now() - began;
  const cpu = process.cpuUsage(cpuBegan);
  // Second explanation: `decide` makes the first one inside. The lists of considered offers exist by then and count as
  // effects.
  watch.time('explain', () => explain(deliberation));
  const inStages = watch.of('estimate', 'value', 'appraise', 'plan', 'place', 'scale', 'explain');
  watch.add('effects', Math.max(0, decidedMs - inStages));
  const problem = invariant(captured.problem, 'the plan stage ran');
  return {
    ms,
    cpuMs: (cpu.user + cpu.system) / 1000,
    solverMs: plan.solve.elapsedMs,
    gaps: await gapsOf(problem, invariant(captured.planned, 'the plan stage ran'), solver),
    watch,
    used: `${plan.solve.used}/${plan.solve.status}`,
    tasks: snapshot.groups.reduce((n, g) => n + g.count, 0),
    effects: plan.effects.length,
    options: problem.choices.length,
  };
}

/** Row: title, value of each figure, and format. */
type Row = readonly [title: string, of: (f: Figure) => number, as: typeof asMs];

function print(figures: readonly Figure[]): void {
  const all = (of: (f: Figure) => number): readonly number[] => figures.map(of);
  const bounds = new Set(figures.map((f) => f.gaps.bound));
  const rows: readonly Row[] = [
    ['wall time of the decision', (f) => f.ms, asMs],
    ['processor time of all threads', (f) => f.cpuMs, asMs],
    ['of which solver (wall)', (f) => f.solverMs, asMs],
    [`gap to the ${[...bounds].join(' or ')} bound, (bound - plan) / bound`, (f) => f.gaps.plan, asPercent],
    ["the greedy plan's gap to the same bound", (f) => f.gaps.greedy, asPercent],
    ['the same dollars as a share of expected cost', (f) => f.gaps.ofCost, asPercent],
    ['waiting tasks', (f) => f.tasks, asCount],
    ['start options', (f) => f.options, asCount],
    ['effects', (f) => f.effects, asCount],
  ];
  for (const [title, of, as] of rows) printLine(title, figures.map(of), as);
  console.log(`  first decision of the process, nothing compiled or forecast yet: ${asMs(figures[0]?.ms ?? NaN)}`);
  const whole = percentile(
    all((f) => f.ms),
    0.5,
  );
  const shares = PARTS.map((part) => {
    const ms = percentile(
      all((f) => f.watch.of(part)),
      0.5,
    );
    return `${part} ${asMs(ms)} (${((100 * ms) / whole).toFixed(0)} %)`;
  });
  console.log(`  medians: ${shares.join(', ')}`);
  const used = Map.groupBy(figures, (f) => f.used);
  console.log(`  plans used: ${[...used].map(([name, of]) => `${name} ${of.length}`).join(', ')}`);
  console.log(`  peak resident memory of the process: ${peakMiB().toFixed(0)} MiB`);
}

if (args.measure !== undefined) await measure(args.measure);
else {
  const script = fileURLToPath(import.meta.url);
  // Limit of the engine's thread (lib/drivers/local/engine/local-engine.ts): three semi-spaces make the young
  // generation.
  const flag = `--max-semi-space-size=${YOUNG_GENERATION_MIB / 3}`;
  for (const size of args.only === undefined ? Object.keys(SIZES) : [args.only]) {
    const of = [flag, script, ...process.argv.slice(2), '--measure', size];
    const { status } = spawnSync(process.execPath, of, { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
