/**
 * The problem as one STRL expression: a sum over groups and over what may give way (JamaisVu section 4.1: all pending and
 * running work in one expression). A gang is max(nCk, ...), one option or none. A divisible group is a sum of lnCk, its
 * number of tasks a non-renewable partition that all of them draw on, so that it may be spread over offers and slots.
 */
import { killLnCk, lnCk, max, nCk, sum, type Assignment, type Expression } from './strl/expression.ts';
import type { Partition, Supply } from './strl/supply.ts';
import { noUnits, objectiveOf, tasksBy, unitsAt, type Selection } from './fill.ts';
import type { Choice, GroupChoices, Problem } from './problem.ts';

export interface Request {
  readonly expression: Expression;
  readonly supply: Supply;
}

const tasksOf = (index: number): string => `tasks_g${index}`;

export function requestOf(problem: Problem): Request {
  const counts: Partition[] = [];
  const parts: Expression[] = [];
  problem.groups.forEach((group, index) => {
    const choices = group.choices.flatMap((c) => problem.choices[c] ?? []);
    if (choices.length === 0) return;
    if (group.gang) parts.push(max(...choices.map((choice) => whole(choice, group))));
    else {
      // One choice alone is limited by its own bound.
      const counted = choices.length > 1;
      if (counted) {
        counts.push({ id: tasksOf(index), renewable: false, kinds: ['tasks'], capacity: [[group.group.count]] });
      }
      parts.push(...choices.map((choice) => divisible(choice, group, counted ? tasksOf(index) : null)));
    }
  });
  for (const kill of problem.kills) {
    const set = [{ name: 'kill', draws: kill.draws, atMost: kill.atMost }];
    const cost = kill.costUsd * kill.atMost;
    parts.push(killLnCk({ id: kill.id, set, k: kill.atMost, start: 0, duration: kill.slots, cost }));
  }
  const supply = { slots: problem.supply.slots, partitions: [...problem.supply.partitions, ...counts] };
  return { expression: sum(...parts), supply };
}

const timesOf = (choice: Choice): { readonly start: number; readonly duration: number } => ({
  start: choice.planned.option.slot,
  duration: choice.planned.slots,
});

function whole(choice: Choice, { group }: GroupChoices): Expression {
  const set = choice.members.map(({ name, draws, atMost }) => ({ name, draws, atMost }));
  return nCk({ id: choice.id, set, k: group.count, value: choice.netUsd * group.count, ...timesOf(choice) });
}

function divisible(choice: Choice, { group }: GroupChoices, tasks: string | null): Expression {
  const counted = tasks === null ? [] : [{ partition: tasks, perUnit: [1] }];
  const set = choice.members.map(({ name, draws, atMost }) => ({ name, draws: [...draws, ...counted], atMost }));
  return lnCk({ id: choice.id, set, k: group.count, value: choice.netUsd * group.count, ...timesOf(choice) });
}

/** A selection as units of the expression's leaves. */
export function assignmentOf(problem: Problem, selection: Selection): Assignment {
  const assignment = new Map<string, readonly number[]>();
  problem.choices.forEach((choice, i) => {
    if (tasksBy(selection, i) === 0) return;
    const units = choice.members.map((_, m) => selection.units[unitsAt(i, m)] ?? 0);
    assignment.set(choice.id, units);
  });
  problem.kills.forEach((kill, i) => {
    if ((selection.kills[i] ?? 0) > 0) assignment.set(kill.id, [selection.kills[i] ?? 0]);
  });
  return assignment;
}

/** The leaves' units as a selection. */
export function selectionOf(problem: Problem, assignment: Assignment): Selection {
  const units = noUnits(problem);
  problem.choices.forEach((choice, i) => units.set(assignment.get(choice.id) ?? [], unitsAt(i, 0)));
  const kills = Float64Array.from(problem.kills, (kill) => assignment.get(kill.id)?.[0] ?? 0);
  return { units, kills, objectiveUsd: objectiveOf(problem, units, kills) };
}
