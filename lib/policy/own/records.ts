/** Parts that answers of several stages have: groups, attempts, counts. Each read throws `Unusable` (read.ts). */
import { instanceId, poolId, type AttemptId, type GroupId } from '../../kernel/ids.ts';
import type { TaskRef } from '../../domain/job.ts';
import type { MoveTarget, NamedTarget } from '../../domain/plan.ts';
import type { Bid } from '../../domain/pool.ts';
import type { PendingGroup, RunningTask, Snapshot } from '../../domain/snapshot.ts';
import { entries, fields, refuse, shown, text, whole, type Fields } from './read.ts';

export const reasonOf = (of: Fields, what: string): string => text(of['reason'], `the reason of ${what}`);

export function once<T>(items: readonly T[], idOf: (item: T) => string, what: string): readonly T[] {
  const seen = new Set<string>();
  for (const item of items) {
    const id = idOf(item);
    if (seen.has(id)) return refuse(`${what} ${id} twice`);
    seen.add(id);
  }
  return items;
}

export const groupsById = ({ groups }: Pick<Snapshot, 'groups'>): ReadonlyMap<GroupId, PendingGroup> =>
  new Map(groups.map((group) => [group.id, group]));
export const groupNamed = (id: unknown, groups: ReadonlyMap<GroupId, PendingGroup>): PendingGroup =>
  groups.get(id as GroupId) ?? refuse(`the group ${shown(id)} does not wait`);
export const byAttempt = (running: readonly RunningTask[]): ReadonlyMap<AttemptId, RunningTask> =>
  new Map(running.map((r) => [r.attempt.id, r]));
/** Tasks that wait. */
export const tasksIn = (groups: Iterable<Pick<PendingGroup, 'count'>>): number => {
  let tasks = 0;
  for (const { count } of groups) tasks += count;
  return tasks;
};

/** Name of a task, for people. */
export const textOf = ({ job, stage, index }: TaskRef): string => `${job}/${stage}/${index}`;

/** A named target. Whether it exists is asked with what goes there (targets.ts). */
export function targetOf(given: unknown, what: string): NamedTarget {
  const { instance, pool, bid } = fields(given, `the target of ${what}`);
  if (instance !== undefined && pool !== undefined) return refuse(`the target of ${what} is an instance and a pool`);
  return instance === undefined
    ? { pool: poolId(text(pool, `the pool of ${what}`)), bid: bid as Bid }
    : { instance: instanceId(text(instance, `the instance of ${what}`)) };
}

/** Where a move leads. */
export const sideOf = ({ to }: Fields): { readonly to?: MoveTarget } =>
  to === undefined ? {} : { to: to === 'spot' ? to : targetOf(to, 'a move') };

/** Equal but for a bid. */
export const isSameSide = (a: MoveTarget | undefined, b: MoveTarget | undefined): boolean =>
  typeof a === 'object' && typeof b === 'object' ? a.instance === b.instance && a.pool === b.pool : a === b;

/** Counts of groups, none beyond the tasks that wait in it. */
export function expectWithin(
  parts: Iterable<readonly [GroupId, number]>,
  groups: ReadonlyMap<GroupId, Pick<PendingGroup, 'count'>>,
  what: string,
): void {
  const sums = new Map<GroupId, number>();
  for (const [group, count] of parts) sums.set(group, (sums.get(group) ?? 0) + count);
  for (const [group, sum] of sums) {
    const there = groups.get(group)?.count ?? 0;
    if (sum > there) refuse(`${what} ${sum} tasks of ${group}, of which ${there} wait`);
  }
}

/** Whole numbers of tasks by group. */
export function tasksByGroup(
  answer: unknown,
  groups: ReadonlyMap<GroupId, unknown>,
  what: string,
): ReadonlyMap<GroupId, number> {
  const made = new Map<GroupId, number>();
  for (const [id, count] of entries(answer, { what, most: groups.size })) {
    if (!groups.has(id as GroupId)) return refuse(`${what} has the group ${shown(id)}, which does not wait`);
    made.set(id as GroupId, whole(count, `a count of ${what}`));
  }
  return made;
}

/** Values of a map by group, for exactly these groups. */
export function byGroup<T>(
  answer: unknown,
  groups: ReadonlyMap<GroupId, PendingGroup>,
  { what, read }: { readonly what: string; readonly read: (value: unknown, group: PendingGroup) => T },
): ReadonlyMap<GroupId, T> {
  const made = new Map<GroupId, T>();
  for (const [id, value] of entries(answer, { what, most: groups.size })) {
    const group = groupNamed(id, groups);
    made.set(group.id, read(value, group));
  }
  return made;
}

export const expectAll = <T>(made: ReadonlyMap<GroupId, T>, groups: Iterable<GroupId>, what: string): typeof made => {
  for (const id of groups) if (!made.has(id)) return refuse(`the group ${id} has no ${what}`);
  return made;
};
