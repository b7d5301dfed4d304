import { raw, secondsBetween, type EpochMs } from '../../../kernel/units.ts';
import type { Attempt, StageSpec } from '../../../domain/job.ts';

/** Running times of a stage's tasks, from recorded attempts. */
export interface StageRuntimes {
  /** One per task, s. */
  readonly runtimeS: Float64Array;
  /** Tries of each task that failed by themselves before one succeeded. */
  readonly failures: Uint16Array;
  /** Tasks that never finished: their running time is a guess. */
  readonly guessed: number;
}

/** Running time without any evidence. */
const UNKNOWN_S = 600;
/** A task that was ended by its time limit needs longer than that. */
const PAST_LIMIT_S = 1;

/**
 * Running times of the tasks of a stage, from its attempts. A task that never finished gets the time of its failed
 * tries, else the median of its stage, else the expected one; at least the time it had run when it was interrupted,
 * stopped, or last observed at `untilMs`.
 */
export function stageRuntimes(stage: StageSpec, attempts: readonly Attempt[], untilMs: EpochMs): StageRuntimes {
  const runtimeS = new Float64Array(stage.tasks).fill(NaN);
  const failures = new Uint16Array(stage.tasks);
  for (const a of attempts) {
    if (a.outcome === 'succeeded') runtimeS[a.index] = ranS(a, untilMs);
    if (a.outcome === 'failed') failures[a.index] = (failures[a.index] ?? 0) + 1;
  }
  const usualS = median([...runtimeS].filter((s) => !Number.isNaN(s))) ?? expectedS(stage);
  const byTask = Map.groupBy(attempts, (a) => a.index);
  let guessed = 0;
  runtimeS.forEach((s, index) => {
    if (!Number.isNaN(s)) return;
    guessed++;
    runtimeS[index] = guessS(byTask.get(index) ?? [], usualS, untilMs);
  });
  return { runtimeS, failures, guessed };
}

const expectedS = (stage: StageSpec): number =>
  stage.expectedRuntimeS === null ? UNKNOWN_S : raw(stage.expectedRuntimeS);

function guessS(attempts: readonly Attempt[], usualS: number, untilMs: EpochMs): number {
  const [failed, others] = [attempts.filter(hasFailed), attempts.filter((a) => !hasFailed(a))];
  const least = others.map((a) => ranS(a, untilMs) + (a.outcome === 'timed-out' ? PAST_LIMIT_S : 0));
  return Math.max(median(failed.map((a) => ranS(a, untilMs))) ?? usualS, ...least);
}

const hasFailed = (a: Attempt): boolean => a.outcome === 'failed';

/** Time from the task's beginning to its end: saved work at the start, and this attempt. */
const ranS = (a: Attempt, untilMs: EpochMs): number =>
  a.startedMs === null
    ? 0
    : Math.max(
        1,
        raw(a.resumedFromS) + Math.max(0, secondsBetween(a.startedMs, a.endedMs ?? untilMs)) / (a.slowdown ?? 1),
      );

function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}
