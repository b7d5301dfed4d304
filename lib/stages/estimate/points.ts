/**
 * Running times as single numbers. Beyond the number, a task is taken to be half done (`remaining` in
 * lib/domain/distribution.ts): it is expected to run as long again as it has run, which is the first heuristic of
 * Stratus, section 3.2.4 ("task runtime readjustment").
 */
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { most, seconds } from '../../kernel/units.ts';
import { certain, quantile } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { priorDistribution } from './prior.ts';
import { forecastStages } from './stage-forecasts.ts';
import { taskAverageLearner } from './task-average-learner.ts';

const LEAST_S = seconds(0.001);

/** Points of forecasts and stages, so that one record stays the same from cycle to cycle. */
class Points {
  readonly #ofHistory = new WeakMap<RuntimeForecast, RuntimeForecast>();
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

const POINTS = slot(() => new Points());

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
