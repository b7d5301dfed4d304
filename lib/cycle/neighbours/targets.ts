/** Where running tasks may go, or be copied to, within `placement` rules. */
import type { Constraints } from '../../domain/job.ts';
import type { NamedTarget } from '../../domain/plan.ts';
import type { RunningTask } from '../../domain/snapshot.ts';
import type { Neighbours, RuledStage } from './neighbours.ts';

/**
 * Constraints of a running task that goes to any capacity of a side, narrowed to the zones in which it may start; null:
 * there is none, or it may start on no instance that is bought.
 */
export function constraintsToMove({ stage, attempt }: RunningTask, neighbours: Neighbours | null): Constraints | null {
  const { constraints } = stage;
  const of = neighbours?.of(attempt) ?? null;
  if (neighbours === null || of === null) return constraints;
  return neighbours.without(of, attempt.instance, () => {
    const zones = of.zones().map((z) => z.zone);
    const open = zones.filter((zone) => neighbours.mostIn(of, zone) >= 1);
    if (open.length === 0 || neighbours.mostOnNew(of) < 1) return null;
    return open.length === zones.length ? constraints : { ...constraints, zones: open };
  });
}

/** A named target, with its zone. */
export interface TargetThere {
  readonly to: NamedTarget;
  readonly zone: string;
}

/** True if a running task may go on at a target. */
export function mayMoveTo({ attempt }: RunningTask, target: TargetThere, neighbours: Neighbours): boolean {
  const of = neighbours.of(attempt);
  return of === null || neighbours.without(of, attempt.instance, () => hasPlace(of, target, neighbours));
}

/** True if one more task of a stage may start at a target. */
export function hasPlace(of: RuledStage, { to, zone }: TargetThere, neighbours: Neighbours): boolean {
  const there = to.instance === undefined ? neighbours.mostOnNew(of) : neighbours.mostOn(of, to.instance);
  return there >= 1 && neighbours.mostIn(of, zone) >= 1;
}
