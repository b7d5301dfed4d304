import { EbbError, invariant } from '../../kernel/errors.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Purchase } from '../../domain/plan.ts';
import { fits } from '../../domain/resources.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Leftover } from '../../policy/contracts.ts';

/**
 * Invariant of every preset: each purchase has room for a task that it may be used for, by the user's own constraints.
 * Throws `internal`. O(purchases x leftovers) at most, and O(purchases) where the first leftover may use them.
 */
export function expectUseful(
  purchases: readonly Purchase[],
  { pools }: Pick<Snapshot, 'pools'>,
  leftovers: readonly Leftover[],
): void {
  if (purchases.length === 0) return;
  const byId = new Map(pools.map(({ pool }) => [pool.id, pool]));
  for (const { pool: id } of purchases) {
    const pool = invariant(byId.get(id), `the plan buys in ${id}, which is no pool of the market`);
    const isUseful = leftovers.some(
      ({ group }) => brokenConstraint(group.stage.constraints, pool) === null && fits(group.need, pool.type.capacity),
    );
    if (!isUseful) throw new EbbError('internal', { what: 'the plan buys an instance that no task may use', got: id });
  }
}
