import { CapacityEvidence, type CapacityBelief } from '../market/forecast/hazard.ts';
import { isSpotPool } from '../domain/pool.ts';
import type { Learner, LearningEvent } from '../policy/learner.ts';

/** Learns how often the market takes spot capacity back for its own reasons, per pool. O(1) per event. */
export const capacityLearner = (): Learner<CapacityBelief> => new CapacityLearner();

class CapacityLearner implements Learner<CapacityBelief> {
  readonly name = 'capacity';
  readonly about = 'how often spot pools lose instances for want of capacity, and refuse launches';
  readonly source = 'Poisson interruptions with a Gamma prior pooled over families (docs/forecast-capacity.md)';
  readonly learnsFrom = ['instance-ended', 'launch-refused'] as const;
  readonly #evidence = new CapacityEvidence();
  readonly #belief: CapacityBelief = Object.freeze<CapacityBelief>({
    posterior: (pool, prior) => this.#evidence.posterior(pool, prior),
    news: Object.freeze<CapacityBelief['news']>({ at: (nowMs, since) => this.#evidence.news.at(nowMs, since) }),
  });
  readonly prefix = this.#evidence.prefix;

  observe(event: LearningEvent): void {
    if (event.kind === 'launch-refused') {
      if (event.why === 'insufficient-capacity' && isSpotPool(event.poolId))
        this.#evidence.refused(event.poolId, event.atMs);
    } else if (event.kind === 'instance-ended' && event.pool.option === 'spot') {
      const { launchedMs, endedMs, takenMs } = event;
      if (launchedMs !== null) this.#evidence.ended(event.pool.id, { launchedMs, endedMs, takenMs });
    }
  }

  belief(): CapacityBelief {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    return this.#evidence.takeDirty();
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#evidence.restore(rows);
  }
}
