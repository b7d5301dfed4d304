/** Room that best-effort tasks hold and would leave to replicas. */
import { brokenConstraint } from '../../domain/constraints.ts';
import { takesTasks } from '../../domain/instance.ts';
import type { StageSpec } from '../../domain/job.ts';
import { countFits, NO_RESOURCES, plusResources } from '../../domain/resources.ts';
import type { InstanceView, RunningTask, Snapshot } from '../../domain/snapshot.ts';

type Running = Pick<Snapshot, 'running' | 'instances'>;

/** Best-effort tasks that run where replicas of the stage may start, by instance. O(running tasks). */
export function bestEffortWhere(
  { constraints }: StageSpec,
  { running, instances }: Running,
): readonly { readonly view: InstanceView; readonly tasks: readonly RunningTask[] }[] {
  const bestEffort = running.filter((r) => r.class === 'best-effort' && r.attempt.state === 'running');
  return [...Map.groupBy(bestEffort, (r) => r.attempt.instance)].flatMap(([id, tasks]) => {
    const view = instances.get(id);
    if (view === undefined || !takesTasks(view.instance)) return [];
    return brokenConstraint(constraints, view.pool) === null ? [{ view, tasks }] : [];
  });
}

/**
 * Replicas that would find room at once if best-effort tasks gave way, as they do in seconds. A service needs no spare
 * replicas beyond that: batch work keeps the headroom warm and pays for it. Room that is free is not counted: it may be
 * given back any minute. O(running tasks).
 */
export const roomThatGivesWay = (stage: StageSpec, snapshot: Running): number =>
  bestEffortWhere(stage, snapshot)
    .map(({ tasks }) => tasks.map((r) => r.stage.resources).reduce(plusResources, NO_RESOURCES))
    .reduce((replicas, room) => replicas + countFits(stage.resources, room), 0);
