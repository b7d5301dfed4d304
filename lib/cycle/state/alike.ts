import type { StageSpec } from '../../domain/job.ts';
import type { RunningTask } from '../../domain/snapshot.ts';

/**
 * Finds for a running task another one of its stage with equal progress, so that questions are answered once for both:
 * most tasks of a stage begin together. Each is compared with only one, the last that matched none. Memory: one task
 * for each live stage.
 */
export class Alike {
  readonly #last = new WeakMap<StageSpec, RunningTask>();

  /** The task with its match, or as it is. */
  of(running: RunningTask): RunningTask {
    const last = this.#last.get(running.stage);
    if (last !== undefined && isAsFar(running, last)) return { ...running, like: last };
    this.#last.set(running.stage, running);
    return running;
  }
}

/** Inputs to a forecast and to the remaining time (`leftOf`). */
const isAsFar = (a: RunningTask, b: RunningTask): boolean =>
  a.stage === b.stage &&
  a.attempt.job === b.attempt.job &&
  a.attempt.startedMs === b.attempt.startedMs &&
  a.attempt.resumedFromS === b.attempt.resumedFromS &&
  a.attempt.slowdown === b.attempt.slowdown &&
  a.readS === b.readS &&
  a.ranS === b.ranS;

/** Tasks in order, with only one of each sequence of alike ones. */
export function distinctOf(tasks: readonly RunningTask[]): readonly RunningTask[] {
  const distinct: RunningTask[] = [];
  for (const r of tasks) {
    const one = r.like ?? r;
    if (one !== distinct.at(-1)) distinct.push(one);
  }
  return distinct;
}
