/** Remaining work of running tasks, and the time to move them. */
import { raw, secondsBetween } from '../kernel/units.ts';
import { certain, type Distribution } from '../domain/distribution.ts';
import { forecastFor } from '../domain/forecasts.ts';
import type { Attempt } from '../domain/job.ts';
import type { RunningTask } from '../domain/snapshot.ts';
import { begunBy, doneOnceS, meanToDo, workToDo } from '../domain/work-to-do.ts';
import type { SceneContext, ValueContext } from './contracts.ts';

/** Distribution of an attempt's remaining running time. */
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
 * True if a task that was stopped once has run again for as long as a change takes: to stop, start elsewhere and begin
 * again, with a cycle each to observe the stop and the start. Running times change with every task that ends, and room
 * is counted in fractions of machines, so one plan may undo another. With this rule a task loses at most half of its
 * time to such changes.
 */
export function hasSettled(
  { number, startedMs }: Attempt,
  { snapshot, config }: Pick<SceneContext, 'snapshot' | 'config'>,
): boolean {
  return number === 1 || (startedMs !== null && secondsBetween(startedMs, snapshot.nowMs) >= relocationS(config));
}

/** Longest time from one instance to another: save, be observed as stopped, start up, begin, restore. */
export const relocationS = (config: SceneContext['config']): number =>
  config.migrationS + config.startDelayMaxS + config.restoreS + 2 * config.cyclePeriodS;
