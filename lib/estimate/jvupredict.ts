import type { EstimatePolicy } from '../domain/stages.ts';
import { forecastFrom } from './cold-start.ts';
import { forecastStages } from './stage-forecasts.ts';
import { featuresOf } from './template.ts';

/**
 * Runtimes from history (JVuPredict, JamaisVu section 3), from the user's `expectedRuntime` where history is thin or
 * missing, from a wide prior where there is neither (lib/estimate/cold-start.ts).
 */
export const jvuPredict: EstimatePolicy = (snapshot, history) =>
  forecastStages(snapshot, (job, stage) =>
    forecastFrom(history.predict(featuresOf(job.spec, stage, job.submittedMs)), stage),
  );
