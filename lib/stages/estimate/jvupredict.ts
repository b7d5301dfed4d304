import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { HINTED } from './cold-start.ts';
import { runtimeLearner } from './runtime-learner.ts';
import { forecastStages } from './stage-forecasts.ts';
import { UNFINISHED } from './unfinished.ts';
import { CENSORED } from './with-unfinished.ts';

/**
 * Runtimes from history (JVuPredict, JamaisVu section 3), from the user's `expectedRuntime` if history is thin or
 * missing, from a wide prior without either (lib/stages/estimate/cold-start.ts).
 * Stages without checkpoints count unfinished runs too (unfinished.ts): thought short, they would be bet on spot and
 * lose all. Stages with checkpoints lose little by that; for them the last safe start of a mostly guessed tail would
 * keep them off spot for nothing: many jobs on the prices of 2016 and 2021 cost half as much again (docs/results.md),
 * with none late either way.
 */
export const jvuPredict: EstimatePolicy = ({ snapshot, beliefs, memory }) => {
  const history = beliefs.of(runtimeLearner);
  const unfinished = memory.of(UNFINISHED);
  const known = memory.of(FEATURES);
  const hinted = memory.of(HINTED);
  const censored = memory.of(CENSORED);
  return forecastStages(snapshot, (job, stage) => {
    const features = known.of(job.spec, stage, job.submittedMs);
    const ended = history.predict(features);
    if (stage.checkpoint !== null) return hinted.of(ended, stage);
    const running = unfinished.at(snapshot);
    const evidence = ended?.evidence;
    const counted =
      ended === null || evidence === undefined
        ? ended
        : censored.of(ended, running.sharing(evidence.feature, features), stage.timeoutS);
    const forecast = hinted.of(counted, stage);
    // Unfinished runs say the most about a job of which no run has ended.
    return evidence?.broad === false
      ? forecast
      : censored.of(forecast, running.sharing('job', features), stage.timeoutS);
  });
};
