import { rememberForecast, type RuntimeForecast } from '../domain/forecast.ts';
import type { JobId } from '../kernel/ids.ts';
import type { Job, StageSpec } from '../domain/job.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { StageKey } from '../domain/stages.ts';

/**
 * Forecasts for each stage of each job that is not over and still has tasks to finish, stages that wait for others
 * included: their running time decides how early the stages before them must be done.
 */
export function forecastStages(
  snapshot: Snapshot,
  forecast: (job: Job, stage: StageSpec) => RuntimeForecast,
): ReadonlyMap<StageKey, RuntimeForecast> {
  const forecasts = new Map<StageKey, RuntimeForecast>();
  for (const job of snapshot.jobs.values()) {
    job.spec.stages.forEach((stage, i) => {
      const progress = job.stages[i];
      if (progress !== undefined && progress.succeeded >= progress.tasks) return;
      const known = forecast(job, stage);
      forecasts.set(keyOf(job.id, stage), known);
      rememberForecast(forecasts, stage, { job: job.id, forecast: known });
    });
  }
  return forecasts;
}

/** A text for as long as its stage is there: it is hashed once, not once in each cycle. */
const keys = new WeakMap<StageSpec, { readonly job: JobId; readonly key: StageKey }>();

function keyOf(job: JobId, stage: StageSpec): StageKey {
  let known = keys.get(stage);
  // Jobs that were submitted with one specification share its records.
  if (known?.job !== job) keys.set(stage, (known = { job, key: `${job}/${stage.name}` }));
  return known.key;
}
