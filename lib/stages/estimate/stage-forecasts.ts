import type { JobId } from '../../kernel/ids.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { Job, StageSpec } from '../../domain/job.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { StageForecasts, StageKey } from '../../domain/forecasts.ts';

type Forecast = (job: Job, stage: StageSpec) => RuntimeForecast;

/**
 * Forecasts for each unfinished stage of each open job, on first use. Stages that wait for others are included: their
 * running time decides how early the stages before them must be done.
 */
export const forecastStages = ({ jobs }: Pick<Snapshot, 'jobs'>, forecast: Forecast): StageForecasts =>
  new ForecastsOnDemand(jobs, forecast);

class ForecastsOnDemand implements StageForecasts {
  readonly #jobs: ReadonlyMap<string, Job>;
  readonly #forecast: Forecast;
  readonly #made = new Map<StageKey, RuntimeForecast>();
  readonly #byStage = new Map<object, { readonly job: JobId; readonly forecast: RuntimeForecast | undefined }>();

  constructor(jobs: ReadonlyMap<string, Job>, forecast: Forecast) {
    this.#jobs = jobs;
    this.#forecast = forecast;
  }

  get(key: StageKey): RuntimeForecast | undefined {
    const made = this.#made.get(key);
    if (made !== undefined) return made;
    const slash = key.indexOf('/');
    const name = key.slice(slash + 1);
    const job = this.#jobs.get(key.slice(0, slash));
    const index = job?.spec.stages.findIndex((s) => s.name === name) ?? -1;
    const stage = job?.spec.stages[index];
    if (job === undefined || stage === undefined || !isOpen(job, index)) return undefined;
    const forecast = this.#forecast(job, stage);
    this.#made.set(key, forecast);
    return forecast;
  }

  ofStage(job: JobId, stage: Pick<StageSpec, 'name'>): RuntimeForecast | undefined {
    const known = this.#byStage.get(stage);
    // Jobs that were submitted with one specification share its records.
    if (known?.job === job) return known.forecast;
    const forecast = this.get(`${job}/${stage.name}`);
    this.#byStage.set(stage, { job, forecast });
    return forecast;
  }

  *[Symbol.iterator](): Iterator<[StageKey, RuntimeForecast]> {
    for (const job of this.#jobs.values()) {
      for (const { name } of job.spec.stages) {
        const key = `${job.id}/${name}`;
        const forecast = this.get(key);
        if (forecast !== undefined) yield [key, forecast];
      }
    }
  }
}

/** True if a stage still has tasks to finish. */
function isOpen({ stages }: Job, index: number): boolean {
  const progress = stages[index];
  return progress === undefined || progress.succeeded < progress.tasks;
}
