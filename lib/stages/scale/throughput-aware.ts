import { compareText } from '../../kernel/compare.ts';
import { invariant } from '../../kernel/errors.ts';
import { vector } from '../../domain/resources.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { neighbourLearner } from '../../policy/colocation/neighbour-learner.ts';
import { withOneMore, worthTogether, type Priced } from '../../policy/colocation/throughput.ts';
import { templateOf } from '../../policy/colocation/together.ts';
import { allowedPools, pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import type { Acquire } from './acquire.ts';
import { withoutShortGangs, type Lot, type Run } from './purchases.ts';
import { countOnTop } from './task-classes.ts';

/** Waiting tasks of one group. */
interface Work {
  readonly leftover: Leftover;
  readonly template: string;
  readonly need: readonly number[];
  readonly allows: (of: PricedPool) => boolean;
  /** Price of the cheapest instance on which a task fits alone. */
  readonly usdPerHour: number;
  left: number;
}

interface Assembly {
  readonly taken: ReadonlyMap<Work, number>;
  readonly tasks: number;
  readonly used: readonly number[];
  readonly worth: number;
}

/**
 * Eva's packing (algorithm 1). Pools go by price, the dearest first. For an instance of a pool the task that adds most
 * to the sum of normalised reservation prices is added, as long as one adds anything; the instance is bought if the sum
 * is not below its price, and so on. Prices are those of now, spot at the on-demand bid. Eva moves running tasks as
 * well, which this does not.
 *
 * O(pools x tasks of an instance x leftovers x templates of an instance squared) for each different instance.
 */
export const throughputAware: Acquire = (input) => {
  const pools = pricedPools(input).toSorted((a, b) => b.usdPerHour - a.usdPerHour || compareText(a.pool.id, b.pool.id));
  return withoutShortGangs(input.leftovers, (leftovers) => bought(leftovers, pools, input));
};

function bought(leftovers: readonly Leftover[], pools: readonly PricedPool[], input: AcquireInput): Run {
  const belief = input.beliefs.of(neighbourLearner);
  const works = worksOf(leftovers, pools, input);
  const lots: Lot[] = [];
  let vcpus = vcpusLeft(input.snapshot);
  for (const of of pools) {
    for (;;) {
      if (of.vcpus > vcpus + 1e-9) break;
      const found = assembled(works, of, (tenants) => worthTogether(tenants, { belief, type: of.pool.type }));
      if (found.tasks === 0 || found.worth < of.usdPerHour * (1 - 1e-9)) break;
      // The same instance again and again, while there are tasks for it.
      const times = Math.min(
        Math.floor((vcpus + 1e-9) / of.vcpus),
        ...[...found.taken].map(([work, n]) => Math.floor(work.left / n)),
      );
      for (const [work, n] of found.taken) work.left -= times * n;
      vcpus -= times * of.vcpus;
      const used = Math.max(...found.used.map((u, k) => ((of.capacity[k] ?? 0) > 0 ? u / (of.capacity[k] ?? 1) : 0)));
      lots.push({ of, count: times, tasks: found.tasks, used });
    }
  }
  return { lots, shortGangs: works.flatMap(({ leftover: l, left }) => (left > 0 && l.group.stage.gang ? [l] : [])) };
}

function worksOf(leftovers: readonly Leftover[], pools: readonly PricedPool[], { snapshot }: AcquireInput): Work[] {
  return leftovers
    .filter((l) => l.count > 0)
    .toSorted((a, b) => compareText(a.group.id, b.group.id))
    .flatMap((leftover): Work[] => {
      const { group, count } = leftover;
      const need = vector(group.need);
      const allows = allowedPools(group.stage);
      const fitting = pools.filter((of) => allows(of) && countOnTop(need, [], of.capacity) >= 1);
      const cheapest = fitting.at(-1);
      if (cheapest === undefined) return [];
      const job = snapshot.jobs.get(group.job);
      const template = job === undefined ? group.id : templateOf(job, group.stage);
      return [{ leftover, template, need, allows, usdPerHour: cheapest.usdPerHour, left: count }];
    });
}

function assembled(works: readonly Work[], of: PricedPool, worthOf: (tenants: readonly Priced[]) => number): Assembly {
  const taken = new Map<Work, number>();
  let tenants: readonly Priced[] = [];
  let used: readonly number[] = of.capacity.map(() => 0);
  let worth = 0;
  let tasks = 0;
  for (;;) {
    let best: { readonly work: Work; readonly tenants: readonly Priced[]; readonly worth: number } | null = null;
    // Groups that are alike for the sum are tried once.
    const tried = new Set<string>();
    for (const work of works) {
      const key = `${work.template} ${work.usdPerHour} ${work.need.join(' ')}`;
      if (work.left <= (taken.get(work) ?? 0) || tried.has(key) || !work.allows(of)) continue;
      tried.add(key);
      if (countOnTop(work.need, used, of.capacity) < 1) continue;
      const part = Math.max(...work.need.map((n, k) => ((of.capacity[k] ?? 0) > 0 ? n / (of.capacity[k] ?? 1) : 0)));
      const { template, usdPerHour } = work;
      const after = withOneMore(tenants, { template, part, usdPerHour });
      const sum = worthOf(after);
      if (best === null || sum > best.worth) best = { work, tenants: after, worth: sum };
    }
    if (best === null || best.worth <= worth) return { taken, tasks, used, worth };
    const { work } = best;
    taken.set(work, (taken.get(work) ?? 0) + 1);
    used = used.map((u, k) => u + invariant(work.need[k], 'needs and capacities are of the same kinds'));
    ({ tenants, worth } = best);
    tasks++;
  }
}
