/**
 * Time of the plan stage, and its gap to bounds.
 *
 *   node bench/plan.ts [--only small|large|fleet] [--seeds N] [--presets a,b]
 *
 * small: 200 waiting groups x 100 pools, contended, with running work that may be preempted: model and solver.
 * large: 100,000 tasks in 2,000 groups x 500 pools: Lagrangian bound and repair.
 * fleet: 100,000 tasks in 20,000 groups on 12,500 running instances, a fifth of what they need: the plan stages of
 * presets that order jobs, and those of `ebbtide` with and without the solver. Three decisions each, after one that
 * compiles the code.
 *
 * Prints inputs, versions and figures; judges nothing.
 */
import { parseArgs } from 'node:util';
import { highsSolver } from '../lib/drivers/solver/highs-solver.ts';
import { allotmentOf } from '../lib/stages/plan/allotment.ts';
import { planProblem } from '../lib/stages/plan/milp.ts';
import { BY_PROGRAM } from '../lib/stages/plan/options.ts';
import { problemOf } from '../lib/stages/plan/problem.ts';
import type { Solver } from '../lib/policy/solver.ts';
import { composeLearners } from '../lib/cycle/learn/compose-learners.ts';
import type { Job, StageSpec } from '../lib/domain/job.ts';
import { newJob } from '../lib/cycle/admit/new-job.ts';
import type { PlanInput } from '../lib/policy/contracts.ts';
import { DecisionMemory } from '../lib/policy/memory.ts';
import { settingsUnder } from '../lib/policy/preset-chain.ts';
import { presetNamed } from '../lib/stages/registry.ts';
import { benchJob } from './cluster/jobs.ts';
import { scenario, type ScenarioShape } from './load/scenario.ts';
import { asCount, asMs, asPercent, gapsOf, machine, peakMiB, printLine } from './figures.ts';

const { values: args } = parseArgs({
  options: {
    only: { type: 'string' },
    seeds: { type: 'string', default: '30' },
    presets: { type: 'string', default: 'srpt,slearn,las,hopper,srpt-copies,greedy,ebbtide' },
    verbose: { type: 'boolean' },
  },
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

async function measure(shape: ScenarioShape, solver: Solver): Promise<Figure> {
  const input = scenario(shape);
  const began = performance.now();
  const cpuBegan = process.cpuUsage();
  const problem = problemOf(input, BY_PROGRAM);
  const { selection, report } = await planProblem(problem, solver);
  const allotment = allotmentOf(problem, selection, report);
  const ms = performance.now() - began;
  const cpu = process.cpuUsage(cpuBegan);
  const gaps = await gapsOf(problem, { report, selection }, solver);
  return {
    ms,
    cpuMs: (cpu.user + cpu.system) / 1000,
    solverMs: report.elapsedMs,
    gap: gaps.plan,
    greedyGap: gaps.greedy,
    costGap: gaps.ofCost,
    used: `${report.used}/${report.status}`,
    variables: report.variables,
    constraints: report.constraints,
    deferred: allotment.deferred.length,
    preempted: allotment.preemptions.length,
  };
}

/** Row: title, value of each figure, and format. */
type Row = readonly [title: string, of: (f: Figure) => number, as: typeof asMs];

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
  const rows: readonly Row[] = [
    ['time of the whole plan stage', (f) => f.ms, asMs],
    ['processor time of all threads', (f) => f.cpuMs, asMs],
    ['of which solver', (f) => f.solverMs, asMs],
    ['gap to the bound, (bound - plan) / bound', (f) => f.gap, asPercent],
    ["the greedy plan's gap to the same bound", (f) => f.greedyGap, asPercent],
    ['the same dollars as a share of expected cost', (f) => f.costGap, asPercent],
    ['variables', (f) => f.variables, asCount],
    ['constraints', (f) => f.constraints, asCount],
    ['deferred starts', (f) => f.deferred, asCount],
    ['preemptions', (f) => f.preempted, asCount],
  ];
  for (const [title, of, as] of rows) printLine(title, figures.map(of), as);
  console.log(`  first decision of the process, nothing compiled yet: ${asMs(figures[0]?.ms ?? NaN)}`);
  const used = Map.groupBy(figures, (f) => f.used);
  console.log(`  plans used: ${[...used].map(([name, of]) => `${name} ${of.length}`).join(', ')}`);
  console.log(`  peak resident memory of the process: ${peakMiB().toFixed(0)} MiB`);
}

const FLEET: ScenarioShape = { seed: 1, groups: 20_000, pools: 16, tasksPerGroup: 5, instances: 12_500, supply: 0.2 };

/** The scenario with its jobs: plans that order jobs read them. */
function withJobs(shape: ScenarioShape): PlanInput {
  const input = scenario(shape);
  const { snapshot } = input;
  const stageOf = new Map<Job['id'], { readonly stage: StageSpec; readonly tasks: number }>();
  for (const { attempt, stage } of snapshot.running) stageOf.set(attempt.job, { stage, tasks: 1 });
  for (const { job, stage, count } of snapshot.groups) stageOf.set(job, { stage, tasks: count });
  const jobs = [...stageOf].map(([id, { stage, tasks }]): readonly [Job['id'], Job] => {
    const key = String(id);
    const { spec } = benchJob({ key, submittedS: 0, stages: [{ name: stage.name, runtimeS: [1] }] });
    return [
      id,
      newJob({ ...spec, stages: [{ ...stage, tasks }] }, { id, at: snapshot.nowMs, after: [], admission: FINE }),
    ];
  });
  return { ...input, snapshot: { ...snapshot, jobs: new Map(jobs) } };
}
const FINE = { feasible: true, notes: [] };

async function fleet(presets: readonly string[]): Promise<void> {
  console.log(`fleet: time of the plan and of the speculate stage\n  inputs: ${JSON.stringify(FLEET)}`);
  const input = withJobs(FLEET);
  const solver = highsSolver();
  const beliefs = composeLearners();
  for (const preset of presets) {
    const { stages } = presetNamed(preset);
    const config = settingsUnder(preset, input.config);
    const figures: { readonly planMs: number; readonly copyMs: number }[] = [];
    let starts = 0;
    for (let round = 0; round < 4; round++) {
      const fresh = { ...input, config, beliefs, memory: new DecisionMemory() };
      const began = performance.now();
      const allotment = await stages.plan(fresh, solver);
      const planned = performance.now();
      stages.speculate(fresh);
      if (round > 0) figures.push({ planMs: planned - began, copyMs: performance.now() - planned });
      starts = allotment.starts.reduce((n, { count }) => n + count, 0);
    }
    printLine(
      `${preset}: plan (${starts} tasks start)`,
      figures.map((f) => f.planMs),
      asMs,
    );
    printLine(
      `${preset}: copies`,
      figures.map((f) => f.copyMs),
      asMs,
    );
  }
  await solver.close();
}

console.log(machine());
const seeds = Array.from({ length: Number(args.seeds) }, (_, i) => i + 1);
if (args.only === undefined || args.only === 'small') {
  await run(
    'small: contended, MILP (bound: LP relaxation)',
    seeds.map((seed) => ({ seed, groups: 200, pools: 100, tasksPerGroup: 20, instances: 80, supply: 0.4 })),
  );
}
if (args.only === undefined || args.only === 'large') {
  await run(
    'large: contended, Lagrangian',
    seeds
      .slice(0, 5)
      .map((seed) => ({ seed, groups: 2000, pools: 500, tasksPerGroup: 50, instances: 400, supply: 0.4 })),
  );
}
if (args.only === undefined || args.only === 'fleet') await fleet(args.presets.split(','));
