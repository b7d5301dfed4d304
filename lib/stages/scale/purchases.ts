import { capUsd } from '../../domain/pool.ts';
import type { Purchase } from '../../domain/plan.ts';
import type { Leftover } from '../../policy/contracts.ts';
import type { PricedPool } from '../../policy/on-demand-bids.ts';

/** Instances of one pool bought in one step. */
export interface Lot {
  readonly of: PricedPool;
  readonly count: number;
  /** Tasks on each. */
  readonly tasks: number;
  /** Part of the constraining resource that they request on each. */
  readonly used: number;
}

/** One purchase per pool and bid, in the order of pools. */
export function purchasesOf(lots: readonly Lot[]): readonly Purchase[] {
  const alike = Map.groupBy(lots, ({ of }) => `${of.pool.id} ${capUsd(of.bid)}`);
  return [...alike.keys()].sort().flatMap((key): Purchase[] => {
    const list = alike.get(key) ?? [];
    const first = list[0];
    if (first === undefined) return [];
    const count = list.reduce((n, l) => n + l.count, 0);
    const tasks = list.reduce((n, l) => n + l.count * l.tasks, 0);
    const used = list.reduce((sum, l) => sum + l.count * l.used, 0) / count;
    return [{ pool: first.of.pool.id, bid: first.of.bid, count, reason: reasonOf(first.of, { count, tasks, used }) }];
  });
}

const reasonOf = (
  { usdPerHour }: PricedPool,
  { count, tasks, used }: { readonly count: number; readonly tasks: number; readonly used: number },
): string =>
  `for ${tasks} ${tasks === 1 ? 'task' : 'tasks'}${count === 1 ? '' : ` on ${count} instances`}, ` +
  `${(100 * used).toFixed(0)} % full, at ${usdPerHour.toFixed(4)} USD per instance-hour`;

/** What a scaler bought, and leftovers of gangs that it found no room for as a whole. */
export interface Run {
  readonly lots: readonly Lot[];
  readonly shortGangs: readonly Leftover[];
}

/** Buys anew without the gangs that found no room as a whole, until none is short. At most one run per gang and one. */
export function withoutShortGangs(
  leftovers: readonly Leftover[],
  run: (leftovers: readonly Leftover[]) => Run,
): readonly Purchase[] {
  let open = leftovers;
  for (;;) {
    const { lots, shortGangs } = run(open);
    if (shortGangs.length === 0) return purchasesOf(lots);
    const short = new Set(shortGangs);
    open = open.filter((l) => !short.has(l));
  }
}
