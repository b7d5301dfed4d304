/**
 * Remaining work of waiting and running tasks. A task with an earlier attempt runs longer than that attempt did, saved
 * or not. Without this bound, a task that outlived the short part of its forecast would be thought short again at each
 * start.
 */
import { add, excess, isZero, most, raw, seconds, sub, type EpochMs, type Seconds } from '../kernel/units.ts';
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

/** Progress of a task at its next start, and the lower bound of its running time. */
export type Begun = Pick<PendingGroup | Task, 'keptS' | 'ranS'>;

/** Progress of a running task that stays: it goes on from all that it has done by then. */
export function begunBy(running: Pick<RunningTask, 'attempt' | 'readS' | 'ranS'>, nowMs: EpochMs): Required<Begun> {
  const doneS = workDoneS(running, nowMs);
  return { keptS: doneS, ranS: running.ranS === undefined ? doneS : most(doneS, running.ranS) };
}

/** Work done at least once: the whole running time is longer. */
export const doneOnceS = ({ keptS, ranS }: Begun): Seconds => (ranS === undefined ? keptS : most(keptS, ranS));

/** Work that the next attempt repeats. */
const againS = (of: Begun): number => excess(doneOnceS(of), of.keptS);

/** Remaining running time from the saved progress; for a task that never ran, the same distribution. */
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
/** The same as a plain number of seconds. */
export const quantileToDoS = (runtime: Distribution, of: Begun, p: number): number => raw(quantileToDo(runtime, of, p));

/** P(more than `s` of `workToDo(..)`). */
export const exceedsToDo = (runtime: Distribution, of: Begun, s: Seconds): number =>
  exceedsRemaining(runtime, doneOnceS(of), sub(s, seconds(againS(of))));

/** Expectation of `f(seconds)` over `workToDo(..)`. */
export function expectToDo(runtime: Distribution, of: Begun, f: (s: number) => number): number {
  const again = againS(of);
  return expectRemaining(runtime, doneOnceS(of), (s) => f(s + again));
}
