/**
 * Baseline: Uniform Progress (Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024,
 * section 4). With C(t) the work left, R(t) the time left until the deadline, c(t) the work done and d the time of a
 * changeover, the expected progress is a line: e(t) = t C(0) / R(0).
 *   safety net:     idle and R(t) < C(t) + 2d: on-demand, to the end
 *   exploitation:   spot whenever available, also behind the line; stay on it until it is taken
 *   uniform:        idle without spot and c(t) < e(t): on-demand, to catch up; else wait
 *   hysteresis:     on on-demand, until c(t) >= e(t + 2d); then back to spot where there is some
 * Ours, because the paper has one job of one task, told of spot capacity, on a machine of a fixed size:
 * - the line is each task's own, from the job's submission to the deadline of the task's stage, C(0) the running time
 *   at the safety quantile of its forecast;
 * - d is the longest start-up plus the restore of a checkpoint;
 * - availability of spot is found by trying; a pool that refused is in back-off. On-demand is left once a spot instance
 *   is there;
 * - running work also leaves spot at its last safe start (deadline-guard.ts), for starting takes cycles here;
 * - work without a deadline has no line: it runs on spot or waits.
 */
import { doneOnceS } from '../../domain/work-to-do.ts';
import { standingOf } from '../../policy/even-progress.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { hasSpot, strategyPlan, type Choice } from './strategy.ts';

const wait = (why: string): Choice => ({ take: 'wait', why });

export const uniformProgressPlan = strategyPlan((group, input) => {
  const worth = input.worths.groups.get(group.id);
  const { submittedMs, keptS: doneS } = group;
  const of = { stage: `${group.job}/${group.stage.name}`, worth, submittedMs, doneS, ranS: doneOnceS(group) };
  const at = standingOf(of, input);
  const guarded = worth !== undefined && isGuarded(worth, input.snapshot.nowMs, input.config.cyclePeriodS);
  if (guarded || (at !== null && at.safetyS < 0)) return { take: 'on-demand', why: 'its safety net is reached' };
  if (hasSpot(group, input)) return { take: 'spot', why: 'a spot pool can be had' };
  if (at === null) return wait('no spot pool that suits it gives capacity now, and there is no deadline to be missed');
  if (at.aheadS < 0) return { take: 'on-demand', why: 'it is behind its line of uniform progress' };
  return wait(`no spot pool gives capacity now, and it is ${Math.round(at.aheadS)} s ahead of uniform progress`);
});
