import { vcpusOf } from '../domain/pool.ts';
import type { Snapshot } from '../domain/snapshot.ts';

/** vCPUs that may still be bought: the limit less all live instances, starting ones included. O(instances). */
export function vcpusLeft({ limits, instances }: Pick<Snapshot, 'limits' | 'instances'>): number {
  let left = limits.vcpus;
  for (const { pool } of instances.values()) left -= vcpusOf(pool);
  return left;
}
