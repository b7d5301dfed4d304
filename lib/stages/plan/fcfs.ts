import type { PlanInput, PlanPolicy } from '../../domain/stages.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { unsolved } from '../../domain/plan.ts';
import { firstComeFirstServed } from './order.ts';
import { problemOf } from './problem.ts';

/**
 * Baseline: strict priority, deadline work before best-effort, each in the order of submission, on each group's best offer,
 * this cycle only (JamaisVu's greedy mode, section 4.1.4, without its solver per job). Best-effort work gives way.
 */
export const fcfsPlan: PlanPolicy<unknown> = (input: PlanInput) => {
  const problem = problemOf(input);
  const selection = fill(problem, firstComeFirstServed(problem), { giveWay: true });
  return Promise.resolve(allotmentOf(problem, selection, unsolved(selection.objectiveUsd)));
};
