import type { RuntimeForecast } from '../domain/forecast.ts';
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
      forecasts.set(`${job.id}/${stage.name}`, forecast(job, stage));
    });
  }
  return forecasts;
}
