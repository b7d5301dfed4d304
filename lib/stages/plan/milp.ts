/**
 * The default plan: all waiting and all preemptible work in one MILP (JamaisVu section 4.1), under the supply of the
 * look-ahead window, in dollars of expected worth less expected cost.
 * The search has three steps. First a greedy plan, always; if each group has its best option and all fits, that is
 * optimal (`not-needed`). Else a Lagrangian bound, whose prices and average give a better start. If its possible loss
 * is within `solverGap` of the expected spending, or there are more than `solverMaxOptions` options, it is the plan;
 * else the MILP begins from it. Possible losses are compared with cost, not with worth: a deadline job is worth a
 * thousand times its cost, so a plan dearer by half is within 0.05 % of such a worth. The better plan is used, so a
 * solver that is out of time, or fails, costs nothing but its gap. `used` in the report: `milp` if the plan is the
 * solver's, `greedy` if it is a fill.
 */
import { unsolved, type SolveReport } from '../../domain/plan.ts';
import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { allotmentOf } from './allotment.ts';
import { overdrawn, tasksBy, type Selection } from './fill.ts';
import { greedySelection } from './greedy.ts';
import { lagrangian, unconstrained } from './lagrangian.ts';
import { compile, type Compiled } from './milp/compile.ts';
import { interpret } from './milp/interpret.ts';
import { BY_PROGRAM } from './options.ts';
import { problemOf, withinOptions, type Problem } from './problem.ts';
import { assignmentOf, requestOf, selectionOf } from './request.ts';
import type { SolveLimits, SolveOutcome, Solver } from '../../policy/solver.ts';
import { affordable } from './whole.ts';

/**
 * Iterations of the bound: measured on contended plans, 300 bring it within 0.1 % of the LP's where supply is 40 % of
 * the demand and within 2 % where it is 10 %. Large problems get fewer, so that the time stays about a second.
 */
const iterationsFor = (options: number): number => Math.max(150, Math.min(300, Math.round(4e6 / options)));
/** A gap that no solver need be asked about. */
const CLOSED_GAP = 1e-6;

export const milpPlan: PlanPolicy<Solver> = async (input, solver) => {
  const problem = problemOf(withinOptions(input), BY_PROGRAM);
  const { selection, report } = await planProblem(problem, solver);
  return allotmentOf(problem, affordable(problem, selection), report);
};

export interface Planned {
  readonly selection: Selection;
  readonly report: SolveReport;
}

export async function planProblem(problem: Problem, solver: Solver): Promise<Planned> {
  const greedy = greedySelection(problem);
  const ideal = unconstrained(problem);
  if (greedy.objectiveUsd >= ideal - 1e-9 * Math.max(1, Math.abs(ideal))) {
    const report: SolveReport = {
      ...unsolved(greedy.objectiveUsd),
      bound: ideal,
      boundKind: 'lagrangian',
      gap: 0,
      gapOfCost: 0,
    };
    return { selection: greedy, report };
  }
  const { bound, best } = lagrangian(problem, greedy, {
    iterations: iterationsFor(optionsOf(problem)),
    relativeGap: CLOSED_GAP,
  });
  const found: Found = { greedy, best, bound: Math.min(bound, ideal) };
  const { solverMaxOptions, solverGap } = problem.input.config;
  const leftUsd = found.bound - best.objectiveUsd;
  const good = leftUsd <= Math.max(CLOSED_GAP * Math.abs(found.bound), solverGap * costOf(problem, best));
  if (good || optionsOf(problem) > solverMaxOptions) return { selection: best, report: filled(problem, found) };
  return solvedPlan(problem, found, solver);
}

/** Results before the solver is asked. */
interface Found {
  readonly greedy: Selection;
  readonly best: Selection;
  /** Lagrangian: an upper bound on every plan. */
  readonly bound: number;
}

const optionsOf = (problem: Problem): number => problem.choices.length + problem.kills.length;

function filled(problem: Problem, { greedy, best, bound }: Found): SolveReport {
  const gap = gapOf(best.objectiveUsd, bound);
  return {
    used: 'greedy',
    status: gap <= CLOSED_GAP ? 'optimal' : 'feasible',
    objective: best.objectiveUsd,
    greedyObjective: greedy.objectiveUsd,
    bound,
    boundKind: 'lagrangian',
    gap,
    gapOfCost: gapOfCost(problem, best, bound),
    variables: optionsOf(problem),
    constraints: problem.rows.count,
    elapsedMs: 0,
  };
}

/** Model of a problem: integer counts for starts now, continuous ones for starts that the next cycles decide again. */
export function modelOf(problem: Problem): Compiled {
  const { expression, supply } = requestOf(problem);
  return compile(expression, supply, { name: 'plan', integerThrough: 0 });
}

async function solvedPlan(problem: Problem, found: Found, solver: Solver): Promise<Planned> {
  const compiled = modelOf(problem);
  const { solverGap, solverSeconds } = problem.input.config;
  const allowedUsd = solverGap * costOf(problem, found.best);
  const limits: SolveLimits = {
    relativeGap: allowedUsd / Math.max(Math.abs(found.bound), 1e-9),
    maxNodes: null,
    maxSeconds: solverSeconds,
  };
  const outcome = await solver.solve(compiled.milp, limits, compiled.point(assignmentOf(problem, found.best)));
  const solved = solvedSelection(problem, compiled, outcome);
  const better = solved !== null && solved.objectiveUsd > found.best.objectiveUsd ? solved : null;
  const selection = better ?? found.best;
  // A solver that ran out of time may know no bound, or a worse one.
  const proved = 'bound' in outcome && outcome.bound !== null && outcome.bound < found.bound ? outcome.bound : null;
  const bound = proved ?? found.bound;
  const report: SolveReport = {
    used: better === null ? 'greedy' : 'milp',
    status: outcome.status,
    objective: selection.objectiveUsd,
    greedyObjective: found.greedy.objectiveUsd,
    bound,
    boundKind: proved === null ? 'lagrangian' : 'mip',
    gap: gapOf(selection.objectiveUsd, bound),
    gapOfCost: gapOfCost(problem, selection, bound),
    variables: compiled.milp.columns,
    constraints: compiled.milp.rows,
    elapsedMs: outcome.elapsedMs ?? 0,
  };
  return { selection, report };
}

/**
 * The solver's plan, if it has one that keeps within the supply (it promises so within 1e-6; a plan is checked anyway).
 */
function solvedSelection(problem: Problem, compiled: Compiled, outcome: SolveOutcome): Selection | null {
  if (outcome.status !== 'optimal' && outcome.status !== 'feasible') return null;
  const selection = selectionOf(problem, interpret(compiled, outcome.values));
  return overdrawn(problem, selection).length === 0 ? selection : null;
}

export const gapOf = (objective: number, bound: number): number =>
  Math.max(0, bound - objective) / Math.max(Math.abs(bound), 1e-9);

/** Expected cost of a plan's starts, USD. */
export const costOf = (problem: Problem, selection: Selection): number =>
  problem.choices.reduce((sum, choice, i) => sum + choice.planned.option.costUsd * tasksBy(selection, i), 0);

const gapOfCost = (problem: Problem, selection: Selection, bound: number): number =>
  Math.max(0, bound - selection.objectiveUsd) / Math.max(costOf(problem, selection), 1e-9);

/** The model that a plan's input leads to, as LP or MPS text with the names of the formulation (`--dump-model`). */
export function dumpModel(input: PlanInput, solver: Solver, format: 'lp' | 'mps'): Promise<string> {
  return solver.write(modelOf(problemOf(input, BY_PROGRAM)).milp, format);
}
