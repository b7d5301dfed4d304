import { stageKey } from '../../domain/job.ts';
import type { InstanceView, RunningTask } from '../../domain/snapshot.ts';
import { begunBy } from '../../domain/work-to-do.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { standingOf } from '../../policy/even-progress.ts';
import { restartOf } from './deadline-guard.ts';

/**
 * Hysteresis of Uniform Progress (NSDI 2024, section 4): on-demand is left once the task is ahead of its line in two
 * changeovers.
 */
export function backToSpot(running: RunningTask, view: InstanceView, input: DecisionContext): Move | null {
  const { attempt, stage } = running;
  if (view.pool.option !== 'on-demand' || stage.gang) return null;
  const job = input.snapshot.jobs.get(attempt.job);
  const worth = input.worths.ofRunning(running);
  const submittedMs = job?.submittedMs;
  const { keptS: doneS, ranS } = begunBy(running, input.snapshot.nowMs);
  const at = standingOf({ stage: stageKey(attempt), worth, submittedMs, doneS, ranS }, input);
  if (at === null || at.safetyS < 0 || at.aheadAfterTwoS < 0) return null;
  const reason = `it is ${Math.round(at.aheadAfterTwoS)} s ahead of where uniform progress has it in two changeovers`;
  return { attempt: attempt.id, reason, running, view, to: 'spot', ...restartOf(running) };
}
