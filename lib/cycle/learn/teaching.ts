import { messageOf } from '../../kernel/errors.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { LearningEvent } from '../../policy/learner.ts';
import type { Learners } from '../../policy/learners.ts';

import type { WorkingState } from '../state/working-state.ts';

/**
 * Events of one use case for the learners: `tell` each event, then `keep` once. A learner that throws is reported in
 * one event, however often it threw: it misses these events, and neither a job nor another learner waits for it.
 */
export class Teaching {
  readonly #learners: Learners;
  /** First fault of each learner, and how many there were. */
  #faults: Map<string, { readonly first: unknown; count: number }> | null = null;

  constructor(learners: Learners) {
    this.#learners = learners;
  }

  tell(event: LearningEvent): void {
    this.#learners.observe(event, this.#noteFault);
  }

  /** Puts the beliefs into the state, to be committed with the events behind them. */
  keep(state: WorkingState, at: EpochMs): void {
    this.#learners.takeDirty((key, value) => state.putMemory(key, value), this.#noteFault);
    this.#faults?.forEach(({ first, count }, learner) => {
      const times = count === 1 ? '' : ` (${count} faults)`;
      state.event('learner-failed', at, {
        text: `learner ${learner} did not take in what happened, all else goes on: ${messageOf(first)}${times}`,
        data: { learner, faults: count },
      });
    });
  }

  readonly #noteFault = (learner: string, error: unknown): void => {
    this.#faults ??= new Map();
    const known = this.#faults.get(learner);
    if (known === undefined) this.#faults.set(learner, { first: error, count: 1 });
    else known.count += 1;
  };
}
