import { PriceDrift, type PriceDriftBelief } from '../market/forecast/price-drift.ts';
import type { Learner, LearningEvent } from '../policy/learner.ts';

/** Learns whether trained models forecast losses to the price as they come, per version. O(1) per event. */
export const priceDriftLearner = (): Learner<PriceDriftBelief> => new PriceDriftLearner();

class PriceDriftLearner implements Learner<PriceDriftBelief> {
  readonly name = 'price-drift';
  readonly about = 'whether trained models forecast losses to the price as they come';
  readonly source = 'observed less expected events of a counting process (lib/market/forecast/drift.ts)';
  readonly learnsFrom = ['instance-ended'] as const;
  readonly #drift = new PriceDrift();
  readonly #belief: PriceDriftBelief = Object.freeze<PriceDriftBelief>({
    wrong: (version, now) => this.#drift.wrong(version, now),
  });
  readonly prefix = this.#drift.prefix;

  observe(event: LearningEvent): void {
    if (event.kind === 'instance-ended' && event.pool.option === 'spot')
      this.#drift.ended(event.instance, event.endedMs);
  }

  belief(): PriceDriftBelief {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    return this.#drift.takeDirty();
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#drift.restore(rows);
  }
}
