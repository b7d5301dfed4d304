/**
 * What tasks have yet to run, those that wait and those that run. One that began before is known to run longer than it
 * ran then, whether that was kept or not: as if it had never run, a task that outlived the short part of its forecast
 * would be thought short again each time it begins.
 */
import { add, isZero, most, raw, seconds, sub, type EpochMs, type Seconds } from '../kernel/units.ts';
import {
  exceedsRemaining,
  expectRemaining,
  meanRemaining,
  quantileRemaining,
  remaining,
  type Distribution,
} from './distribution.ts';
import type { Task } from './job.ts';
import { workDoneS, type PendingGroup, type RunningTask } from './snapshot.ts';

/** How far a task is, from where it would go on, and how long it ran before, kept or not. */
export type Begun = Pick<PendingGroup | Task, 'keptS' | 'ranS'>;

/** A task that runs, where it stays: it goes on from all that it has done by then. */
export function begunBy(running: Pick<RunningTask, 'attempt' | 'readS' | 'ranS'>, nowMs: EpochMs): Required<Begun> {
  const doneS = workDoneS(running, nowMs);
  return { keptS: doneS, ranS: running.ranS === undefined ? doneS : most(doneS, running.ranS) };
}

/** Work done at least once: the whole running time is longer. */
export const doneOnceS = ({ keptS, ranS }: Begun): Seconds => (ranS === undefined ? keptS : most(keptS, ranS));

/** Of that what is done again. */
const againS = (of: Begun): number => raw(sub(doneOnceS(of), of.keptS));

/** Running time to come, from what is kept, by the running time in all; of what never ran the very same. */
export function workToDo(runtime: Distribution, of: Begun): Distribution {
  if (isZero(doneOnceS(of))) return runtime;
  const left = remaining(runtime, doneOnceS(of));
  const again = againS(of);
  return again === 0 ? left : { atS: left.atS.map((s) => s + again), weight: left.weight };
}

/** Seconds; `mean(workToDo(..))`. */
export const meanToDo = (runtime: Distribution, of: Begun): number =>
  meanRemaining(runtime, doneOnceS(of)) + againS(of);

/** `quantile(workToDo(..), p)`. */
export const quantileToDo = (runtime: Distribution, of: Begun, p: number): Seconds =>
  add(quantileRemaining(runtime, doneOnceS(of), p), seconds(againS(of)));

/** P(more than `s` of `workToDo(..)`). */
export const exceedsToDo = (runtime: Distribution, of: Begun, s: Seconds): number =>
  exceedsRemaining(runtime, doneOnceS(of), sub(s, seconds(againS(of))));

/** Expectation of `f(seconds)` over `workToDo(..)`. */
export function expectToDo(runtime: Distribution, of: Begun, f: (s: number) => number): number {
  const again = againS(of);
  return expectRemaining(runtime, doneOnceS(of), (s) => f(s + again));
}
