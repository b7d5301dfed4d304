import { LIMITS } from '../domain/job-file/schema.ts';
import type { JobSpec } from '../domain/job.ts';
import { templateOf } from '../domain/job-features.ts';
import { seconds } from '../kernel/units.ts';
import { wholePathS } from '../stages/value/critical-path.ts';
import { drawsOf } from './draws.ts';
import type { DeadlineRule } from './options.ts';
import type { Submission } from './reader.ts';
import type { StageTruth } from './workload.ts';

/** Longest time of a task of the stage, failed tries included, if all tasks run at once. */
function slowestS({ runtimeS, failures }: StageTruth): number {
  let slowest = 0;
  for (let i = 0; i < runtimeS.length; i++) {
    slowest = Math.max(slowest, (runtimeS[i] ?? 0) * (1 + (failures?.[i] ?? 0)));
  }
  return slowest;
}

/**
 * Job with a class, and perhaps a deadline. The deadline allows the longest path with a start of instances per stage,
 * plus slack in percent of the path without starts. Draws depend on seed and key (or template) only.
 */
export function withDeadline(job: Submission, rule: DeadlineRule, seed: number): JobSpec {
  const draws = drawsOf(seed, 'deadline', rule.by === 'recurring' ? templateOf(job.spec) : job.key);
  const chosen = draws() < rule.share;
  const slackPercent = rule.slackPercents[Math.floor(draws() * rule.slackPercents.length)] ?? 0;
  if (rule.by === 'production' ? job.production !== true : !chosen) return job.spec;
  const { stages } = job.spec;
  const times = new Map([...job.truth].map(([name, truth]) => [name, slowestS(truth)]));
  const runS = wholePathS(stages, (name) => times.get(name) ?? 0);
  const startedS = wholePathS(stages, (name) => rule.startDelayS + (times.get(name) ?? 0));
  // The schema of job files allows ten years.
  const afterS = Math.min(LIMITS.durationS, startedS + (runS * slackPercent) / 100);
  return { ...job.spec, class: 'deadline', deadline: { afterS: seconds(afterS) } };
}
