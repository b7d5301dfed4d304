import { isUrgent } from '../../domain/job.ts';
import { compareText } from '../../kernel/compare.ts';
import type { Acquire } from './acquire.ts';
import { mayUse } from './eligible.ts';
import { seconds } from '../../kernel/units.ts';
import { pInterruptedWithin } from '../../domain/forecast.ts';
import type { Purchase } from '../../domain/plan.ts';
import { usdPerHourOf, vcpusOf, type Pool, type PoolView } from '../../domain/pool.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';

/** "In the near term": an hour. */
export const NEAR_S = seconds(3600);
/**
 * Part of the pools that count as those with the least chance of interruption. Ours: AWS says "the pools" and no
 * number.
 */
const SAFEST_PART = 1 / 3;

/**
 * Baseline: EC2 Fleet's price-capacity-optimized strategy, which AWS recommends: the pools with the lowest chance of
 * interruption in the near term, and of these the one with the lowest price (EC2 User Guide, "Use allocation strategies
 * to determine how EC2 Fleet or Spot Fleet fulfills Spot and On-Demand capacity";
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html). AWS does not publish its
 * estimates; the forecast of this program stands in for them. No bids: AWS advises against a maximum price. One task
 * per instance, as in a fleet that scales by the number of tasks. If the plan chose on-demand: the machine with the
 * lowest price that holds the task (`lowest-price`, EC2's default for On-Demand). Nobody shares it, so the plan's price
 * for a share of a large one does not apply. Gangs whole or not at all; stops at the vCPU limit. O(leftovers x pools
 * log pools).
 */
export const priceCapacityOptimized: Acquire = (input) => {
  const bought = new Map<Pool, number>();
  let vcpus = vcpusLeft(input.snapshot);
  const open = input.snapshot.pools.filter((v) => v.open && v.quote !== null);
  for (const leftover of [...input.leftovers].sort(byDeadlineThenId)) {
    const pool = poolFor(leftover, open, input);
    if (pool === null) continue;
    const count = Math.min(leftover.count, Math.max(0, Math.floor((vcpus + 1e-9) / vcpusOf(pool))));
    if (count === 0 || (leftover.group.stage.gang && count < leftover.count)) continue;
    vcpus -= count * vcpusOf(pool);
    bought.set(pool, (bought.get(pool) ?? 0) + count);
  }
  return [...bought]
    .sort(([a], [b]) => (a.id < b.id ? -1 : 1))
    .map(([pool, count]): Purchase => ({
      pool: pool.id,
      bid: 'uncapped',
      count,
      reason:
        `one instance for each of ${count} ${count === 1 ? 'task' : 'tasks'}` +
        (pool.option === 'spot' ? ', the lowest price among the pools of least risk' : ''),
    }));
};

function poolFor({ group, option }: Leftover, open: readonly PoolView[], input: AcquireInput): Pool | null {
  const chosen = open.find((v) => v.pool.id === option.offer.pool)?.pool ?? null;
  if (chosen === null || chosen.option === 'reserved') return chosen;
  const able = open
    .filter(({ pool }) => pool.option === chosen.option && mayUse(pool)(group))
    .map(({ pool, quote }) => ({ pool, usdPerHour: usdPerHourOf(pool, quote) }))
    .sort((a, b) => a.usdPerHour - b.usdPerHour || (a.pool.id < b.pool.id ? -1 : 1));
  const safe = chosen.option === 'spot' ? safestOf(able, input) : able;
  return safe[0]?.pool ?? null;
}

/**
 * Pools as safe as the last of the safest part count as equal to it: without evidence all are alike, and price decides.
 */
function safestOf<P extends { readonly pool: Pool }>(able: readonly P[], { forecasts }: AcquireInput): readonly P[] {
  const risks = new Map(
    able.map((p) => [p, pInterruptedWithin(forecasts.market.interruption(p.pool, 'uncapped'), NEAR_S)]),
  );
  const ascending = [...risks.values()].sort((a, b) => a - b);
  const limit = ascending[Math.max(0, Math.ceil(able.length * SAFEST_PART) - 1)] ?? 0;
  return able.filter((p) => (risks.get(p) ?? 0) <= limit + 1e-9);
}

const byDeadlineThenId = (a: Leftover, b: Leftover): number =>
  Number(isUrgent(b.group.class)) - Number(isUrgent(a.group.class)) || compareText(a.group.id, b.group.id);
