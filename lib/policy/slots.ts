/** Slots: vCPUs, in mCPU, of which each task takes what it asks for. */
import type { JobId } from '../kernel/ids.ts';
import { milliCpuOf } from '../domain/pool.ts';
import { milliCpuIn } from '../domain/resources.ts';
import type { Snapshot } from '../domain/snapshot.ts';

/** mCPU of the machines of a fixed cluster; where machines can be bought, the limit on vCPUs. */
export function slotsOf(snapshot: Snapshot): number {
  const { instances, pools, limits } = snapshot;
  if (!isFixed(snapshot)) return 1000 * limits.vcpus;
  let sum = 0;
  for (const { pool, reservedLeft = 0 } of pools) sum += Math.max(0, reservedLeft) * milliCpuOf(pool);
  for (const { pool } of instances.values()) sum += milliCpuOf(pool);
  return Math.min(sum, 1000 * limits.vcpus);
}

/** True where all machines are paid for, whether they are used or not: slots that nobody needs cost nothing. */
export const isFixed = ({ pools }: Snapshot): boolean => pools.every(({ reservedLeft }) => reservedLeft !== undefined);

/** mCPU that live attempts use, by job, and in all. O(running tasks). */
export function usedSlots({ running }: Pick<Snapshot, 'running'>): {
  readonly byJob: ReadonlyMap<JobId, number>;
  readonly sum: number;
} {
  const byJob = new Map<JobId, number>();
  let sum = 0;
  for (const { attempt } of running) {
    const milliCpu = milliCpuIn(attempt.resources);
    byJob.set(attempt.job, (byJob.get(attempt.job) ?? 0) + milliCpu);
    sum += milliCpu;
  }
  return { byJob, sum };
}
