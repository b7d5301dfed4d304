/**
 * Tasks of each purchased instance. Acquirers choose instances; this assigns leftover tasks to them, whatever the
 * acquirer, so that each purchase has jobs that pay for it.
 */
import { compareText } from '../../kernel/compare.ts';
import type { JobId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { descending, raw } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { MAX_BENEFICIARIES, type Beneficiary } from '../../domain/instance.ts';
import type { Purchase } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { SLACK, countInVector, dominantShare, vector } from '../../domain/resources.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Leftover } from '../../policy/contracts.ts';

/** Tasks on one instance, as far as they cost. */
export interface TakenFor {
  readonly leftover: Pick<Leftover, 'group' | 'runtimeS'>;
  readonly tasks: number;
}
/** Tasks of one entry on one instance. */
export interface Taken extends TakenFor {
  readonly leftover: Leftover;
}

/** Purpose of one instance. */
export interface Lot {
  readonly taken: readonly Taken[];
  readonly boughtFor: readonly Beneficiary[];
  /** Expected time until release, seconds; absent unless a limit of the deployment needs it. */
  readonly expectedS?: number;
}

/** Per purchase, per instance of it. */
export type Lots = readonly (readonly Lot[])[];

interface Entry {
  readonly leftover: Leftover;
  readonly need: readonly number[];
  left: number;
}

interface Queue {
  /** Entries whose chosen offer is in the pool. */
  chosen: readonly Entry[];
  /** All entries that may run there. */
  entries: readonly Entry[];
  /** All jobs that may run there, who share instances without tasks of their own. */
  readonly shared: () => readonly Beneficiary[];
}

/** One instance, being filled. */
interface Filling {
  readonly free: number[];
  readonly taken: Taken[];
}

/** Entries that do not fit are passed over this often per instance: bounds the work where needs are very mixed. */
const MOST_PASSED = 32;

/**
 * Fills the instances in order, the longest tasks first: each with tasks whose chosen offer is in its pool, then with
 * others that may run there. An instance without a task of its own is shared by all tasks that may run there.
 * O(leftovers x pools bought + instances x (tasks per instance + MOST_PASSED)), however many instances have no task.
 */
export function lotsOf(
  purchases: readonly Purchase[],
  leftovers: readonly Leftover[],
  { pools }: Pick<Snapshot, 'pools'>,
): Lots {
  if (purchases.length === 0) return [];
  const bought = new Set<string>(purchases.map((p) => p.pool));
  const poolOf = new Map<string, Pool>(pools.flatMap(({ pool }) => (bought.has(pool.id) ? [[pool.id, pool]] : [])));
  const entries = leftovers
    .map((leftover): Entry => ({ leftover, need: vector(leftover.group.need), left: leftover.count }))
    .sort(
      (a, b) =>
        descending(a.leftover.runtimeS, b.leftover.runtimeS) || compareText(keyOf(a.leftover), keyOf(b.leftover)),
    );
  const queues = new Map([...poolOf].map(([id, pool]): [string, Queue] => [id, queueOf(pool, entries)]));
  const instances = purchases.map(({ pool, count }): readonly Filling[] => {
    const capacity = poolOf.get(pool)?.type.capacity;
    return capacity === undefined
      ? []
      : Array.from({ length: count }, () => ({ free: [...vector(capacity)], taken: [] }));
  });
  for (const which of ['chosen', 'entries'] as const) {
    purchases.forEach(({ pool }, i) => {
      const queue = queues.get(pool);
      if (queue !== undefined) for (const instance of instances[i] ?? []) fill(instance, queue, which);
    });
  }
  return purchases.map(({ pool: id }, i) =>
    (instances[i] ?? []).map(({ taken }): Lot => {
      const [pool, queue] = [poolOf.get(id), queues.get(id)];
      if (pool === undefined || queue === undefined) return { taken, boughtFor: [] };
      return { taken, boughtFor: taken.length > 0 ? beneficiaries(pool, taken) : queue.shared() };
    }),
  );
}

function queueOf(pool: Pool, all: readonly Entry[]): Queue {
  const entries = all.filter((e) => mayRun(e, pool));
  const shared = once(() => beneficiaries(pool, (entries.length > 0 ? entries : all).map(wholly)));
  return { chosen: entries.filter((e) => e.leftover.option.offer.pool === pool.id), entries, shared };
}

const wholly = ({ leftover }: Entry): Taken => ({ leftover, tasks: leftover.count });

const mayRun = ({ leftover: { group } }: Entry, pool: Pool): boolean =>
  brokenConstraint(group.stage.constraints, pool) === null && dominantShare(group.need, pool.type.capacity) <= 1;

/** Takes tasks for one instance off the queue. */
function fill({ free, taken }: Filling, queue: Queue, which: 'chosen' | 'entries'): void {
  let passed = 0;
  let empty = 0;
  for (const entry of queue[which]) {
    if (entry.left === 0) {
      empty++;
      continue;
    }
    const { perInstance = Infinity } = entry.leftover;
    const there = perInstance === Infinity ? 0 : countOf(entry.leftover, taken);
    const tasks = Math.min(entry.left, perInstance - there, countInVector(entry.need, free));
    if (tasks === 0) {
      if (++passed >= MOST_PASSED) break;
      continue;
    }
    entry.left -= tasks;
    entry.need.forEach((n, k) => (free[k] = (free[k] ?? 0) - n * tasks));
    taken.push({ leftover: entry.leftover, tasks });
    if (free.some((f, k) => f <= SLACK && (entry.need[k] ?? 0) > 0)) break;
  }
  if (empty > MOST_PASSED) queue[which] = queue[which].filter((e) => e.left > 0);
}

const countOf = (leftover: Leftover, taken: readonly Taken[]): number =>
  taken.reduce((n, t) => (t.leftover.group.id === leftover.group.id ? n + t.tasks : n), 0);

/** Jobs by constraining resource x expected time; at most MAX_BENEFICIARIES, whose parts sum to 1. */
export function beneficiaries(pool: Pool, taken: readonly TakenFor[]): readonly Beneficiary[] {
  const weights = new Map<JobId, number>();
  for (const { leftover, tasks } of taken) {
    const { group, runtimeS } = leftover;
    const weight = tasks * dominantShare(group.need, pool.type.capacity) * Math.max(1, raw(runtimeS));
    weights.set(group.job, (weights.get(group.job) ?? 0) + weight);
  }
  const largest = [...weights].sort(([a, x], [b, y]) => y - x || compareText(a, b)).slice(0, MAX_BENEFICIARIES);
  const sum = largest.reduce((total, [, weight]) => total + weight, 0);
  return largest.map(([job, weight]) => ({ job, part: sum > 0 ? weight / sum : 1 / largest.length }));
}

const keyOf = ({ group, option }: Leftover): string => `${group.id} ${option.offer.pool}`;
