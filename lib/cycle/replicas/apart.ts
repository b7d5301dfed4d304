/**
 * Replicas of a service with a `min` of two or more are apart: the loss of one instance leaves half of them. Like
 * `maxPerInstance` in its file, but soft: where there is no other place, or the wait gets long, one instance may have
 * them all, as requests cannot wait.
 */
import { secondsBetween } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { takesTasks } from '../../domain/instance.ts';
import type { Job, StageSpec } from '../../domain/job.ts';
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import { countFits } from '../../domain/resources.ts';
import { SERVICE_LABEL } from '../../domain/service.ts';
import type { Snapshot, PendingGroup } from '../../domain/snapshot.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { replicasOn, serviceOf } from './demand.ts';

/** Longest wait for another instance, seconds: twice what launches take that succeed. */
const LONGEST_WAIT_S = 600;

/** The same snapshot where no replica that waits is to be apart. O(jobs), and O(pools + instances) for a service. */
export function keptApart(snapshot: Snapshot, buys: (pool: Pool) => boolean = () => true): Snapshot {
  const waiting = Map.groupBy(snapshot.groups, ({ job }) => serviceOf(job, snapshot) ?? '');
  const most = new Map<string, number>();
  for (const [name, groups] of waiting) {
    const together = snapshot.services?.get(name)?.together ?? null;
    if (together !== null && isThereRoom(groups, { name, together, snapshot, buys })) most.set(name, together);
  }
  if (most.size === 0) return snapshot;
  const jobs = [...snapshot.jobs].map(([id, job]): [typeof id, Job] => {
    const together = job.spec.class === 'service' ? most.get(job.spec.labels[SERVICE_LABEL] ?? '') : undefined;
    return [
      id,
      together === undefined ? job : { ...job, spec: { ...job.spec, stages: job.spec.stages.map(upTo(together)) } },
    ];
  });
  return { ...snapshot, jobs: new Map(jobs) };
}

const upTo =
  (maxPerInstance: number) =>
  (stage: StageSpec): StageSpec => ({ ...stage, placement: { ...stage.placement, maxPerInstance } });

interface Apart {
  readonly name: string;
  readonly together: number;
  readonly snapshot: Snapshot;
  readonly buys: (pool: Pool) => boolean;
}

/** True if each has another instance to go to, or to be bought, and none has waited long. */
function isThereRoom(groups: readonly PendingGroup[], { name, together, snapshot, buys }: Apart): boolean {
  const { jobs, pools, instances, nowMs } = snapshot;
  const left = vcpusLeft(snapshot);
  return groups.every(({ job, stage: { constraints, resources } }) => {
    const { submittedMs = nowMs } = jobs.get(job) ?? {};
    if (secondsBetween(submittedMs, nowMs) > LONGEST_WAIT_S) return false;
    const isFor = (pool: Pool): boolean => brokenConstraint(constraints, pool) === null;
    const isSold = pools.some(
      ({ pool, open, quote, reservedLeft }) =>
        open &&
        quote !== null &&
        reservedLeft !== 0 &&
        vcpusOf(pool) <= left &&
        buys(pool) &&
        isFor(pool) &&
        countFits(resources, pool.type.capacity) > 0,
    );
    if (isSold) return true;
    for (const view of instances.values()) {
      const hasRoom = takesTasks(view.instance) && isFor(view.pool) && countFits(resources, view.free) > 0;
      if (hasRoom && replicasOn(view, name, snapshot) < together) return true;
    }
    return false;
  });
}
