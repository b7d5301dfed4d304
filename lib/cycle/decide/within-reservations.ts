/** Purchases in reserved pools, of which there are only so many instances: what a pool lacks is bought elsewhere. */
import type { PoolId } from '../../kernel/ids.ts';
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import type { Purchase } from '../../domain/plan.ts';
import { fits, minusResources } from '../../domain/resources.ts';
import type { Leftover, ScaleInput, ScalePolicy, Scaling } from '../../policy/contracts.ts';

/** Instances that may still be launched, of each reserved pool. */
type Left = Map<PoolId, number>;

/**
 * The same policy, asked again without the pools that are used up while it wants more of them than there are.
 * O(reserved pools x the policy's own time) at most, and once where no pool is used up.
 */
export const withinReservations =
  (scale: ScalePolicy): ScalePolicy =>
  (input) => {
    const left: Left = new Map();
    for (const { pool, reservedLeft } of input.snapshot.pools) {
      if (reservedLeft !== undefined) left.set(pool.id, reservedLeft);
    }
    return left.size === 0 ? scale(input) : scaleAgain(scale, input, left);
  };

function scaleAgain(scale: ScalePolicy, input: ScaleInput, left: Left): Scaling {
  const answer = scale(input);
  const taken = within(answer.purchases, left);
  if (!taken.isCut) return answer;
  const leftovers = stillWithout(input, taken.purchases);
  if (leftovers.length === 0) return { ...answer, purchases: taken.purchases };
  const more = scaleAgain(scale, { ...input, leftovers, snapshot: afterwards(input, taken.purchases, left) }, left);
  const now = more.purchases.filter((p) => p.serves === undefined);
  return { ...answer, purchases: [...taken.purchases, ...now] };
}

/** Purchases of no more than is left, which they take. */
function within(purchases: readonly Purchase[], left: Left) {
  let isCut = false;
  const taken = purchases.flatMap((p) => {
    const most = left.get(p.pool);
    if (most === undefined) return [p];
    const count = Math.min(p.count, most);
    if (count < p.count) isCut = true;
    left.set(p.pool, most - count);
    return count === 0 ? [] : [{ ...p, count }];
  });
  return { purchases: taken, isCut };
}

/** Demand for which these purchases have no room: first fit, in the order of the demand. */
function stillWithout({ leftovers, snapshot, offers }: ScaleInput, purchases: readonly Purchase[]) {
  const pools = new Map(snapshot.pools.map(({ pool }) => [pool.id, pool]));
  const counts = leftovers.map((l) => l.count);
  const mayUse = leftovers.map(
    (l) => new Set([l.option.offer.pool, ...(offers.get(l.group.id)?.offers ?? []).map((o) => o.pool)]),
  );
  for (const { pool: id, count, serves } of purchases) {
    const pool = pools.get(id);
    if (pool === undefined || serves !== undefined) continue;
    for (let i = 0; i < count; i++) fill(pool, { leftovers, counts, mayUse });
  }
  return leftovers.flatMap((l, i): Leftover[] => {
    const count = counts[i] ?? 0;
    return count === 0 ? [] : [{ ...l, count }];
  });
}

function fill(
  { id, type }: Pool,
  of: {
    readonly leftovers: readonly Leftover[];
    readonly counts: number[];
    readonly mayUse: readonly ReadonlySet<PoolId>[];
  },
): void {
  let free = type.capacity;
  for (const [i, { group }] of of.leftovers.entries()) {
    if (of.mayUse[i]?.has(id) !== true) continue;
    let n = of.counts[i] ?? 0;
    for (; n > 0 && fits(group.need, free); n--) free = minusResources(free, group.need);
    of.counts[i] = n;
  }
}

/** The snapshot after the purchases: used-up pools are closed, and fewer vCPUs are allowed. */
function afterwards({ snapshot }: ScaleInput, purchases: readonly Purchase[], left: Left): ScaleInput['snapshot'] {
  const pools = new Map(snapshot.pools.map(({ pool }) => [pool.id, pool]));
  const vcpus = purchases.reduce((n, p) => {
    const pool = pools.get(p.pool);
    return pool === undefined ? n : n + p.count * vcpusOf(pool);
  }, 0);
  return {
    ...snapshot,
    limits: { ...snapshot.limits, vcpus: snapshot.limits.vcpus - vcpus },
    pools: snapshot.pools.map((view) =>
      left.get(view.pool.id) === 0
        ? { ...view, open: false, closedReason: 'the last reserved instances are taken in this cycle' }
        : view,
    ),
  };
}
