/**
 * Running times as single numbers. Beyond the number, a task is taken to be half done (`remaining` in
 * lib/domain/distribution.ts): it is expected to run as long again as it has run, which is the first heuristic of
 * Stratus, section 3.2.4 ("task runtime readjustment").
 */
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { most, raw, seconds, type Seconds } from '../../kernel/units.ts';
import { certain, meanS, quantile, type Distribution } from '../../domain/distribution.ts';
import { meanTime, type RunningTimes } from '../../domain/running-times.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Job, StageSpec } from '../../domain/job.ts';
import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { priorDistribution } from './prior.ts';
import { forecastStages } from './stage-forecasts.ts';
import { taskAverageLearner } from './task-average-learner.ts';

export const LEAST_S = seconds(0.001);

/** Points of forecasts and stages, so that one record stays the same from cycle to cycle. */
class Points {
  readonly #ofHistory = new WeakMap<RuntimeForecast, RuntimeForecast>();
  /** By the function that makes the point: a preset may change while the engine runs. */
  readonly #ofDistribution = new Map<(runtime: Distribution) => Seconds, WeakMap<RuntimeForecast, RuntimeForecast>>();
  readonly #ofStage = new WeakMap<object, RuntimeForecast>();
  readonly #unknown: RuntimeForecast = {
    runtime: certain(quantile(priorDistribution(), 0.5)),
    basis: 'prior',
    reason: 'no earlier job is known, and the job file has no expectedRuntime: a middling running time is assumed',
  };

  ofHistory(history: RuntimeForecast): RuntimeForecast {
    let point = this.#ofHistory.get(history);
    if (point === undefined) {
      const runtime = certain(most(LEAST_S, history.evidence?.pointS ?? quantile(history.runtime, 0.5)));
      this.#ofHistory.set(history, (point = { ...history, runtime }));
    }
    return point;
  }

  ofDistribution(history: RuntimeForecast, point: (runtime: Distribution) => Seconds): RuntimeForecast {
    let ofPoint = this.#ofDistribution.get(point);
    if (ofPoint === undefined) this.#ofDistribution.set(point, (ofPoint = new WeakMap()));
    let known = ofPoint.get(history);
    if (known === undefined) {
      known = { ...history, runtime: certain(most(LEAST_S, point(history.runtime))) };
      ofPoint.set(history, known);
    }
    return known;
  }

  ofTasks(times: RunningTimes): RuntimeForecast {
    let known = this.#ofStage.get(times);
    if (known === undefined) {
      const tasks = times.count === 1 ? '1 task of this job has' : `${times.count} tasks of this job have`;
      const reason = `${tasks} ended, after a mean of ${wordsForDuration(meanTime(times))}`;
      this.#ofStage.set(
        times,
        (known = { runtime: certain(most(LEAST_S, meanTime(times))), basis: 'history', reason }),
      );
    }
    return known;
  }

  told(stage: Pick<StageSpec, 'expectedRuntimeS'>): RuntimeForecast {
    const toldS = stage.expectedRuntimeS;
    if (toldS === null) return this.#unknown;
    let point = this.#ofStage.get(stage);
    if (point === undefined) {
      const reason = `expectedRuntime of ${wordsForDuration(toldS)} from the job file, taken as it is`;
      this.#ofStage.set(stage, (point = { runtime: certain(most(LEAST_S, toldS)), basis: 'hint', reason }));
    }
    return point;
  }
}

export const POINTS = slot(() => new Points());

/** The user's `expectedRuntime` as it is; a middling running time without one. */
export const told: EstimatePolicy = ({ snapshot, memory }) => {
  const points = memory.of(POINTS);
  return forecastStages(snapshot, (_, stage) => points.told(stage));
};

/**
 * JVuPredict modified as Stratus has it (section 3.2.4): its estimators see the average task running time of each
 * earlier job, and the best of them gives one number. A job that shares nothing with an earlier one is as `told`.
 */
export const jvuPredictTasks: EstimatePolicy = ({ snapshot, beliefs, memory }) => {
  const history = beliefs.of(taskAverageLearner);
  const features = memory.of(FEATURES);
  const points = memory.of(POINTS);
  return forecastStages(snapshot, (job, stage) => {
    const known = history.predict(features.of(job.spec, stage, job.submittedMs));
    return known === null ? points.told(stage) : points.ofHistory(known);
  });
};

/**
 * One number from the distribution of the history that JVuPredict chooses, its estimators made on the average task
 * running times of earlier jobs.
 */
const fromHistory =
  (point: (runtime: Distribution) => Seconds): EstimatePolicy =>
  ({ snapshot, beliefs, memory }) => {
    const history = beliefs.of(taskAverageLearner);
    const features = memory.of(FEATURES);
    const points = memory.of(POINTS);
    return forecastStages(snapshot, (job, stage) => {
      const known = history.predict(features.of(job.spec, stage, job.submittedMs));
      return known === null ? points.told(stage) : points.ofDistribution(known, point);
    });
  };

/**
 * 3Sigma: the running time whose utility is the mean utility over the distribution, of 1 / runtime^2 for completion
 * times (SLearn, sections 4.3 and 5.1.3).
 */
export const threeSigma = fromHistory(utilityEqual);

/** The median of the same distribution: Point-Est (SLearn, section 5.1.3). */
export const pointEstimate = fromHistory((runtime) => quantile(runtime, 0.5));

export function utilityEqual({ atS, weight }: Distribution): Seconds {
  let utility = 0;
  for (let i = 0; i < atS.length; i++) utility += (weight[i] ?? 0) / Math.max(atS[i] ?? 0, raw(LEAST_S)) ** 2;
  return seconds(utility ** -0.5);
}

/**
 * SLearn: the mean of the stage's own tasks that have ended. Stages of which none has are as 3Sigma says, times the
 * ratio of what the first stage's tasks took to what 3Sigma had said of them (SLearn-DAG, section 6).
 */
export const sampled: EstimatePolicy = (context) => {
  const { snapshot } = context;
  const history = threeSigma(context);
  const points = context.memory.of(POINTS);
  return forecastStages(snapshot, (job, stage) => {
    const own = timesOf(job, stage.name);
    if (own !== undefined) return points.ofTasks(own);
    const before = history.get(`${job.id}/${stage.name}`);
    const first = job.spec.stages.find((s) => s.dependsOn.length === 0 && s.name !== stage.name);
    const sample = first === undefined ? undefined : timesOf(job, first.name);
    if (before === undefined || before.basis === 'prior')
      return sample === undefined ? points.told(stage) : points.ofTasks(sample);
    if (first === undefined || sample === undefined) return before;
    const said = context.beliefs
      .of(taskAverageLearner)
      .predict(context.memory.of(FEATURES).of(job.spec, first, job.submittedMs));
    return said === null ? before : scaled(before, meanTime(sample), utilityEqual(said.runtime));
  });
};

const timesOf = ({ stages }: Job, name: string): RunningTimes | undefined => stages.find((s) => s.name === name)?.times;

function scaled(before: RuntimeForecast, sampleS: Seconds, saidS: Seconds): RuntimeForecast {
  const factor = raw(sampleS) / Math.max(raw(saidS), raw(LEAST_S));
  const runtime = certain(seconds(Math.max(raw(LEAST_S), meanS(before.runtime) * factor)));
  return {
    ...before,
    runtime,
    reason: `${before.reason}; the first stage took ${factor.toFixed(2)} times as long as said`,
  };
}
