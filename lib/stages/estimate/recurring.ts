import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures, LearnedRuntimes } from '../../domain/forecasts.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { HintedForecasts, WEIGHED } from './cold-start.ts';
import { OwnTasks } from './own-tasks.ts';
import { runtimeLearner } from './runtime-learner.ts';
import { forecastStages } from './stage-forecasts.ts';
import { UNFINISHED } from './unfinished.ts';
import { CENSORED } from './with-unfinished.ts';

const OWN_TASKS = slot(() => new OwnTasks());

/**
 * Running times from recent runs of similar jobs and from the user's guess, corrected by its record
 * (recurring-runs.ts), from the job's own tasks that have ended (own-tasks.ts), and from a wide prior without any of
 * them (cold-start.ts).
 * Stages without checkpoints count unfinished runs too, as under `jvuPredict`.
 */
export const recurring: EstimatePolicy = ({ snapshot, beliefs, memory }) => {
  const { recurring: history } = beliefs.of(runtimeLearner);
  const known = memory.of(FEATURES);
  const weighed = memory.of(WEIGHED);
  const ownTasks = memory.of(OWN_TASKS);
  const censored = memory.of(CENSORED);
  const unfinished = memory.of(UNFINISHED);
  return forecastStages(snapshot, (job, stage) => {
    const features = known.of(job.spec, stage, job.submittedMs);
    const before = weighed.of(history.predict(features), stage);
    const progress = job.stages.find((s) => s.name === stage.name);
    const forecast = ownTasks.of(before, progress?.times, stage.timeoutS);
    if (stage.checkpoint !== null) return forecast;
    const { evidence } = forecast;
    // Unfinished runs say the most about a job of which no run has ended.
    const feature = evidence === undefined || evidence.broad ? 'job' : evidence.feature;
    return censored.of(forecast, unfinished.at(snapshot).sharing(feature, features), stage.timeoutS);
  });
};

/** Forecast for a stage that is submitted now. */
export const recurringForecast = (
  { recurring: history }: LearnedRuntimes,
  features: JobFeatures,
  stage: Pick<StageSpec, 'expectedRuntimeS' | 'timeoutS' | 'checkpoint'>,
): RuntimeForecast => new HintedForecasts({ isHintWeighed: true }).of(history.predict(features), stage);
