/**
 * History and the job's own tasks together: the distribution of earlier jobs, updated by the tasks that have ended
 * (Bayes). Ours: SLearn takes the tasks alone (section 5.1.2), 3Sigma the earlier jobs alone.
 */
import { raw } from '../../kernel/units.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { distribution, quantile, type Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { ACCURACY, binsOf, meanTime, type RunningTimes } from '../../domain/running-times.ts';
import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { LEAST_S, POINTS } from './points.ts';
import { priorDistribution } from './prior.ts';
import { forecastStages } from './stage-forecasts.ts';
import { taskAverageLearner } from './task-average-learner.ts';

/** Spread of a job's mean about that of an earlier one like it, in ln(seconds). */
const BANDWIDTH = 0.1;
/**
 * Probability that a job is like none of the earlier ones: the prior of an unknown task then holds. This, BANDWIDTH and
 * SPREADS were chosen on one half of the wide jobs of the Google trace; docs/results.md has the other half.
 */
const UNLIKE = 0.5;
/** Spreads that the tasks of a job may have, over their mean, and how common they are. */
const SPREADS = [
  { sigma: 0.02, weight: 0.7 },
  { sigma: 0.08, weight: 0.2 },
  { sigma: 0.3, weight: 0.07 },
  { sigma: 0.8, weight: 0.03 },
];

/** Part of a mixture of log-normals. */
interface Component {
  readonly logS: number;
  readonly variance: number;
  readonly weight: number;
}

/**
 * The mean running time of a job's tasks, given those of them that have ended. Each earlier job is a log-normal: what
 * the tasks say moves it, and weighs it by how well it had foretold them. O(points of the history).
 */
export function fusedRuntime(history: Distribution, ended: RunningTimes, tasks: number): Distribution {
  const seen = Math.log(Math.max(raw(meanTime(ended)), raw(LEAST_S)));
  const parts = [
    ...componentsOf(history, { share: 1 - UNLIKE, variance: BANDWIDTH ** 2 }),
    ...componentsOf(priorDistribution(), { share: UNLIKE, variance: 1 }),
  ];
  const points = spreadsOf(ended, tasks).flatMap(({ variance, logWeight }) =>
    parts.map((c) => {
      const precision = 1 / c.variance + 1 / variance;
      const both = c.variance + variance;
      return {
        logS: (c.logS / c.variance + seen / variance) / precision,
        log: logWeight + Math.log(c.weight) - (seen - c.logS) ** 2 / (2 * both) - Math.log(both) / 2,
      };
    }),
  );
  // The largest logarithm is taken out first: far from every component all would be 0.
  const most = points.reduce((m, { log }) => Math.max(m, log), -Infinity);
  return distribution(points.map(({ logS, log }) => [Math.exp(logS), Math.exp(log - most) + 1e-12] as const));
}

const componentsOf = (
  { atS, weight }: Distribution,
  { share, variance }: { readonly share: number; readonly variance: number },
): readonly Component[] =>
  Array.from(atS, (s, i) => ({
    logS: Math.log(Math.max(s, raw(LEAST_S))),
    variance,
    weight: share * (weight[i] ?? 0),
  }));

/** Variance of the mean of the ended tasks about the mean of all, for each spread that tasks of a job may have. */
function spreadsOf(ended: RunningTimes, tasks: number): readonly { variance: number; logWeight: number }[] {
  const { count } = ended;
  const mean = Math.max(raw(meanTime(ended)), raw(LEAST_S));
  let squares = 0;
  for (const [s, n] of binsOf(ended)) squares += n * (raw(s) / mean - 1) ** 2;
  const left = Math.max(0, 1 - count / Math.max(count, tasks));
  return SPREADS.map(({ sigma, weight }) => {
    const own = sigma ** 2 + ACCURACY ** 2 / 3;
    // How well the spread explains that of the ended tasks.
    const fit = -squares / (2 * own) - ((count - 1) / 2) * Math.log(own);
    return { variance: (sigma ** 2 * left) / count + 1e-6, logWeight: Math.log(weight) + fit };
  });
}

/** Answers, so that one record stays the same as long as no task has ended. */
class Fused {
  readonly #known = new WeakMap<RunningTimes, { readonly before: RuntimeForecast; readonly answer: RuntimeForecast }>();

  of(before: RuntimeForecast, ended: RunningTimes, tasks: number): RuntimeForecast {
    const known = this.#known.get(ended);
    if (known?.before === before) return known.answer;
    const runtime = fusedRuntime(before.runtime, ended, tasks);
    const words = ended.count === 1 ? '1 task of this job has' : `${ended.count} tasks of this job have`;
    const reason = `${words} ended, after a mean of ${wordsForDuration(meanTime(ended))}; together with ${before.reason}: about ${wordsForDuration(quantile(runtime, 0.5))}`;
    const answer: RuntimeForecast = { ...before, runtime, basis: 'history', reason };
    this.#known.set(ended, { before, answer });
    return answer;
  }
}

const FUSED = slot(() => new Fused());

/** The mean of a stage's tasks, from earlier jobs like it and its own tasks. */
export const fused: EstimatePolicy = ({ snapshot, beliefs, memory }) => {
  const history = beliefs.of(taskAverageLearner);
  const features = memory.of(FEATURES);
  const points = memory.of(POINTS);
  const together = memory.of(FUSED);
  return forecastStages(snapshot, (job, stage) => {
    const before = history.predict(features.of(job.spec, stage, job.submittedMs)) ?? points.told(stage);
    const ended = job.stages.find((s) => s.name === stage.name)?.times;
    return ended === undefined ? before : together.of(before, ended, stage.tasks);
  });
};
