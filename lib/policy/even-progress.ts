/**
 * Position of a task relative to its line of even progress (Wu et al., "Can't Be Late: Optimizing Spot Instance Savings
 * under Deadlines", NSDI 2024, section 4). The plan and the moves of Uniform Progress follow it.
 */
import { raw, secondsBetween, type EpochMs, type Seconds } from '../kernel/units.ts';
import { quantileS } from '../domain/distribution.ts';
import { quantileToDoS } from '../domain/work-to-do.ts';
import type { Worth } from '../domain/plan.ts';
import type { ValueContext } from './contracts.ts';

/** Position of a task relative to its line, seconds. */
export interface Standing {
  /** c(t) - e(t). */
  readonly aheadS: number;
  /** c(t) - e(t + 2d). */
  readonly aheadAfterTwoS: number;
  /** R(t) - C(t) - 2d. */
  readonly safetyS: number;
}

export interface Line {
  readonly nowMs: EpochMs;
  readonly submittedMs: EpochMs;
  readonly deadlineMs: EpochMs;
  /** C(0). */
  readonly workS: number;
  /** c(t). */
  readonly doneS: number;
  /** C(t). */
  readonly leftS: number;
  /** d. */
  readonly changeoverS: number;
}

export function standing(l: Line): Standing {
  const windowS = Math.max(1, secondsBetween(l.submittedMs, l.deadlineMs));
  const atS = secondsBetween(l.submittedMs, l.nowMs);
  const expected = (s: number): number => Math.min(l.workS, (s * l.workS) / windowS);
  return {
    aheadS: l.doneS - expected(atS),
    aheadAfterTwoS: l.doneS - expected(atS + 2 * l.changeoverS),
    safetyS: windowS - atS - l.leftS - 2 * l.changeoverS,
  };
}

interface Of {
  readonly stage: string;
  readonly worth: Worth | undefined;
  readonly submittedMs: EpochMs | undefined;
  /** Saved progress, and the lower bound of its running time. */
  readonly doneS: Seconds;
  readonly ranS: Seconds;
}

export function standingOf({ stage, worth, submittedMs, doneS, ranS }: Of, input: ValueContext): Standing | null {
  const forecast = input.forecasts.runtime.get(stage);
  if (forecast === undefined || submittedMs === undefined || !worth?.taskDeadlineMs) return null;
  const { safetyQuantile, startDelayMaxS, restoreS } = input.config;
  return standing({
    nowMs: input.snapshot.nowMs,
    submittedMs,
    deadlineMs: worth.taskDeadlineMs,
    workS: quantileS(forecast.runtime, safetyQuantile),
    doneS: raw(doneS),
    leftS: quantileToDoS(forecast.runtime, { keptS: doneS, ranS }, safetyQuantile),
    changeoverS: startDelayMaxS + restoreS,
  });
}
