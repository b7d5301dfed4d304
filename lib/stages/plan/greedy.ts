import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { unsolved } from '../../domain/plan.ts';
import { allotmentOf } from './allotment.ts';
import { fill, type Selection } from './fill.ts';
import { byDensity, byQuotaDensity, byWorth } from './order.ts';
import { BY_PROGRAM } from './options.ts';
import { problemOf, withinOptions, type Problem } from './problem.ts';
import { affordable } from './whole.ts';

/**
 * The best of three greedy fills: by worth per share of the whole supply, by worth per vCPU of the quota, and by worth
 * alone (which is optimal without contention). Pure; linear in the options apart from sorting.
 */
export function greedySelection(problem: Problem): Selection {
  return [byDensity, byQuotaDensity, byWorth]
    .map((order) => fill(problem, order(problem), { preemptFor: 'all' }))
    .reduce((best, next) => (next.objectiveUsd > best.objectiveUsd + 1e-12 ? next : best));
}

/** Plans greedily and never asks the solver. */
export const greedyPlan: PlanPolicy<unknown> = (input: PlanInput) => {
  const problem = problemOf(withinOptions(input), BY_PROGRAM);
  const selection = greedySelection(problem);
  return Promise.resolve(allotmentOf(problem, affordable(problem, selection), unsolved(selection.objectiveUsd)));
};
