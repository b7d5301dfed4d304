/** How much longer work runs on an instance that is bought for it, beside others like it, than it has run so far. */
import type { Job } from '../../domain/job.ts';
import type { InstanceType } from '../../domain/pool.ts';
import { countFits, dominantShare } from '../../domain/resources.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import { NO_SLOWDOWN, type Slowdown } from './slowdowns.ts';
import { templateOf } from './together.ts';

/** Slow-downs by instance type. */
export interface OnNewInstances {
  /** The same for work with the same slow-downs. */
  readonly key: string;
  readonly on: (type: InstanceType) => Slowdown;
}

/** Counts above this are told apart by powers of two. */
const EXACT = 4;
const MOST = 64;

/**
 * On an instance that a group's tasks fill, as far as there are so many; the rest of it is taken to be as usual for
 * them. Null: its template is not known to be slowed down. O(neighbours) for each type that is asked about.
 */
export function onNewInstances(
  { template, stage, need, count }: Pick<PendingGroup, 'stage' | 'need' | 'count'> & Pick<Job, 'template'>,
  belief: NeighbourBelief,
): OnNewInstances | null {
  const key = templateOf({ template }, stage);
  if (!belief.tells(key)) return null;
  const tasks = count <= EXACT ? count : Math.min(MOST, 2 ** Math.ceil(Math.log2(count)));
  const known = new Map<string, Slowdown>();
  const on = (type: InstanceType): Slowdown => {
    const here = Math.min(tasks, countFits(need, type.capacity));
    if (here === 0) return NO_SLOWDOWN;
    const part = Math.min(1, dominantShare(need, type.capacity));
    return belief.againstUsual(key, [{ template: key, part, tasks: here - 1 }], {
      type,
      known: Math.min(1, here * part),
    });
  };
  return {
    key: `${key} ${tasks}`,
    on: (type) => {
      let slowdown = known.get(type.name);
      if (slowdown === undefined) known.set(type.name, (slowdown = on(type)));
      return slowdown;
    },
  };
}
