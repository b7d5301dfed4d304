/** How far off estimates of a job's running time are: from earlier jobs, from its own first tasks, and from both. */
import { randomStream } from '../../lib/kernel/random.ts';
import { raw, seconds } from '../../lib/kernel/units.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import { quantile } from '../../lib/domain/distribution.ts';
import { withTime, type RunningTimes } from '../../lib/domain/running-times.ts';
import { FeaturesByStage } from '../../lib/domain/job-features.ts';
import { fusedRuntime } from '../../lib/stages/estimate/fused.ts';
import { utilityEqual } from '../../lib/stages/estimate/points.ts';
import { JvuPredict } from '../../lib/stages/estimate/predictor.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';

/** |estimate - truth| / truth, one entry per job. */
export type Errors = Readonly<Record<'3sigma' | 'point-est' | 'slearn' | 'fused', readonly number[]>>;

/** Part of the tasks that are sampled, at least one (SLearn, section 4.3). */
const RATIO = 0.03;
/** Jobs of fewer tasks are not sampled (section 4.3). */
const WIDE = 3;

/**
 * Jobs one by one, in the order of arrival: of each the estimates, and then its mean is learned once it has ended.
 * `counts`: jobs whose errors are counted; the others are learned from alone.
 */
export function errorsOf(jobs: readonly WorkloadJob[], counts: (job: WorkloadJob) => boolean, seed: number): Errors {
  const errors = {
    '3sigma': [] as number[],
    'point-est': [] as number[],
    slearn: [] as number[],
    fused: [] as number[],
  };
  const history = new JvuPredict();
  const features = new FeaturesByStage();
  const ends: { atS: number; learn: () => void }[] = [];
  for (const job of jobs) {
    const [stage] = job.spec.stages;
    const times = stage === undefined ? undefined : job.truth.get(stage.name)?.runtimeS;
    if (stage === undefined || times === undefined) continue;
    ends.sort((a, b) => a.atS - b.atS);
    while ((ends[0]?.atS ?? Infinity) <= job.submittedS) ends.shift()?.learn();
    const of = features.of(job.spec, stage, epochMs(Date.UTC(2026, 0, 5) + 1000 * job.submittedS));
    const mean = times.reduce((a, b) => a + b, 0) / times.length;
    const known = history.predict(of);
    if (known !== null && times.length >= WIDE && counts(job)) {
      const off = (estimateS: number): number => Math.abs(estimateS - mean) / mean;
      const ended = sampleOf(times, randomStream(seed, `sample/${job.key}`));
      errors['3sigma'].push(off(raw(utilityEqual(known.runtime))));
      errors['point-est'].push(off(raw(quantile(known.runtime, 0.5))));
      errors.slearn.push(off(raw(ended.sumS) / ended.count));
      errors.fused.push(off(raw(quantile(fusedRuntime(known.runtime, ended, times.length), 0.5))));
    }
    const longest = times.reduce((a, b) => Math.max(a, b), 0);
    ends.push({ atS: job.submittedS + longest, learn: () => history.learn(of, seconds(mean)) });
  }
  return errors;
}

/** Times of tasks drawn without putting back. */
function sampleOf(times: Float64Array, draw: () => number): RunningTimes {
  const rest = [...times];
  let ended = withTime(undefined, seconds(take(rest, draw)));
  const wanted = Math.max(1, Math.round(RATIO * times.length));
  while (ended.count < wanted) ended = withTime(ended, seconds(take(rest, draw)));
  return ended;
}

const take = (rest: number[], draw: () => number): number => rest.splice(Math.floor(draw() * rest.length), 1)[0] ?? 0;
