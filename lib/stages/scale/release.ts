import type { PoolId } from '../../kernel/ids.ts';
import { secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Release } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { instanceParts, type InstanceView, type PendingGroup } from '../../domain/snapshot.ts';
import { paidForS } from '../../market/billing.ts';
import type { ScaleInput } from '../../policy/contracts.ts';
import { mayUse } from './eligible.ts';

/** Policy of releases. */
export type Return = (input: Pick<ScaleInput, 'snapshot' | 'used' | 'config'>) => readonly Release[];

/** A paid hour is left early enough that a slow cycle does not begin the next one. */
const MARGIN_S = 30;

/**
 * Releases instances that are empty and got nothing this cycle; instances that start for waiting tasks are among
 * `used`. Paid time is kept while that is free: the first minute under per-second billing, the started hour under
 * per-hour billing, up to the last cycle before it ends. A starting instance is kept until it is ready if work with a
 * deadline waits that may run there: plans change with each job that arrives, and a new instance would be ready later.
 * Requested instances (outcome unknown) and ending ones are left alone.
 */
export const releaseIdle: Return = ({ snapshot, used, config }) => {
  const releases: Release[] = [];
  const idle: InstanceView[] = [];
  for (const view of instanceParts(snapshot).idle) {
    const { id, state } = view.instance;
    if ((state === 'starting' || state === 'ready') && !used.has(id)) idle.push(view);
  }
  const isAwaited = awaitedPools(snapshot.groups);
  for (const view of idle.sort(byId)) {
    if (view.instance.state === 'starting' && isAwaited(view.pool)) continue;
    const reason = reasonToRelease(view, snapshot.nowMs, config);
    if (reason !== null) releases.push({ instance: view.instance.id, reason });
  }
  return releases;
};

function reasonToRelease({ instance }: InstanceView, now: EpochMs, config: SchedulerConfig): string | null {
  if (instance.launchedMs === null) return 'nothing waits for it and it is not charged for yet';
  const ageS = secondsBetween(instance.launchedMs, now);
  const marginS = config.billing === 'per-hour' ? MARGIN_S : 0;
  if (config.cyclePeriodS + marginS <= paidForS(ageS, config)) return null;
  return config.billing === 'per-hour'
    ? 'no task is on it and its paid hour ends before the next decision'
    : 'no task is on it and every further second is charged';
}

/** True for a pool that waiting work with a deadline may use. O(groups) per pool. */
function awaitedPools(groups: readonly PendingGroup[]): (pool: Pool) => boolean {
  const known = new Map<PoolId, boolean>();
  const urgent = groups.filter((group) => group.class === 'deadline');
  return (pool) => {
    let isAwaited = known.get(pool.id);
    if (isAwaited === undefined) known.set(pool.id, (isAwaited = urgent.some(mayUse(pool))));
    return isAwaited;
  };
}

const byId = (a: InstanceView, b: InstanceView): number => (a.instance.id < b.instance.id ? -1 : 1);
