/** Common output of benchmarks: versions and load of the machine, percentiles, gaps to a bound. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import type { SolveReport } from '../lib/domain/plan.ts';
import type { Selection } from '../lib/stages/plan/fill.ts';
import { costOf, gapOf, modelOf } from '../lib/stages/plan/milp.ts';
import type { Problem } from '../lib/stages/plan/problem.ts';
import type { Solver } from '../lib/policy/solver.ts';

const versionOf = (path: string): string =>
  (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }).version;

/** Versions, processors and load. A load above 0 means that times include waiting for a core. */
export function machine(): string {
  const versions = `ebbtide ${versionOf('../package.json')}, node ${process.version}, highs ${versionOf('../node_modules/highs/package.json')}`;
  const load = loadavg().map((x) => x.toFixed(1));
  return `${versions}, ${availableParallelism()} x ${cpus()[0]?.model ?? 'cpu'}, load average ${load.join(' ')}`;
}

export const percentile = (values: readonly number[], q: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? NaN;
};

export function printLine(name: string, values: readonly number[], show: (x: number) => string): void {
  const [p50, p99, most] = [0.5, 0.99, 1].map((q) => show(percentile(values, q)));
  console.log(`  ${name.padEnd(46)} p50 ${p50}  p99 ${p99}  max ${most}`);
}
export const asMs = (x: number): string => `${x.toFixed(x < 10 ? 1 : 0)} ms`;
export const asPercent = (x: number): string => `${(100 * x).toFixed(3)} %`;
export const asCount = (x: number): string => x.toFixed(0);

/** Peak resident memory of this process, MiB, with the solver's thread. */
export const peakMiB = (): number => process.resourceUsage().maxRSS / 2 ** 10;

export interface Gaps {
  /** Gap of the plan: (bound - plan) / bound. */
  readonly plan: number;
  /** Gap of the greedy plan to the same bound. */
  readonly greedy: number;
  /** Gap of the plan in dollars, as a share of its expected cost. */
  readonly ofCost: number;
  readonly bound: 'LP' | 'Lagrangian';
}

/** Gaps to the LP relaxation if it can be solved, else to the plan's own Lagrangian bound. */
export async function gapsOf(
  problem: Problem,
  { report, selection }: { readonly report: SolveReport; readonly selection: Selection },
  solver: Solver,
): Promise<Gaps> {
  const small = report.variables <= problem.input.config.solverMaxOptions && report.gap !== 0;
  const lp = small
    ? await solver.relax(modelOf(problem).milp, { relativeGap: 0, maxNodes: null, maxSeconds: 60 })
    : null;
  const bound = lp?.bound ?? report.bound ?? NaN;
  return {
    plan: gapOf(report.objective, bound),
    greedy: gapOf(report.greedyObjective, bound),
    ofCost: Math.max(0, bound - report.objective) / Math.max(1e-9, costOf(problem, selection)),
    bound: lp === null ? 'Lagrangian' : 'LP',
  };
}
