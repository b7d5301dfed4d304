/**
 * What begins first on the instances that are up. A packer goes by running times and room alone, so that an instance
 * which was bought for a task that must begin now could come up and be given to one that came later and has time, while
 * the first waits for the other's.
 */
import { between, gt, lt, raw, type EpochMs } from '../../kernel/units.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Worth } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';

/**
 * The deadline of a group whose last safe moment is over, epoch ms: an instance that has yet to start may be up too
 * late for it. Null: that moment is still to come, there is no deadline, or not even the shortest run that is known
 * would be in time, for which nobody is to wait.
 */
export function urgentDeadlineMs(
  group: Pick<PendingGroup, 'keptS' | 'ranS'>,
  of: { readonly worth: Worth | undefined; readonly forecast: RuntimeForecast; readonly nowMs: EpochMs },
): number | null {
  const { latestSafeStartMs = null, taskDeadlineMs = null } = of.worth ?? {};
  if (latestSafeStartMs === null || taskDeadlineMs === null || gt(latestSafeStartMs, of.nowMs)) return null;
  const leastS = quantileToDo(of.forecast.runtime, group, 0);
  return lt(between(of.nowMs, taskDeadlineMs), leastS) ? null : raw(taskDeadlineMs);
}
