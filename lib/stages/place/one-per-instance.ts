import { compareText } from '../../kernel/compare.ts';
import type { Placement } from '../../domain/plan.ts';
import { fits } from '../../domain/resources.ts';
import type { Host, PlaceTasks, TaskToPlace } from '../../policy/contracts.ts';

/**
 * Baseline: each task alone on an instance, as fleets that scale by the number of tasks run them. Only instances that
 * nothing runs on take a task, the first by name that is allowed. Gangs whole or not at all; input order does not
 * matter. O(tasks x empty hosts).
 */
export const onePerInstance: PlaceTasks = (tasks, hosts) => {
  const empty = new Set(hosts.filter(isEmpty).sort((a, b) => compareText(a.on, b.on)));
  const units = new Map<string, TaskToPlace[]>();
  for (const task of [...tasks].sort((a, b) => compareText(keyOf(a), keyOf(b)))) {
    const unit = task.gang ?? keyOf(task);
    units.set(unit, [...(units.get(unit) ?? []), task]);
  }
  return [...units.values()].flatMap((unit) => placeUnit(unit, empty));
};

function placeUnit(unit: readonly TaskToPlace[], empty: Set<Host>): Placement[] {
  const taken = new Set<Host>();
  const placements: Placement[] = [];
  for (const task of unit) {
    const host = [...empty].find((h) => !taken.has(h) && fits(task.need, h.capacity) && task.allowed(h));
    if (host === undefined) return [];
    taken.add(host);
    placements.push({ task: task.task, group: task.group, on: host.on, reason: 'an instance of its own' });
  }
  for (const host of taken) empty.delete(host);
  return placements;
}

const isEmpty = ({ free, capacity }: Host): boolean => fits(capacity, free);

const keyOf = ({ task }: TaskToPlace): string => `${task.job}/${task.stage}/${String(task.index).padStart(9, '0')}`;
