import type { PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { unsolved } from '../../domain/plan.ts';
import { firstComeFirstServed } from './order.ts';
import { UNGUARDED } from './options.ts';
import { nowAlone, problemOf } from './problem.ts';

/**
 * Baseline: strict priority, deadline work before best-effort, each in the order of submission, on each group's best
 * offer, this cycle only ("prio" of JamaisVu, section 5). Deadline work preempts
 * best-effort work. No guard: a deadline is a priority and nothing else.
 */
export const fcfsPlan: PlanPolicy<unknown> = (input: PlanInput) => {
  const problem = problemOf(nowAlone(input), UNGUARDED);
  const selection = fill(problem, firstComeFirstServed(problem), { preemptFor: 'deadlines' });
  return Promise.resolve(allotmentOf(problem, selection, unsolved(selection.objectiveUsd)));
};
