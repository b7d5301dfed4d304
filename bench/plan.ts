/**
 * The plan stage against the clock and against its bounds.
 *   node bench/plan.ts [--only small|large] [--seeds N]
 * small: 200 waiting groups x 100 pools, contended, with running work that may give way: model, solver and all.
 * large: 100,000 tasks in 2,000 groups x 500 pools: Lagrangian bound and repair.
 * Prints inputs, versions and figures; judges nothing.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { highsSolver } from '../lib/local/highs-solver.ts';
import { allotmentOf } from '../lib/plan/allotment.ts';
import { tasksBy, type Selection } from '../lib/plan/fill.ts';
import { gapOf, modelOf, planProblem } from '../lib/plan/milp.ts';
import { problemOf, type Problem } from '../lib/plan/problem.ts';
import type { Solver } from '../lib/plan/solver.ts';
import { scenario, type ScenarioShape } from '../test/unit/plan/scenario.ts';

const { values: args } = parseArgs({
  options: { only: { type: 'string' }, seeds: { type: 'string', default: '30' }, verbose: { type: 'boolean' } },
});

interface Figure {
  readonly ms: number;
  readonly cpuMs: number;
  readonly solverMs: number;
  readonly gap: number;
  readonly greedyGap: number;
  readonly costGap: number;
  readonly used: string;
  readonly variables: number;
  readonly constraints: number;
  readonly deferred: number;
  readonly preempted: number;
}

/** Expected dollars that the plan spends: what the absolute gap is compared with besides the worth. */
function costOf(problem: Problem, selection: Selection): number {
  return problem.choices.reduce((sum, choice, i) => sum + choice.planned.option.costUsd * tasksBy(selection, i), 0);
}

async function measure(shape: ScenarioShape, solver: Solver): Promise<Figure> {
  const input = scenario(shape);
  const began = performance.now();
  const cpuBegan = process.cpuUsage();
  const problem = problemOf(input);
  const { selection, report } = await planProblem(problem, solver);
  const allotment = allotmentOf(problem, selection, report);
  const ms = performance.now() - began;
  const cpu = process.cpuUsage(cpuBegan);
  const lp =
    report.variables <= input.config.solverMaxOptions && report.gap !== 0
      ? await solver.relax(modelOf(problem).milp, { relativeGap: 0, maxNodes: null, maxSeconds: 60 })
      : null;
  const bound = lp?.bound ?? report.bound ?? NaN;
  const lost = Math.max(0, bound - report.objective);
  return {
    ms,
    cpuMs: (cpu.user + cpu.system) / 1000,
    solverMs: report.elapsedMs,
    gap: gapOf(report.objective, bound),
    greedyGap: gapOf(report.greedyObjective, bound),
    costGap: lost / Math.max(1e-9, costOf(problem, selection)),
    used: `${report.used}/${report.status}`,
    variables: report.variables,
    constraints: report.constraints,
    deferred: allotment.deferred.length,
    preempted: allotment.preemptions.length,
  };
}

const at = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? NaN;
function line(name: string, values: readonly number[], show: (x: number) => string): void {
  const sorted = [...values].sort((a, b) => a - b);
  console.log(
    `  ${name.padEnd(44)} p50 ${show(at(sorted, 0.5))}  p99 ${show(at(sorted, 0.99))}  max ${show(at(sorted, 1))}`,
  );
}
const asMs = (x: number): string => `${x.toFixed(0)} ms`;
const asPercent = (x: number): string => `${(100 * x).toFixed(3)} %`;
const asCount = (x: number): string => x.toFixed(0);

async function run(title: string, shapes: readonly ScenarioShape[]): Promise<void> {
  console.log(
    `${title}\n  inputs: ${JSON.stringify({ ...shapes[0], seed: `${shapes[0]?.seed}..${shapes.at(-1)?.seed}` })}`,
  );
  const solver = highsSolver();
  const figures: Figure[] = [];
  for (const shape of shapes) {
    const figure = await measure(shape, solver);
    figures.push(figure);
    if (args.verbose === true) console.log(`  seed ${shape.seed}: ${JSON.stringify(figure)}`);
  }
  await solver.close();
  line(
    'time of the whole plan stage',
    figures.map((f) => f.ms),
    asMs,
  );
  line(
    'processor time of all threads',
    figures.map((f) => f.cpuMs),
    asMs,
  );
  line(
    'of which solver',
    figures.map((f) => f.solverMs),
    asMs,
  );
  line(
    'gap to the bound, (bound - plan) / bound',
    figures.map((f) => f.gap),
    asPercent,
  );
  line(
    "the greedy plan's gap to the same bound",
    figures.map((f) => f.greedyGap),
    asPercent,
  );
  line(
    'the same dollars as a share of expected cost',
    figures.map((f) => f.costGap),
    asPercent,
  );
  line(
    'variables',
    figures.map((f) => f.variables),
    asCount,
  );
  line(
    'constraints',
    figures.map((f) => f.constraints),
    asCount,
  );
  line(
    'deferred starts',
    figures.map((f) => f.deferred),
    asCount,
  );
  line(
    'pre-emptions',
    figures.map((f) => f.preempted),
    asCount,
  );
  console.log(`  first decision of the process, nothing compiled yet: ${asMs(figures[0]?.ms ?? NaN)}`);
  const used = Map.groupBy(figures, (f) => f.used);
  console.log(`  plans used: ${[...used].map(([name, of]) => `${name} ${of.length}`).join(', ')}`);
  console.log(`  peak resident memory of the process: ${(process.resourceUsage().maxRSS / 2 ** 10).toFixed(0)} MiB`);
}

const highs = JSON.parse(readFileSync(new URL('../node_modules/highs/package.json', import.meta.url), 'utf8')) as {
  version: string;
};
console.log(
  `node ${process.version}, highs ${highs.version}, ${availableParallelism()} x ${cpus()[0]?.model ?? 'cpu'}`,
);
const seeds = Array.from({ length: Number(args.seeds) }, (_, i) => i + 1);
if (args.only !== 'large') {
  await run(
    'small: contended, MILP (bound: LP relaxation)',
    seeds.map((seed) => ({ seed, groups: 200, pools: 100, tasksPerGroup: 20, instances: 80, supply: 0.4 })),
  );
}
if (args.only !== 'small') {
  await run(
    'large: contended, Lagrangian',
    seeds
      .slice(0, 5)
      .map((seed) => ({ seed, groups: 2000, pools: 500, tasksPerGroup: 50, instances: 400, supply: 0.4 })),
  );
}
