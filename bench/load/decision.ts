/** Input of a decision as earlier stages would give it, for benchmarks of single stages. */
import type { GroupId } from '../../lib/kernel/ids.ts';
import { epochMs, raw } from '../../lib/kernel/units.ts';
import type { Distribution } from '../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED, type InterruptionCurve } from '../../lib/domain/forecast.ts';
import type { Worth } from '../../lib/domain/plan.ts';
import type { Pool, PoolView } from '../../lib/domain/pool.ts';
import type { InstanceView, PendingGroup } from '../../lib/domain/snapshot.ts';
import type { AppraiseContext } from '../../lib/policy/contracts.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';
import { NOW, snapshot } from './values.ts';
import { NO_BELIEFS } from './no-beliefs.ts';

/** Worth of zero dollars, with a deadline and a last safe start in seconds from now, or without. */
export const worth = (deadlineInS: number | null, safeInS: number | null = deadlineInS): Worth => ({
  curve: { points: [] },
  taskDeadlineMs: deadlineInS === null ? null : epochMs(raw(NOW) + deadlineInS * 1000),
  latestSafeStartMs: safeInS === null ? null : epochMs(raw(NOW) + safeInS * 1000),
  reason: 'given',
});

export interface DecisionFacts {
  readonly groups: readonly PendingGroup[];
  readonly pools: readonly PoolView[];
  readonly runtime: (group: PendingGroup) => Distribution;
  readonly instances?: readonly InstanceView[];
  /** Default: no deadlines. */
  readonly worth?: (group: PendingGroup) => Worth;
  /** Interruptions of spot pools. Default: none. */
  readonly interruption?: (pool: Pool) => InterruptionCurve;
}

/** Decision with constant prices and independent pools. */
export function decisionOf({
  groups,
  pools,
  runtime,
  instances = [],
  worth: worthOf = () => worth(null),
  interruption = () => NEVER_INTERRUPTED,
}: DecisionFacts): Omit<AppraiseContext, 'config'> {
  const quotes = new Map(pools.map((view) => [view.pool.id, view.quote]));
  return {
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
    snapshot: snapshot({ groups, pools, instances: new Map(instances.map((i) => [i.instance.id, i])) }),
    forecasts: {
      runtime: new Map(
        groups.map((g) => [
          `${g.job}/${g.stage.name}`,
          { runtime: runtime(g), basis: 'history' as const, reason: 'given' },
        ]),
      ),
      market: {
        interruption: (pool) => (pool.option === 'spot' ? interruption(pool) : NEVER_INTERRUPTED),
        expectedPrice: (pool) => quotes.get(pool.id) ?? null,
        correlation: (a, b) => (a.id === b.id ? 1 : 0),
      },
    },
    worths: { groups: new Map<GroupId, Worth>(groups.map((g) => [g.id, worthOf(g)])), ofRunning: () => undefined },
  };
}
