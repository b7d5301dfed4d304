/** Remaining work of running tasks, and the time to move them. */
import { lte, raw, secondsBetween, ZERO_S } from '../kernel/units.ts';
import { certain, type Distribution } from '../domain/distribution.ts';
import { forecastFor } from '../domain/forecasts.ts';
import { NOTICE_S } from '../domain/instance.ts';
import { slowed } from '../domain/slowdown.ts';
import type { StageSpec } from '../domain/job.ts';
import type { RunningTask } from '../domain/snapshot.ts';
import { begunBy, doneOnceS, meanToDo, workToDo } from '../domain/work-to-do.ts';
import type { SceneContext, ValueContext } from './contracts.ts';

/** Distribution of an attempt's remaining running time. */
export function workLeft(running: RunningTask, input: Pick<ValueContext, 'snapshot' | 'forecasts'>): Distribution {
  const of = begunBy(running, input.snapshot.nowMs);
  const forecast = forecastFor(input.forecasts.runtime, running);
  const work = forecast === undefined ? certain(doneOnceS(of)) : workToDo(forecast.runtime, of);
  return slowed(work, running.attempt.slowdown ?? 1);
}

/** Mean of that distribution, seconds. */
export function meanLeftS(running: RunningTask, input: Pick<ValueContext, 'snapshot' | 'forecasts'>): number {
  const of = begunBy(running, input.snapshot.nowMs);
  const forecast = forecastFor(input.forecasts.runtime, running);
  const workS = forecast === undefined ? raw(doneOnceS(of)) : meanToDo(forecast.runtime, of);
  return workS * (running.attempt.slowdown ?? 1);
}

/**
 * A task that was stopped before stays where it is for as long as a relocation takes, and for as long as the work that
 * earlier stops of ours have lost. Plans are made on running times that change with every task that ends and on room
 * that is shared in fractions of machines, so that one plan may undo another. The first bound keeps at least half of a
 * task's time for its work. The second doubles with each stop, so that a task without checkpoints comes to its end:
 * all stops together lose it less than twice its running time.
 */
export function hasSettled(
  { attempt, ownStops }: Pick<RunningTask, 'attempt' | 'ownStops'>,
  { snapshot, config }: Pick<SceneContext, 'snapshot' | 'config'>,
): boolean {
  const { number, startedMs } = attempt;
  if (number === 1) return true;
  if (startedMs === null) return false;
  const staysS = Math.max(relocationS(config), raw(ownStops?.lostS ?? ZERO_S));
  return secondsBetween(startedMs, snapshot.nowMs) >= staysS;
}

/**
 * Longest time from one instance to another: save, be observed as stopped, start up, begin, restore. `stopS`: of the
 * task (move-cost.ts); absent: of one with a small memory.
 */
export const relocationS = (config: SceneContext['config'], stopS = config.migrationS): number =>
  stopS + config.startDelayMaxS + config.restoreS + 2 * config.cyclePeriodS;

/**
 * Most work that one interruption can lose. A checkpoint signal whose grace fits into the warning loses nothing; one
 * that does not fit loses, on average, half of the interval of the program's own saves; without a checkpoint all is
 * lost.
 */
export function lossOf({ checkpoint }: Pick<StageSpec, 'checkpoint'>): number {
  if (checkpoint === null) return Infinity;
  if (lte(checkpoint.graceS, NOTICE_S)) return 0;
  return checkpoint.everyS === null ? Infinity : raw(checkpoint.everyS) / 2;
}
