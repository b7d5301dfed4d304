/** What running work still has to run, and what it takes to move it. */
import { raw, secondsBetween } from '../kernel/units.ts';
import { certain, type Distribution } from '../domain/distribution.ts';
import { forecastFor } from '../domain/forecasts.ts';
import type { Attempt } from '../domain/job.ts';
import type { RunningTask } from '../domain/snapshot.ts';
import { begunBy, doneOnceS, meanToDo, workToDo } from '../domain/work-to-do.ts';
import type { SceneContext, ValueContext } from './contracts.ts';

/** Distribution of what an attempt still has to run. */
export function workLeft(running: RunningTask, input: Pick<ValueContext, 'snapshot' | 'forecasts'>): Distribution {
  const of = begunBy(running, input.snapshot.nowMs);
  const forecast = forecastFor(input.forecasts.runtime, running);
  return forecast === undefined ? certain(doneOnceS(of)) : workToDo(forecast.runtime, of);
}

/** Mean of that distribution, seconds. */
export function meanLeftS(running: RunningTask, input: Pick<ValueContext, 'snapshot' | 'forecasts'>): number {
  const of = begunBy(running, input.snapshot.nowMs);
  const forecast = forecastFor(input.forecasts.runtime, running);
  return forecast === undefined ? raw(doneOnceS(of)) : meanToDo(forecast.runtime, of);
}

/**
 * What has been stopped once and goes on stays where it is for as long as it takes to stop, to start elsewhere and to
 * begin again, a cycle each for seeing that it has stopped and begun. Plans are made on running times that change with
 * every task that ends and on room that is shared in fractions of machines, so that one may undo another: each task
 * then loses at most half of its time to that, not all of it.
 */
export function hasSettled(
  { number, startedMs }: Attempt,
  { snapshot, config }: Pick<SceneContext, 'snapshot' | 'config'>,
): boolean {
  return number === 1 || (startedMs !== null && secondsBetween(startedMs, snapshot.nowMs) >= relocationS(config));
}

/**
 * Time from one place to another, at most: to save, to be seen to have stopped, to start up, to begin, and to restore.
 */
export const relocationS = (config: SceneContext['config']): number =>
  config.migrationS + config.startDelayMaxS + config.restoreS + 2 * config.cyclePeriodS;
