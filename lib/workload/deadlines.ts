import { LIMITS } from '../domain/job-file/schema.ts';
import type { JobSpec } from '../domain/job.ts';
import { templateOf } from '../domain/job-features.ts';
import { seconds } from '../kernel/units.ts';
import { wholePathS } from '../stages/value/critical-path.ts';
import { drawsOf } from './draws.ts';
import type { DeadlineRule } from './options.ts';
import type { Submission } from './reader.ts';
import type { StageTruth } from './workload.ts';

/**
 * Longest time that a task of the stage takes, tries that fail included, with an instance for each from the beginning.
 */
function slowestS({ runtimeS, failures }: StageTruth): number {
  let slowest = 0;
  for (let i = 0; i < runtimeS.length; i++) {
    slowest = Math.max(slowest, (runtimeS[i] ?? 0) * (1 + (failures?.[i] ?? 0)));
  }
  return slowest;
}

/**
 * The job with a class, and a deadline where it has one: longest path with a start of instances for each stage, and the
 * slack in percent of the longest path without them. What is drawn depends on seed and key (or template) alone.
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
  // A deadline of a job file is at most ten years away.
  const afterS = Math.min(LIMITS.durationS, startedS + (runS * slackPercent) / 100);
  return { ...job.spec, class: 'deadline', deadline: { afterS: seconds(afterS) } };
}
