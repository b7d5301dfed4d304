/**
 * SuperCloud-Spot's greedy acquisition (Stratus, section 3.3.3; its dynamic program knows no tasks of different sizes).
 * All waiting tasks are one batch, whatever their running times. Tasks go largest first in the most constrained
 * resource. In each step every pool is filled with what fits, and the one with the most of that resource in use per
 * dollar is bought; of equal ones the largest.
 * O(leftovers log leftovers + steps x pools x classes of tasks), where pools alike but for their price count once.
 */
import { compareText } from '../../kernel/compare.ts';
import { seconds } from '../../kernel/units.ts';
import { KINDS } from '../../domain/resources.ts';
import { mostConstrained } from '../../policy/most-constrained.ts';
import type { Leftover } from '../../policy/contracts.ts';
import type { Acquire } from './acquire.ts';
import { pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { withoutShortGangs, type Lot, type Run } from './purchases.ts';
import { countOnTop, taskClasses, type TaskClass } from './task-classes.ts';

export const supercloud: Acquire = (input) => {
  const pools = pricedPools(input);
  const kind = mostConstrained(
    input.leftovers.map(({ group, count }) => ({ need: group.need, count })),
    pools.map((p) => p.pool.type.capacity),
  );
  const vcpus = vcpusLeft(input.snapshot);
  return withoutShortGangs(input.leftovers, (leftovers) => fillGreedily(leftovers, { pools, kind, vcpus }));
};

interface Filled {
  readonly of: PricedPool;
  readonly taken: readonly number[];
  readonly tasks: number;
  /** Amount of the most constrained resource in use. */
  readonly amount: number;
}

function fillGreedily(
  leftovers: readonly Leftover[],
  { pools, kind, vcpus }: { readonly pools: readonly PricedPool[]; readonly kind: number; readonly vcpus: number },
): Run {
  const classes = taskClasses(leftovers.map((l) => ({ ...l, runtimeS: seconds(0) }))).toSorted(
    (a, b) => (b.need[kind] ?? 0) - (a.need[kind] ?? 0),
  );
  const gangs = new Map(leftovers.map((l) => [l.group.id, l]));
  const lots: Lot[] = [];
  let left = vcpus;
  let waiting = classes;
  for (;;) {
    const affordable = pools.filter((p) => p.vcpus <= left + 1e-9);
    const best = affordable.reduce<Filled | null>((found, of) => better(found, filled(of, waiting, kind)), null);
    if (best === null) break;
    best.taken.forEach((n, i) => {
      const c = waiting[i];
      if (c !== undefined) c.left -= n;
    });
    left -= best.of.vcpus;
    lots.push({ of: best.of, count: 1, tasks: best.tasks, used: best.amount / (best.of.capacity[kind] ?? 1) });
    waiting = waiting.filter((c) => c.left > 0);
  }
  const shortGangs = waiting.flatMap((c): Leftover[] => {
    const gang = c.gang === null ? undefined : gangs.get(c.gang.group.id);
    return gang === undefined ? [] : [gang];
  });
  return { lots, shortGangs };
}

/** Each class in order, as many tasks of it as fit on top. */
function filled(of: PricedPool, waiting: readonly TaskClass[], kind: number): Filled | null {
  const used = Array.from({ length: KINDS }, () => 0);
  let tasks = 0;
  const taken = waiting.map((c) => {
    const count = c.allows(of) ? Math.min(c.left, countOnTop(c.need, used, of.capacity)) : 0;
    for (let k = 0; k < KINDS; k++) used[k] = (used[k] ?? 0) + count * (c.need[k] ?? 0);
    tasks += count;
    return count;
  });
  return tasks === 0 ? null : { of, taken, tasks, amount: used[kind] ?? 0 };
}

/** More of the resource per dollar; of equal ones the more of it, then the first name. */
function better(a: Filled | null, b: Filled | null): Filled | null {
  if (a === null || b === null) return a ?? b;
  const more =
    b.amount / b.of.usdPerHour - a.amount / a.of.usdPerHour ||
    b.amount - a.amount ||
    compareText(a.of.pool.id, b.of.pool.id);
  return more > 0 ? b : a;
}
