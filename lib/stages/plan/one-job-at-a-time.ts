/**
 * JVuSched's greedy mode (JamaisVu, section 4.1.4): jobs with a deadline one after another, in the order of submission,
 * each in one expression with all running jobs, which the solver maximises. What one job takes or stops is settled for
 * those after it. Best-effort work then fills what is left, first come, first served, and stops nothing.
 */
import { isUrgent } from '../../domain/job.ts';
import type { JobId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import { unsolved } from '../../domain/plan.ts';
import type { PlanPolicy } from '../../policy/contracts.ts';
import type { Solver } from '../../policy/solver.ts';
import { allotmentOf } from './allotment.ts';
import { fillInTurn, Filling, stop, unitsAt } from './fill.ts';
import { planProblem } from './milp.ts';
import { firstComeFirstServed } from './order.ts';
import { UNGUARDED } from './options.ts';
import { problemOf, type Problem } from './problem.ts';
import type { Partition, Supply } from './strl/supply.ts';
import { supplyRows } from './strl/supply.ts';
import { affordable } from './whole.ts';

/** Jobs that the solver is asked about in one decision; the paper has one per cycle. Later ones wait for the next. */
const MOST_JOBS = 32;

export const oneJobAtATime: PlanPolicy<Solver> = async (input, solver) => {
  const problem = problemOf(input, UNGUARDED);
  const filling = new Filling(problem);
  for (const groups of deadlineJobs(problem).slice(0, MOST_JOBS)) {
    const part = partOf(problem, filling, groups);
    if (part.problem.choices.length === 0) continue;
    const { selection } = await planProblem(part.problem, solver);
    const { units, kills } = affordable(part.problem, selection);
    part.choices.forEach((choice, i) => {
      const members = problem.choices[choice]?.members.length ?? 0;
      for (let m = 0; m < members; m++) {
        const count = units[unitsAt(i, m)] ?? 0;
        const { group } = problem.choices[choice] ?? { group: -1 };
        filling.change(choice, m, count);
        filling.waiting[group] = (filling.waiting[group] ?? 0) - count;
      }
    });
    kills.forEach((count, i) => stop(filling, i, Math.round(count)));
  }
  const bestEffort = firstComeFirstServed(problem).filter(
    (c) => problem.groups[problem.choices[c]?.group ?? -1]?.group.class === 'best-effort',
  );
  const selection = fillInTurn(filling, bestEffort).selection();
  return allotmentOf(problem, selection, unsolved(selection.objectiveUsd));
};

/** Groups of each job with a deadline, by submission. */
function deadlineJobs({ groups }: Problem): readonly (readonly number[])[] {
  const byJob = new Map<JobId, { readonly submittedMs: number; readonly groups: number[] }>();
  groups.forEach(({ group }, index) => {
    if (!isUrgent(group.class)) return;
    const known = byJob.get(group.job);
    if (known === undefined) byJob.set(group.job, { submittedMs: raw(group.submittedMs), groups: [index] });
    else known.groups.push(index);
  });
  return [...byJob]
    .sort(([a, x], [b, y]) => x.submittedMs - y.submittedMs || (a < b ? -1 : 1))
    .map(([, job]) => job.groups);
}

/** The problem of these groups alone, on the supply and the stops that are left. `choices`: theirs in the whole. */
function partOf(
  problem: Problem,
  filling: Filling,
  groups: readonly number[],
): { readonly problem: Problem; readonly choices: readonly number[] } {
  const choices: number[] = [];
  const entries = groups.flatMap((index, at) => {
    const entry = problem.groups[index];
    if (entry === undefined) return [];
    const first = choices.length;
    choices.push(...entry.choices);
    return [{ entry: { ...entry, choices: entry.choices.map((_, i) => first + i) }, at }];
  });
  const at = new Map(groups.map((index, i) => [index, i]));
  const supply = leftIn(problem, filling);
  return {
    choices,
    problem: {
      ...problem,
      supply,
      rows: supplyRows(supply),
      groups: entries.map(({ entry }) => entry),
      choices: choices.flatMap((c) => {
        const choice = problem.choices[c];
        return choice === undefined ? [] : [{ ...choice, group: at.get(choice.group) ?? -1 }];
      }),
      kills: problem.kills.map((kill, i) => ({ ...kill, atMost: kill.atMost - (filling.kills[i] ?? 0) })),
    },
  };
}

/** Supply with what is free of it: rows are numbered by partition, slot and kind (strl/supply.ts). */
function leftIn({ supply }: Problem, { free }: Filling): Supply {
  let row = 0;
  const partitions = supply.partitions.map((partition): Partition => ({
    ...partition,
    capacity: Array.from({ length: partition.renewable ? supply.slots : 1 }, () =>
      partition.kinds.map(() => Math.max(0, free[row++] ?? 0)),
    ),
  }));
  return { ...supply, partitions };
}
