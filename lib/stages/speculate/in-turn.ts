/** Copies of slow tasks: those that have a turn, for which the plan of the same name leaves room, or all. */
import { brokenConstraint } from '../../domain/constraints.ts';
import { fits } from '../../domain/resources.ts';
import { liveBeside, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { NamedTarget } from '../../domain/plan.ts';
import type { Copy, SpeculatePolicy } from '../../policy/contracts.ts';
import type { Turning } from '../../policy/turns/by-job.ts';
import { stragglersIn } from '../../policy/speculation/stragglers.ts';
import { turnsOf } from '../../policy/turns/turns.ts';
import type { CopyRule, Straggler } from '../../policy/speculation/copy-rules.ts';

export const copiesInTurn =
  (turning: Turning): SpeculatePolicy =>
  (context) =>
    turnsOf(context, turning(context)).copies.map((of) => copyOf(of, context.snapshot));

/** Copies of slow tasks wherever the starts of all jobs leave room: best-effort speculation (Hopper, section 1). */
export const copiesOnRoomLeft =
  (rule: CopyRule): SpeculatePolicy =>
  (context) =>
    stragglersIn(context, rule).map((of) => copyOf(of, context.snapshot));

function copyOf({ running, reason, attempts }: Straggler, snapshot: Snapshot): Copy {
  const to = machineToStart(running, snapshot);
  return { of: running.attempt.id, reason, ...(to && { to }), ...(attempts !== undefined && { attempts }) };
}

/**
 * A machine of a fixed cluster that is not up, where no other has room: it costs nothing more. Others are not bought
 * for copies. O(instances).
 */
function machineToStart(running: RunningTask, snapshot: Snapshot): NamedTarget | null {
  const { attempt, stage } = running;
  const mayBe = (pool: Parameters<typeof brokenConstraint>[1]): boolean =>
    brokenConstraint(stage.constraints, pool) === null;
  const taken = new Set([running, ...liveBeside(snapshot, running)].map((r) => r.attempt.instance));
  for (const { instance, pool, free } of snapshot.instances.values())
    if (!taken.has(instance.id) && fits(attempt.resources, free) && mayBe(pool)) return null;
  for (const { pool, open, quote, reservedLeft = 0 } of snapshot.pools)
    if (open && quote !== null && reservedLeft > 0 && mayBe(pool) && fits(attempt.resources, pool.type.capacity))
      return { pool: pool.id, bid: 'uncapped' };
  return null;
}
