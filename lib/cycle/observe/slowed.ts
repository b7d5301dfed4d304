/** Attempts that ran longer because of their neighbours, for the record of their jobs. */
import type { NeighbourBelief } from '../../policy/colocation/neighbour-belief.ts';
import type { AttemptEnded } from '../../policy/learner.ts';
import type { WorkingState } from '../state/working-state.ts';

interface Slowed {
  readonly end: AttemptEnded;
  readonly tasks: number;
  /** Largest running time over that alone. */
  readonly factor: number;
  readonly beside: string;
}

/**
 * One event for each stage of a job with attempts that were slowed down among these. An end is added before learners
 * are told of it. O(ends x neighbours).
 */
export class SlowedAttempts {
  readonly #belief: NeighbourBelief;
  readonly #found = new Map<string, Slowed>();

  constructor(belief: NeighbourBelief) {
    this.#belief = belief;
  }

  add(end: AttemptEnded): void {
    const longer = this.#belief.ranLonger(end);
    if (longer === null) return;
    const key = `${end.job.id}/${end.stage.name}`;
    const known = this.#found.get(key);
    const worst = known !== undefined && known.factor > longer.factor ? known : { end, ...longer };
    this.#found.set(key, { ...worst, tasks: (known?.tasks ?? 0) + 1 });
  }

  note(state: WorkingState): void {
    for (const { end, tasks, factor, beside } of this.#found.values()) {
      const { job, stage, attempt, atMs } = end;
      const who = tasks === 1 ? `${stage.name}[${attempt.index}]` : `${tasks} tasks of ${stage.name}`;
      const times = `${tasks === 1 ? '' : 'up to '}${factor.toFixed(1)}x`;
      state.event('noisy-neighbour', atMs, {
        job: job.id,
        text: `${who} ran ${times} longer beside ${beside}`,
        data: { stage: stage.name, tasks, factor: Number(factor.toFixed(2)), beside },
      });
    }
  }
}
