import { groupId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { raw, seconds } from '../../lib/kernel/units.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import type { Host, TaskToPlace } from '../../lib/policy/contracts.ts';
import { pool, resources } from './decision-world.ts';

export interface TaskFacts {
  readonly id: string;
  readonly count?: number;
  readonly need?: Resources;
  readonly runtimeS: number;
  readonly gang?: string | null;
  readonly allowed?: TaskToPlace['allowed'];
  readonly inPool?: TaskToPlace['inPool'];
}

/** The tasks of one group, with one shared `allowed` and `inPool`. */
export function tasksOf({
  id,
  count = 1,
  need = resources(1, 1),
  runtimeS,
  gang = null,
  allowed = () => true,
  inPool,
}: TaskFacts): TaskToPlace[] {
  return Array.from({ length: count }, (_, index) => ({
    task: { job: jobId(id), stage: 'main', index },
    group: groupId(id),
    need,
    runtimeS: seconds(runtimeS),
    gang,
    allowed,
    ...(inPool === undefined ? {} : { inPool }),
  }));
}

export interface HostFacts {
  readonly id: string;
  readonly vcpus?: number;
  readonly free?: number;
  readonly gib?: number;
  readonly remainingS?: number;
  readonly zone?: string;
}

export function host({ id, vcpus = 4, free = vcpus, gib = 64, remainingS = 0, zone = 'a' }: HostFacts): Host {
  const p = pool({ vcpus, gib, zone });
  return {
    on: instanceId(id),
    pool: p,
    capacity: p.type.capacity,
    free: { ...resources(free, gib), disk: p.type.capacity.disk },
    remainingS: seconds(remainingS),
  };
}

export const nameOf = (on: Host['on']): string => on;
export const runtimeOf = (t: TaskToPlace): number => raw(t.runtimeS);
