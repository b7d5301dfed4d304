/** Packers that give each task the host with the highest score, one task after the other. */
import { compareText } from '../../kernel/compare.ts';
import type { Placement } from '../../domain/plan.ts';
import { KINDS, SLACK, vector } from '../../domain/resources.ts';
import type { Host, TaskToPlace } from '../../policy/contracts.ts';

/** A host while packing; free resources and capacity in the order of RESOURCE_KINDS. */
export interface Filled {
  readonly host: Host;
  readonly free: number[];
  readonly capacity: readonly number[];
}

export interface Rule {
  /** Order of tasks; equal ones go by name, which is the order of arrival. */
  readonly compare: (a: TaskToPlace, b: TaskToPlace) => number;
  /** Higher is better; of equal hosts the first by name is taken. */
  readonly score: (need: readonly number[], host: Filled) => number;
  readonly reason: string;
}

/** Gangs whole or not at all, at the place of their first task. O(tasks x hosts with room). */
export function placeOneByOne(tasks: readonly TaskToPlace[], hosts: readonly Host[], rule: Rule): readonly Placement[] {
  const packer = new OneByOne(tasks, hosts, rule);
  const ordered = [...tasks].sort((a, b) => rule.compare(a, b) || compareText(nameOf(a), nameOf(b)));
  const units = new Map<string | TaskToPlace, TaskToPlace[]>();
  for (const task of ordered) {
    const unit = units.get(task.gang ?? task);
    if (unit === undefined) units.set(task.gang ?? task, [task]);
    else unit.push(task);
  }
  return [...units.values()].flatMap((unit) => packer.placeUnit(unit));
}

export const byArrival = (): number => 0;

class OneByOne {
  readonly #filled: readonly Filled[];
  readonly #rule: Rule;

  constructor(tasks: readonly TaskToPlace[], hosts: readonly Host[], rule: Rule) {
    const needs = tasks.map((t) => vector(t.need));
    const smallest = Array.from({ length: KINDS }, (_, k) => needs.reduce((m, n) => Math.min(m, n[k] ?? 0), Infinity));
    this.#rule = rule;
    this.#filled = hosts
      .map((host): Filled => ({ host, free: [...vector(host.free)], capacity: vector(host.capacity) }))
      .filter((h) => fitsIn(smallest, h))
      .sort((a, b) => compareText(a.host.on, b.host.on));
  }

  placeUnit(unit: readonly TaskToPlace[]): readonly Placement[] {
    const placed: { readonly task: TaskToPlace; readonly need: readonly number[]; readonly on: Filled }[] = [];
    for (const task of unit) {
      const need = vector(task.need);
      const on = this.#best(task, need);
      if (on === null) {
        if (task.gang === null) return [];
        for (const p of placed) take(p.need, p.on, -1);
        return [];
      }
      take(need, on, 1);
      placed.push({ task, need, on });
    }
    const { reason } = this.#rule;
    return placed.map(({ task, on }) => ({ task: task.task, group: task.group, on: on.host.on, reason }));
  }

  #best({ allowed }: TaskToPlace, need: readonly number[]): Filled | null {
    let best: Filled | null = null;
    let most = -Infinity;
    for (const filled of this.#filled) {
      if (!fitsIn(need, filled) || !allowed(filled.host)) continue;
      const score = this.#rule.score(need, filled);
      if (best === null || score > most) [best, most] = [filled, score];
    }
    return best;
  }
}

function fitsIn(need: readonly number[], { free }: Filled): boolean {
  for (let k = 0; k < KINDS; k++) if ((need[k] ?? 0) > (free[k] ?? 0) + SLACK) return false;
  return true;
}

function take(need: readonly number[], { free }: Filled, sign: 1 | -1): void {
  for (let k = 0; k < KINDS; k++) free[k] = (free[k] ?? 0) - sign * (need[k] ?? 0);
}

/** Ids of jobs ascend in the order of submission. */
const nameOf = ({ task }: TaskToPlace): string => `${task.job}/${task.stage}/${String(task.index).padStart(9, '0')}`;
