import type { StageSpec } from '../../domain/job.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { takesTasks } from '../../domain/instance.ts';
import { countFits, NO_RESOURCES, plusResources } from '../../domain/resources.ts';
import type { Snapshot } from '../../domain/snapshot.ts';

/**
 * Replicas that would find room at once if best-effort tasks gave way, as they do in seconds. A service needs no spare
 * replicas beyond that: batch work keeps the headroom warm and pays for it. Room that is free is not counted: it may be
 * given back any minute. O(running tasks + instances).
 */
export function roomThatGivesWay(stage: StageSpec, { running, instances }: Snapshot): number {
  const byInstance = Map.groupBy(
    running.filter((r) => r.class === 'best-effort' && r.attempt.state === 'running'),
    (r) => r.attempt.instance,
  );
  let room = 0;
  for (const [id, tasks] of byInstance) {
    const view = instances.get(id);
    if (view === undefined || !takesTasks(view.instance)) continue;
    if (brokenConstraint(stage.constraints, view.pool) !== null) continue;
    room += countFits(stage.resources, tasks.map((r) => r.stage.resources).reduce(plusResources, NO_RESOURCES));
  }
  return room;
}
