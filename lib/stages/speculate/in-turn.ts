/** Copies that have a turn: the plan of the same name leaves room for them (lib/stages/plan/in-turn.ts). */
import { brokenConstraint } from '../../domain/constraints.ts';
import { fits } from '../../domain/resources.ts';
import { liveBeside, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { NamedTarget } from '../../domain/plan.ts';
import type { Copy, SpeculatePolicy } from '../../policy/contracts.ts';
import type { Turning } from '../../policy/speculation/turn-taking.ts';
import { turnsOf } from '../../policy/speculation/turns.ts';

export const copiesInTurn =
  (turning: Turning): SpeculatePolicy =>
  (context) =>
    turnsOf(context, turning(context.config)).copies.map(({ running, reason }): Copy => {
      const to = machineToStart(running, context.snapshot);
      return { of: running.attempt.id, reason, ...(to === null ? {} : { to }) };
    });

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
