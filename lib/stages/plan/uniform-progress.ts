/**
 * Baseline: Uniform Progress (Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024,
 * section 4). With C(t) the work left, R(t) the time left until the deadline, c(t) the work done and d the time that a
 * changeover costs, the expected progress is a line: e(t) = t C(0) / R(0).
 *   safety net:     idle and R(t) < C(t) + 2d: on-demand, to the end
 *   exploitation:   spot whenever it can be had, also behind the line; stay on it until it is taken
 *   uniform:        idle without spot and c(t) < e(t): on-demand, to catch up; else wait
 *   hysteresis:     on on-demand, until c(t) >= e(t + 2d); then back to spot where there is some
 *
 * Ours, because the paper has one job of one task, told of spot capacity, on a machine of a fixed size:
 * - the line is each task's own, from the job's submission to the deadline of the task's stage, C(0) the running time
 *   at the safety quantile of its forecast;
 * - d is the longest start-up plus the restore of a checkpoint;
 * - that spot can be had is found by trying; a pool that refused rests. On-demand is left once a spot instance is there;
 * - running work also leaves spot when its last safe moment comes (guard.ts), for starting takes cycles here;
 * - work without a deadline has no line: it runs on spot or waits.
 */
import { between, raw, type EpochMs, type Seconds } from '../../kernel/units.ts';
import { quantile } from '../../domain/distribution.ts';
import { begunBy, doneOnceS, quantileToDo } from '../../domain/work-to-do.ts';
import type { Worth } from '../../domain/plan.ts';
import type { InstanceView, RunningTask } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../domain/stages.ts';
import { coursePlan, hasSpot, type Course } from './strategy.ts';
import type { Move } from './guard.ts';
import { isGuarded } from './options.ts';

/** Where a task stands against its line, seconds. */
export interface Standing {
  /** c(t) - e(t). */
  readonly aheadS: number;
  /** c(t) - e(t + 2d). */
  readonly aheadAfterTwoS: number;
  /** R(t) - C(t) - 2d. */
  readonly safetyS: number;
}

export interface Line {
  readonly nowMs: EpochMs;
  readonly submittedMs: EpochMs;
  readonly deadlineMs: EpochMs;
  /** C(0). */
  readonly workS: number;
  /** c(t). */
  readonly doneS: number;
  /** C(t). */
  readonly leftS: number;
  /** d. */
  readonly changeoverS: number;
}

export function standing(l: Line): Standing {
  const windowS = Math.max(1, raw(between(l.submittedMs, l.deadlineMs)));
  const atS = raw(between(l.submittedMs, l.nowMs));
  const expected = (s: number): number => Math.min(l.workS, (s * l.workS) / windowS);
  return {
    aheadS: l.doneS - expected(atS),
    aheadAfterTwoS: l.doneS - expected(atS + 2 * l.changeoverS),
    safetyS: windowS - atS - l.leftS - 2 * l.changeoverS,
  };
}

interface Of {
  readonly stage: string;
  readonly worth: Worth | undefined;
  readonly submittedMs: EpochMs | undefined;
  /** What it can carry on from, and how long it is known to run at least. */
  readonly doneS: Seconds;
  readonly ranS: Seconds;
}

function standingOf({ stage, worth, submittedMs, doneS, ranS }: Of, input: PlanInput): Standing | null {
  const forecast = input.forecasts.runtime.get(stage);
  if (forecast === undefined || submittedMs === undefined || !worth?.taskDeadlineMs) return null;
  const { safetyQuantile, startDelayMaxS, restoreS } = input.config;
  return standing({
    nowMs: input.snapshot.nowMs,
    submittedMs,
    deadlineMs: worth.taskDeadlineMs,
    workS: raw(quantile(forecast.runtime, safetyQuantile)),
    doneS: raw(doneS),
    leftS: raw(quantileToDo(forecast.runtime, { keptS: doneS, ranS }, safetyQuantile)),
    changeoverS: startDelayMaxS + restoreS,
  });
}

const wait = (why: string): Course => ({ take: 'wait', why });

export const uniformProgressPlan = coursePlan({
  pending: (group, input) => {
    const worth = input.worths.groups.get(group.id);
    const { submittedMs, keptS: doneS } = group;
    const of = { stage: `${group.job}/${group.stage.name}`, worth, submittedMs, doneS, ranS: doneOnceS(group) };
    const at = standingOf(of, input);
    const guarded = worth !== undefined && isGuarded(worth, input.snapshot.nowMs, input.config.cyclePeriodS);
    if (guarded || (at !== null && at.safetyS < 0)) return { take: 'steady', why: 'its safety net is reached' };
    if (hasSpot(group, input)) return { take: 'spot', why: 'a spot pool can be had' };
    if (at === null)
      return wait('no spot pool that suits it gives capacity now, and there is no deadline to be missed');
    if (at.aheadS < 0) return { take: 'steady', why: 'it is behind its line of uniform progress' };
    return wait(`no spot pool gives capacity now, and it is ${Math.round(at.aheadS)} s ahead of uniform progress`);
  },
  running: backToSpot,
});

function backToSpot(running: RunningTask, view: InstanceView, input: PlanInput): Move | null {
  const { attempt, stage } = running;
  if (view.pool.option !== 'on-demand' || stage.gang) return null;
  const job = input.snapshot.jobs.get(attempt.job);
  const worth = input.worths.ofRunning(running);
  const submittedMs = job?.submittedMs;
  const { keptS: doneS, ranS } = begunBy(running, input.snapshot.nowMs);
  const at = standingOf({ stage: `${attempt.job}/${attempt.stage}`, worth, submittedMs, doneS, ranS }, input);
  if (at === null || at.safetyS < 0 || at.aheadAfterTwoS < 0) return null;
  const reason = `it is ${Math.round(at.aheadAfterTwoS)} s ahead of where uniform progress has it in two changeovers`;
  return { attempt: attempt.id, reason, running, view, to: 'spot' };
}
