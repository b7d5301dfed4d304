import { isUrgent } from '../../domain/job.ts';
import { raw } from '../../kernel/units.ts';
import type { Choice, Problem } from './problem.ts';

/**
 * Choices by density: worth of a task per part of the supply that it takes (the sum over rows of use / capacity), the
 * greedy order for knapsacks with several constraints.
 */
export function byDensity(problem: Problem): readonly number[] {
  return sorted(problem, (choice) => choice.netUsd / (1e-9 + fractionTaken(problem, choice)));
}

/** Choices by density against the vCPU quota alone: free room comes first, because it takes none of it. */
export function byQuotaDensity(problem: Problem): readonly number[] {
  const price = new Float64Array(problem.rows.count);
  for (let slot = 0; slot < problem.capacity.slots; slot++) price[slot] = 1;
  return byPricedDensity(problem, price);
}

/** Choices by worth alone. */
export const byWorth = (problem: Problem): readonly number[] => sorted(problem, (choice) => choice.netUsd);

/** Choices by density against prices of the rows (USD per unit): the order that a dual solution suggests. */
export function byPricedDensity(problem: Problem, price: Float64Array): readonly number[] {
  return sorted(problem, (choice) => {
    const paid = pricedUse(choice, price);
    return choice.netUsd / (1e-9 * Math.abs(choice.netUsd) + paid);
  });
}

/**
 * The order that a dual solution suggests, given each choice's reduced worth (what is left of it after paying the rows'
 * prices): by complementary slackness an optimal plan uses, for each group, choices whose reduced worth is the group's
 * best. So choices far below their group's best come late, and groups that bring most beyond the prices come first.
 */
export function byReducedWorth(problem: Problem, reduced: Float64Array): readonly number[] {
  const best = Float64Array.from(problem.groups, (group) =>
    group.choices.reduce((most, index) => Math.max(most, reduced[index] ?? 0), 0),
  );
  const scores = Float64Array.from(problem.choices, (choice, index) => {
    const worth = reduced[index] ?? 0;
    return (worth - BELOW_BEST * ((best[choice.group] ?? 0) - worth)) / Math.max(1e-12, choice.netUsd);
  });
  return problem.choices.map((_, index) => index).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
}

/**
 * Weight of falling short of the group's best choice against bringing more: tried from 1 to 30, flat between 3 and 10.
 */
const BELOW_BEST = 5;

/** Strict priority: deadline work first, then in the order of submission; each group's best choices of this cycle. */
export function firstComeFirstServed(problem: Problem): readonly number[] {
  const groups = problem.groups.map((_, index) => index);
  const urgency = (index: number): number => (isUrgent(problem.groups[index]?.group.class ?? 'best-effort') ? 0 : 1);
  const submitted = (index: number): number => {
    const group = problem.groups[index]?.group;
    return group === undefined ? 0 : raw(group.submittedMs);
  };
  groups.sort((a, b) => urgency(a) - urgency(b) || submitted(a) - submitted(b) || a - b);
  return groups.flatMap((index) =>
    (problem.groups[index]?.choices ?? []).filter((c) => problem.choices[c]?.planned.option.slot === 0),
  );
}

export function pricedUse(choice: Choice, price: Float64Array): number {
  const use = choice.members[0]?.use;
  if (use === undefined) return 0;
  let paid = 0;
  for (let i = 0; i < use.row.length; i++) paid += (use.coefficient[i] ?? 0) * (price[use.row[i] ?? 0] ?? 0);
  return paid;
}

function fractionTaken(problem: Problem, choice: Choice): number {
  const use = choice.members[0]?.use;
  if (use === undefined) return 0;
  let taken = 0;
  for (let i = 0; i < use.row.length; i++) {
    taken += (use.coefficient[i] ?? 0) / Math.max(1e-9, problem.rows.capacity[use.row[i] ?? 0] ?? 0);
  }
  // A task that runs past the window takes more than the window shows; without this correction late starts would look
  // small.
  const { option, slots } = choice.planned;
  return (taken * slots) / Math.max(1, Math.min(slots, problem.capacity.slots - option.slot));
}

/** Highest score first; ties by the order of choices, which is the problem's own. */
function sorted(problem: Problem, score: (choice: Choice) => number): readonly number[] {
  const scores = Float64Array.from(problem.choices, score);
  return problem.choices.map((_, index) => index).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
}
