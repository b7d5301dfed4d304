import {
  add,
  atLeastZero,
  gte,
  isPositive,
  most,
  ratio,
  raw,
  scale,
  seconds,
  sub,
  type Seconds,
  excess,
} from '../../kernel/units.ts';
import { certain, quantileRemaining, remaining, type Distribution } from '../../domain/distribution.ts';

/** Remaining work of a task, seconds. */
export interface WorkLeft {
  /** If it goes on where it is. */
  readonly stay: Distribution;
  /** If it restarts from its last checkpoint: later work is redone. */
  readonly restart: Distribution;
}

/**
 * Remaining work of a task that has done `done`, of which a checkpoint holds `kept` (<= done). Both follow from the
 * runtime given that it exceeds `done`. If `done` exceeds every runtime of the forecast, the forecast was too low, and
 * the exponential back-off gives the addition.
 */
export function workLeft(runtime: Distribution, done: Seconds, kept: Seconds, cycle: Seconds): WorkLeft {
  const longest = seconds(runtime.atS.at(-1) ?? 0);
  const outlived = gte(done, longest) && isPositive(done);
  const stay = outlived ? certain(backOff(sub(done, longest), cycle)) : remaining(runtime, done);
  const redo = excess(done, kept);
  return { stay, restart: redo === 0 ? stay : { atS: stay.atS.map((s) => s + redo), weight: stay.weight } };
}

/**
 * `quantile(workLeft(..).restart, p)`, to the last bit. Asked for each running task in each cycle: nothing is
 * allocated.
 */
export function restartQuantileS(of: {
  readonly runtime: Distribution;
  readonly done: Seconds;
  readonly kept: Seconds;
  readonly cycle: Seconds;
  readonly p: number;
}): number {
  const { runtime, done, kept, cycle, p } = of;
  const longest = seconds(runtime.atS.at(-1) ?? 0);
  const outlived = gte(done, longest) && isPositive(done);
  const stay = outlived ? backOff(sub(done, longest), cycle) : quantileRemaining(runtime, done, p);
  return raw(add(stay, atLeastZero(sub(done, kept))));
}

/**
 * JVuSched's answer to an under-estimate (JamaisVu section 4.2): each time a task outlives its estimate, the estimate
 * grows by 2^t cycles, t = 0, 1, 2 .. After t increments it has grown by 2^t - 1 cycles. Made stateless: a task that is
 * `over` beyond its first estimate has outlived the increments up to t = floor(log2(over / cycle + 1)); the next one
 * puts the estimate at 2^(t+1) - 1 cycles. Returns the time from now to there: more than 0, at most `over` + one cycle.
 */
export function backOff(over: Seconds, cycle: Seconds): Seconds {
  const cycles = ratio(over, cycle);
  const t = Math.floor(Math.log2(cycles + 1));
  return most(scale(cycle, 2 ** (t + 1) - 1 - cycles), MIN_LEFT_S);
}

/** Rounding must not turn "still running" into "done". */
const MIN_LEFT_S = seconds(0.001);
