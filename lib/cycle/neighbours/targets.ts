/** Where running tasks may go, or be copied to, within `placement` rules. */
import type { Constraints } from '../../domain/job.ts';
import type { NamedTarget } from '../../domain/plan.ts';
import type { RunningTask } from '../../domain/snapshot.ts';
import type { Neighbours, RuledStage } from './neighbours.ts';

/** Constraints of a running task, narrowed to the zones in which it may start; null: there is none. */
export function constraintsToMove({ stage, attempt }: RunningTask, neighbours: Neighbours | null): Constraints | null {
  const { constraints } = stage;
  const of = neighbours?.of(attempt) ?? null;
  if (neighbours === null || of === null) return constraints;
  const zones = of.zones().map((z) => z.zone);
  const open = neighbours.without(of, attempt.instance, () => zones.filter((zone) => neighbours.mostIn(of, zone) >= 1));
  if (open.length === zones.length) return constraints;
  return open.length === 0 ? null : { ...constraints, zones: open };
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
