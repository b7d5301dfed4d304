import type { JobId } from '../../kernel/ids.ts';
import { raw, vcpusIn } from '../../kernel/units.ts';
import type { Offer } from '../../domain/forecast.ts';
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { correlationPenalty, type PoolHeld } from '../../policy/footprint/correlation-penalty.ts';

/**
 * Capacity held and being bought, by spot pool: the A of Tributary 2.2.2, in vCPUs (its resc). Also per job, for the
 * concentration of one job in one pool.
 */
export class Footprint {
  readonly #market: MarketForecast;
  readonly #gamma: number;
  readonly #held = new Map<Pool, number>();
  readonly #byId = new Map<string, Pool>();
  readonly #ofJob = new Map<JobId, Map<string, number>>();
  readonly #wantedByJob = new Map<JobId, number>();

  constructor(input: AcquireInput) {
    this.#market = input.forecasts.market;
    this.#gamma = input.config.correlationPenalty;
    for (const { pool, attempts } of input.snapshot.instances.values()) {
      if (pool.option === 'spot') this.#hold(pool, vcpusOf(pool));
      for (const { attempt } of attempts) this.give(attempt.job, pool, vcpusIn(attempt.resources.cpu));
    }
    for (const l of input.leftovers) this.#want(l.group.job, vcpusIn(l.group.need.cpu) * l.count);
  }

  /** Instances bought in a pool. */
  buy(pool: Pool, vcpus: number): void {
    if (pool.option === 'spot') this.#hold(pool, vcpus);
  }

  /** A job's tasks were given room in a pool. */
  give(job: JobId, pool: Pool, vcpus: number): void {
    const pools = this.#ofJob.get(job) ?? new Map<string, number>();
    pools.set(pool.id, (pools.get(pool.id) ?? 0) + vcpus);
    this.#ofJob.set(job, pools);
  }

  /**
   * Tributary eq. 2.6, were `vcpus` bought in `pool`. Added to the probability of losing it; 0 for non-interruptible
   * capacity. O(pools held).
   */
  correlationPenalty(pool: Pool, vcpus: number): number {
    if (pool.option !== 'spot' || this.#gamma === 0) return 0;
    const key = this.#byId.get(pool.id);
    const own = (key === undefined ? 0 : (this.#held.get(key) ?? 0)) + vcpus;
    return correlationPenalty(own, this.#othersThan(pool), this.#gamma);
  }

  *#othersThan(pool: Pool): Iterable<PoolHeld> {
    for (const [other, units] of this.#held) {
      if (other.id !== pool.id) yield { units, correlation: this.#market.correlation(pool, other) };
    }
  }

  /**
   * Premium for bulk loss, a fraction of the price: the share of the job that one interruption of this pool already
   * takes, times P(interrupted), times the share of a task's time that an interruption costs. The expected loss itself
   * is in the offer's cost; this charges it again for the part that would come all at once. 0 for the first purchase of
   * a job.
   */
  concentrationPremium(leftover: Leftover, offer: Offer): number {
    if (offer.pInterrupted <= 0) return 0;
    const { job } = leftover.group;
    const there = this.#ofJob.get(job)?.get(offer.pool) ?? 0;
    if (there === 0) return 0;
    const concentration = Math.min(1, there / Math.max(this.#wantedByJob.get(job) ?? 0, there));
    const lostS = raw(offer.expectedLostS) / offer.pInterrupted + raw(offer.startDelayS);
    return concentration * offer.pInterrupted * Math.min(1, lostS / Math.max(raw(leftover.runtimeS), 1));
  }

  #hold(pool: Pool, vcpus: number): void {
    const known = this.#byId.get(pool.id) ?? pool;
    this.#byId.set(pool.id, known);
    this.#held.set(known, (this.#held.get(known) ?? 0) + vcpus);
  }

  #want(job: JobId, vcpus: number): void {
    this.#wantedByJob.set(job, (this.#wantedByJob.get(job) ?? 0) + vcpus);
  }
}
