import type { StageSpec } from '../../domain/job.ts';
import type { RunningTask } from '../../domain/snapshot.ts';

/**
 * Finds for a running task another one of its stage that is as far, so that what is asked of both is answered once:
 * most of a stage begins together. Each is compared with one alone, the last that was like no other. Memory: one task
 * for each stage that is live.
 */
export class Alike {
  readonly #last = new WeakMap<StageSpec, RunningTask>();

  /** The task with what it is like, or as it is. */
  of(running: RunningTask): RunningTask {
    const last = this.#last.get(running.stage);
    if (last !== undefined && isAsFar(running, last)) return { ...running, like: last };
    this.#last.set(running.stage, running);
    return running;
  }
}

/** Everything that a forecast and what is left by it depend on (`leftOf`). */
const isAsFar = (a: RunningTask, b: RunningTask): boolean =>
  a.stage === b.stage &&
  a.attempt.job === b.attempt.job &&
  a.attempt.startedMs === b.attempt.startedMs &&
  a.attempt.resumedFromS === b.attempt.resumedFromS &&
  a.readS === b.readS &&
  a.ranS === b.ranS;

/** What tasks are like, in order, of those that follow each other and are alike only one. */
export function distinctOf(tasks: readonly RunningTask[]): readonly RunningTask[] {
  const distinct: RunningTask[] = [];
  for (const r of tasks) {
    const one = r.like ?? r;
    if (one !== distinct.at(-1)) distinct.push(one);
  }
  return distinct;
}
