/**
 * Plans that hand out slots in turn (lib/policy/turns/turns.ts). Room whose turn it is for a copy stays free; the
 * speculate policy of the same name asks for the copy. Running tasks run to their ends.
 */
import type { GroupId } from '../../kernel/ids.ts';
import { milliCpuIn, NO_RESOURCES } from '../../domain/resources.ts';
import { unsolved } from '../../domain/plan.ts';
import type { Allotment, PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import type { Turning } from '../../policy/turns/by-job.ts';
import { turnsOf, type Turns } from '../../policy/turns/turns.ts';
import { allotmentOf } from './allotment.ts';
import { Filling, fillInTurn } from './fill.ts';
import { IN_ORDER } from './options.ts';
import { nowAlone, problemOf, type Problem } from './problem.ts';

export const inTurnPlan =
  (turning: Turning): PlanPolicy<unknown> =>
  (input: PlanInput) => {
    const problem = problemOf(nowAlone(input), IN_ORDER);
    const turns = turnsOf(input, turning(input));
    const selection = filled(problem, turns).selection();
    const allotment = allotmentOf(problem, selection, unsolved(selection.objectiveUsd));
    return Promise.resolve({ ...allotment, starts: withPilots(allotment.starts, turns) });
  };

/** As many of a group's starts as its pilots are have their role. */
function withPilots(starts: Allotment['starts'], turns: Turns): Allotment['starts'] {
  const left = new Map<GroupId, number>();
  for (const { group, count, pilots } of turns.starts)
    if (pilots) left.set(group.id, (left.get(group.id) ?? 0) + count);
  if (left.size === 0) return starts;
  return starts.flatMap((start) => {
    const pilots = Math.min(start.count, left.get(start.option.group) ?? 0);
    left.set(start.option.group, (left.get(start.option.group) ?? 0) - pilots);
    const parts = [{ ...start, count: pilots, role: 'pilot' } as const, { ...start, count: start.count - pilots }];
    return parts.filter(({ count }) => count > 0);
  });
}

/** First what has a turn; then others, on what those leave that have no place, and not on the room of copies. */
function filled(problem: Problem, { starts, left }: Turns): Filling {
  const filling = new Filling(problem);
  const { waiting } = filling;
  const at = new Map(problem.groups.map(({ group }, i) => [group.id, i]));
  const inTurn = new Map<number, number>();
  for (const { group, count } of starts) {
    const i = at.get(group.id);
    if (i !== undefined) inTurn.set(i, (inTurn.get(i) ?? 0) + count);
  }
  for (const [i, count] of inTurn) waiting[i] = count;
  fillInTurn(
    filling,
    [...inTurn.keys()].flatMap((i) => startsNow(problem, i)),
  );
  let spare = left;
  for (const [i, count] of inTurn) {
    const unplaced = waiting[i] ?? 0;
    spare += unplaced * needOf(problem, i);
    waiting[i] = unplaced + (problem.groups[i]?.group.count ?? count) - count;
  }
  for (const i of new Set([...inTurn.keys(), ...problem.groups.keys()])) {
    const before = waiting[i] ?? 0;
    const may = Math.min(before, Math.floor(spare / needOf(problem, i)));
    if (may < 1 || (problem.groups[i]?.gang === true && may < before)) continue;
    waiting[i] = may;
    for (const choice of startsNow(problem, i)) filling.choose(choice, Infinity);
    const started = may - (waiting[i] ?? 0);
    waiting[i] = before - started;
    spare -= started * needOf(problem, i);
  }
  return filling;
}

const startsNow = ({ groups, choices }: Problem, i: number): readonly number[] =>
  (groups[i]?.choices ?? []).filter((c) => choices[c]?.planned.option.slot === 0);

const needOf = ({ groups }: Problem, i: number): number =>
  Math.max(1, milliCpuIn(groups[i]?.group.need ?? NO_RESOURCES));
