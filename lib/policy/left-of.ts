import { most, raw, scale, ZERO_S, type Seconds } from '../kernel/units.ts';
import type { RunningTask, Snapshot } from '../domain/snapshot.ts';
import { forecastFor, type Forecasts } from '../domain/forecasts.ts';
import { begunBy, quantileToDo } from '../domain/work-to-do.ts';

interface Known {
  readonly snapshot: Pick<Snapshot, 'nowMs'>;
  readonly forecasts: Pick<Forecasts, 'runtime'>;
}

/** Remaining running time of a task as one number for packing: the median. */
export function leftOf(running: RunningTask, { snapshot, forecasts }: Known): Seconds {
  const of = begunBy(running, snapshot.nowMs);
  const forecast = forecastFor(forecasts.runtime, running);
  const workS = forecast === undefined ? of.ranS : quantileToDo(forecast.runtime, of, 0.5);
  return scale(workS, running.attempt.slowdown ?? 1);
}

export type LeftOf = (running: RunningTask) => Seconds;
/** The same as a plain number of seconds. */
export const leftS = (running: RunningTask, leftOf: LeftOf): number => raw(leftOf(running));

/** `leftOf`, computed once for all alike tasks. */
export function leftOfEach(of: Known): LeftOf {
  const known = new Map<RunningTask, Seconds>();
  return (running) => {
    const one = running.like ?? running;
    let left = known.get(one);
    if (left === undefined) known.set(one, (left = leftOf(one, of)));
    return left;
  };
}

/** Longest remaining running time of these tasks; 0 of none. */
export const longestLeft = (tasks: readonly RunningTask[], leftOf: LeftOf): Seconds =>
  tasks.reduce((longest, r) => most(longest, leftOf(r)), ZERO_S);
