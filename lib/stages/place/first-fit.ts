import type { Placement } from '../../domain/plan.ts';
import type { PlaceTasks } from '../../policy/contracts.ts';
import { Room, unitsOf, type Run } from './room.ts';

/**
 * Baseline: each task on the first host by name that has room, longest tasks first. Gangs whole or not at all,
 * `allowed` respected, nothing overfilled; input order does not matter. O(T log T + runs x hosts).
 */
export const firstFit: PlaceTasks = (tasks, hosts) => {
  const units = unitsOf(tasks);
  const room = new Room(hosts, units.flat());
  const order = room.hosts.map((_, h) => h).sort((a, b) => room.byName(a, b));
  return units.flatMap((unit) => placeUnit(unit, room, order));
};

function placeUnit(unit: readonly Run[], room: Room, order: readonly number[]): Placement[] {
  const placements: Placement[] = [];
  const taken: { readonly run: Run; readonly host: number }[] = [];
  for (const run of unit) {
    let next = 0;
    for (const h of order) {
      if (next === run.tasks.length) break;
      const host = room.hosts[h];
      if (host === undefined || !room.fits(run.need, h) || !run.allowed(host)) continue;
      for (let task = run.tasks[next]; task !== undefined && room.fits(run.need, h); task = run.tasks[++next]) {
        room.take(run.need, h, 1);
        taken.push({ run, host: h });
        placements.push({ task: task.task, group: task.group, on: host.on, reason: 'the first instance with room' });
      }
    }
    if (run.gang !== null && next < run.tasks.length) {
      for (const t of taken) room.take(t.run.need, t.host, -1);
      return [];
    }
  }
  return placements;
}
