/**
 * Costs of instances for jobs with a limit, US dollars: of a purchase with its tasks, of a task placed on a live
 * instance, and of running tasks. Each job pays by its share of the running tasks at each moment.
 */
import type { JobId } from '../../kernel/ids.ts';
import { raw, secondsBetween, type UsdPerHour } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Beneficiary } from '../../domain/instance.ts';
import { onDemandUsdOf, usdPerHourOf, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { dominantShare } from '../../domain/resources.ts';
import { runningByJob, type InstanceView, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';
import { leftS, type LeftOf } from '../../policy/left-of.ts';
import type { Lot, TakenFor } from './lots.ts';
import { chargedS } from '../../market/billing.ts';
import { highestUsdPerHour, moreChargedS, sharedS, usdFor } from './worst-cost.ts';

export interface CostInput {
  readonly snapshot: Snapshot;
  readonly leftOf: LeftOf;
  readonly config: SchedulerConfig;
}

export class LotCosts {
  readonly #input: CostInput;
  readonly #pools: ReadonlyMap<string, PoolView>;
  readonly #exitS: ReadonlyMap<JobId, number>;

  /** `exitS`: seconds to release an instance, by job with a limit. Both maps may still be filled later. */
  constructor(
    input: CostInput,
    of: { readonly pools: ReadonlyMap<string, PoolView>; readonly exitS: ReadonlyMap<JobId, number> },
  ) {
    this.#input = input;
    this.#pools = of.pools;
    this.#exitS = of.exitS;
  }

  /** Expected cost of running tasks, US dollars: unused capacity is shared by the tasks there now. */
  runningUsd(job: JobId): number {
    const { snapshot, leftOf } = this.#input;
    let usd = 0;
    for (const running of runningByJob(snapshot).get(job) ?? []) {
      const view = snapshot.instances.get(running.attempt.instance);
      if (view === undefined) continue;
      const shares = view.attempts.reduce(
        (sum, r) => sum + dominantShare(r.attempt.resources, view.pool.type.capacity),
        0,
      );
      const part = shares > 0 ? dominantShare(running.attempt.resources, view.pool.type.capacity) / shares : 1;
      usd += usdFor(leftS(running, leftOf), this.quoteUsd(view.pool)) * part;
    }
    return usd;
  }

  /**
   * Commitment of a job for a task on a live instance: its payment there with the task, less its payment without. Money
   * set aside at the purchase of the instance pays for the job's first task there, and for others as far as it goes.
   */
  placementUsd(
    { job, need }: PendingGroup,
    of: { readonly there: InstanceView; readonly beside: readonly OnInstance[]; readonly runtimeS: number },
  ): number {
    const { snapshot, config } = this.#input;
    const { instance, pool, attempts } = of.there;
    const quoteUsd = this.quoteUsd(pool);
    const added: OnInstance = { job, endS: of.runtimeS, share: dominantShare(need, pool.type.capacity) };
    const withoutUsd = runningCosts(of.beside, quoteUsd).get(job) ?? 0;
    const withUsd = runningCosts([...of.beside, added], quoteUsd).get(job) ?? 0;
    const isFirst = !of.beside.some((o) => o.job === job);
    const mine = instance.boughtFor?.find((b) => b.job === job);
    if (attempts.length === 0 && mine?.usd !== undefined) {
      if (isFirst) return 0;
      const goneS = instance.launchedMs === null ? 0 : secondsBetween(instance.launchedMs, snapshot.nowMs);
      const setAsideUsd = mine.usd - usdFor(Math.max(0, goneS), quoteUsd) * mine.part;
      return Math.max(0, withUsd - Math.max(withoutUsd, setAsideUsd));
    }
    const runUsd = Math.max(0, withUsd - withoutUsd);
    if (!isFirst) return runUsd;
    const moreS = moreChargedS(instance.launchedMs, snapshot.nowMs, this.#exitS.get(job) ?? 0, config);
    const seconds = moreS + sharedS(instance.launchedMs, snapshot.nowMs, config);
    const quote = this.#pools.get(pool.id)?.quote ?? null;
    return Math.max(runUsd, usdFor(seconds, highestUsdPerHour(pool, instance.bid, quote)));
  }

  /** Tasks on an instance now. */
  runningOn({ attempts, pool }: InstanceView): OnInstance[] {
    return attempts.map((r) => ({
      job: r.attempt.job,
      endS: leftS(r, this.#input.leftOf),
      share: dominantShare(r.attempt.resources, pool.type.capacity),
    }));
  }

  quoteUsd(pool: Pool): number {
    const quote: UsdPerHour | null = this.#pools.get(pool.id)?.quote ?? null;
    return usdPerHourOf(pool, quote);
  }

  /**
   * Commitment of each job with a limit for an instance: start-up by its part of the purchase, its share while its
   * tasks run, and rounding of bills; at least the cost of releasing it. `perTaskUsd`: running alone. O(n log n) in the
   * classes of tasks.
   */
  lotUsd(
    { taken, boughtFor }: Pick<Lot, 'boughtFor'> & { readonly taken: readonly TakenFor[] },
    { pool, bid }: { readonly pool: Pool; readonly bid: Bid },
  ): ReadonlyMap<JobId, { readonly usd: number; readonly perTaskUsd: number; readonly tasks: number }> {
    const { config } = this.#input;
    const limited = new Set([...taken.map((t) => t.leftover.group.job), ...boughtFor.map((b) => b.job)]);
    const costs = new Map<JobId, { usd: number; perTaskUsd: number; tasks: number }>();
    for (const job of limited) if (this.#exitS.has(job)) costs.set(job, { usd: 0, perTaskUsd: 0, tasks: 0 });
    if (costs.size === 0) return costs;
    const priceUsd = this.quoteUsd(pool);
    const runUsd = runningCosts(
      taken.map((t) => onInstance(t, pool)),
      priceUsd,
    );
    const longestS = taken.reduce((most, t) => Math.max(most, raw(t.leftover.runtimeS)), 0);
    const heldS = config.startDelayMaxS + longestS + config.turnoverS;
    const tailUsd = usdFor(chargedS(heldS, config) - config.startDelayMaxS - longestS, priceUsd);
    const whole = [...runUsd.values()].reduce((sum, usd) => sum + usd, 0);
    const highest = highestUsdPerHour(pool, bid, this.#pools.get(pool.id)?.quote ?? null);
    for (const [job, cost] of costs) {
      const part = boughtFor.find((b) => b.job === job)?.part ?? 0;
      const mine = runUsd.get(job) ?? 0;
      const used = whole > 0 ? mine / whole : part;
      cost.tasks = taken.reduce((n, t) => n + (t.leftover.group.job === job ? t.tasks : 0), 0);
      cost.perTaskUsd = cost.tasks > 0 ? mine / cost.tasks : 0;
      const expected = usdFor(config.startDelayMaxS, priceUsd) * part + mine + tailUsd * used;
      const least = usdFor(chargedS(config.startDelayMaxS + (this.#exitS.get(job) ?? 0), config), highest);
      cost.usd = Math.max(expected, least * Math.max(part, Number(mine > 0)));
    }
    return costs;
  }
}

/** Bid for an instance of a job with a limit: the on-demand price, as EC2 sets it. Without a bid if spot costs more. */
export const lotBid = (bid: Bid, pool: Pool, quoteUsd: number): Bid =>
  bid === 'uncapped' && pool.option === 'spot' && quoteUsd <= onDemandUsdOf(pool) ? pool.onDemandUsdPerHour : bid;

/** Tasks of a job on an instance: seconds until they end, and their dominant share. */
export interface OnInstance {
  readonly job: JobId;
  readonly endS: number;
  readonly share: number;
}

const onInstance = ({ leftover: { group, runtimeS }, tasks }: TakenFor, pool: Pool): OnInstance => ({
  job: group.job,
  endS: raw(runtimeS),
  share: tasks * dominantShare(group.need, pool.type.capacity),
});

/**
 * Payment of each job while its tasks run, US dollars: at each moment by its share of the running tasks. O(n log n +
 * ends x jobs).
 */
function runningCosts(there: readonly OnInstance[], usdPerHour: number): ReadonlyMap<JobId, number> {
  const costs = new Map<JobId, number>();
  const shareOf = new Map<JobId, number>();
  const entries = [...there].sort((a, b) => a.endS - b.endS);
  let shares = 0;
  for (const { job, share } of entries) {
    shareOf.set(job, (shareOf.get(job) ?? 0) + share);
    shares += share;
  }
  let fromS = 0;
  for (const entry of entries) {
    if (entry.endS > fromS && shares > 0) {
      const usd = usdFor(entry.endS - fromS, usdPerHour) / shares;
      for (const [job, share] of shareOf) costs.set(job, (costs.get(job) ?? 0) + usd * share);
      fromS = entry.endS;
    }
    shares -= entry.share;
    shareOf.set(entry.job, (shareOf.get(entry.job) ?? 0) - entry.share);
  }
  return costs;
}

/** Beneficiaries with their costs, where known. */
export const withCosts = (
  boughtFor: readonly Beneficiary[],
  costs: ReadonlyMap<JobId, { readonly usd: number }>,
): readonly Beneficiary[] =>
  boughtFor.map((b) => {
    const usd = costs.get(b.job)?.usd;
    return usd === undefined ? b : { ...b, usd };
  });
