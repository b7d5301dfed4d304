/**
 * The problem as one STRL expression: a sum over groups and preemptible work (JamaisVu section 4.1: all pending and
 * running work in one expression). A gang is max(nCk, ...), one option or none. A divisible group is a sum of lnCk over
 * one non-renewable partition that counts its tasks, so that it may be spread over offers and slots.
 */
import { killLnCk, lnCk, max, nCk, sum, type Assignment, type Expression } from './strl/expression.ts';
import type { Partition, Supply } from './strl/supply.ts';
import { noUnits, objectiveOf, tasksBy, unitsAt, type Selection } from './fill.ts';
import type { Choice, GroupChoices, Problem } from './problem.ts';

export interface Request {
  readonly expression: Expression;
  readonly supply: Supply;
}

/** Built only for the solver, which most plans do not need. */
function leafOf({ group, planned, members }: Choice, { gang, options }: GroupChoices): string {
  const id = `g${group}.o${options.indexOf(planned)}.s${planned.option.slot}`;
  return gang ? id : `${id}.${members[0]?.name}`;
}

/** Leaf names of all choices, in their order. */
const leavesOf = ({ choices, groups }: Problem): readonly string[] =>
  choices.map((choice) => leafOf(choice, groups[choice.group] as GroupChoices));

const tasksOf = (index: number): string => `tasks_g${index}`;

export function requestOf(problem: Problem): Request {
  const counts: Partition[] = [];
  const parts: Expression[] = [];
  problem.groups.forEach((group, index) => {
    const choices = group.choices.flatMap((c) => problem.choices[c] ?? []);
    if (choices.length === 0) return;
    if (group.gang) parts.push(max(...choices.map((choice) => whole(choice, group))));
    else {
      // A single choice is limited by its own bound.
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

function whole(choice: Choice, of: GroupChoices): Expression {
  const set = choice.members.map(({ name, use, atMost }) => ({ name, draws: use.draws, atMost }));
  return nCk({ id: leafOf(choice, of), set, ...countOf(choice, of), ...timesOf(choice) });
}

function divisible(choice: Choice, of: GroupChoices, tasks: string | null): Expression {
  const counted = tasks === null ? [] : [{ partition: tasks, perUnit: [1] }];
  const set = choice.members.map(({ name, use, atMost }) => ({ name, draws: [...use.draws, ...counted], atMost }));
  return lnCk({ id: leafOf(choice, of), set, ...countOf(choice, of), ...timesOf(choice) });
}

const countOf = (
  { netUsd }: Choice,
  { group: { count } }: GroupChoices,
): { readonly k: number; readonly value: number } => ({
  k: count,
  value: netUsd * count,
});

/** A selection as units of the expression's leaves. */
export function assignmentOf(problem: Problem, selection: Selection): Assignment {
  const assignment = new Map<string, readonly number[]>();
  leavesOf(problem).forEach((leaf, i) => {
    if (tasksBy(selection, i) === 0) return;
    const members = problem.choices[i]?.members ?? [];
    assignment.set(
      leaf,
      members.map((_, m) => selection.units[unitsAt(i, m)] ?? 0),
    );
  });
  problem.kills.forEach((kill, i) => {
    if ((selection.kills[i] ?? 0) > 0) assignment.set(kill.id, [selection.kills[i] ?? 0]);
  });
  return assignment;
}

/** The leaves' units as a selection. */
export function selectionOf(problem: Problem, assignment: Assignment): Selection {
  const units = noUnits(problem);
  leavesOf(problem).forEach((leaf, i) => units.set(assignment.get(leaf) ?? [], unitsAt(i, 0)));
  const kills = Float64Array.from(problem.kills, (kill) => assignment.get(kill.id)?.[0] ?? 0);
  return { units, kills, objectiveUsd: objectiveOf(problem, units, kills) };
}
