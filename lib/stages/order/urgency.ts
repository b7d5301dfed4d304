/**
 * Urgent starts take live instances first. A packer goes by running times and room alone: an instance bought for an
 * urgent task could go to a later task that has time, while the first waits for the other's.
 */
import { between, gt, lt, raw, type EpochMs } from '../../kernel/units.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Worth } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';

/**
 * Deadline of a group past its last safe start, epoch ms: a coming instance may be up too late for it. Null: the last
 * safe start is still ahead, there is no deadline, or not even the shortest known run would be in time, so that nothing
 * should wait for it.
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
