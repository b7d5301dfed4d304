/** What a copy of a running task is worth, in dollars. */
import { epochMs, raw, type EpochMs } from '../../kernel/units.ts';
import { quantileS, type Distribution } from '../../domain/distribution.ts';
import type { UtilityCurve } from '../../domain/plan.ts';
import { worthAt } from '../../domain/utility.ts';
import { LEAST_WITH_MEAN } from './copy-rules.ts';

/** Points that stand for a distribution. */
const POINTS = 12;
const QUANTILES = Array.from({ length: POINTS }, (_, i) => (i + 0.5) / POINTS);

/** A running task, and a place for its copy. */
export interface CopyTerms {
  readonly nowMs: EpochMs;
  /** Worth of the task by the time of its end. */
  readonly curve: UtilityCurve;
  /** Seconds that it has run, above the median of its stage. */
  readonly ranS: number;
  /** Index of the tail of running times. */
  readonly beta: number;
  /** Running time of a task from its beginning. */
  readonly anew: Distribution;
  /** Probability that the task is slow by bad luck, and a copy of it would not be. */
  readonly chance: number;
  /** US dollars per second of the running attempt, and of the copy from its start. */
  readonly usdPerS: number;
  readonly copyUsdPerS: number;
  /** Time until the copy starts, charged like the time that it runs. */
  readonly startS: number;
  /** Least time that is charged for the copy's place. */
  readonly leastS: number;
}

export interface CopyValue {
  /** Expected gain of a copy, US dollars: worth of an earlier end, less what both attempts cost more. */
  readonly gainUsd: number;
  /** Expected cost of the copy alone. */
  readonly costUsd: number;
  /** Expected remaining time without and with the copy, seconds. */
  readonly leftS: number;
  readonly withS: number;
}

/**
 * Expectation over what is left of the task (a Pareto tail from what it has run, as Hopper has it) and over the running
 * time of a copy. Whichever ends first ends both. Where the task simply has more to do (1 - `chance`), its copy is paid
 * for until the end, and gains nothing. O(POINTS^2).
 */
export function copyValue(of: CopyTerms): CopyValue {
  const { nowMs, curve, ranS, anew, chance, usdPerS, copyUsdPerS, startS, leastS } = of;
  const index = Math.max(of.beta, LEAST_WITH_MEAN);
  const copies = QUANTILES.map((p) => startS + quantileS(anew, p));
  const worthIn = (s: number): number => worthAt(curve, epochMs(raw(nowMs) + 1000 * s));
  let [gain, cost, left, withCopy] = [0, 0, 0, 0];
  for (const p of QUANTILES) {
    const leftS = ranS * ((1 - p) ** (-1 / index) - 1);
    const alone = worthIn(leftS) - usdPerS * leftS;
    const inVain = copyUsdPerS * Math.max(leastS, leftS);
    left += leftS;
    for (const copyS of copies) {
      const endS = Math.min(leftS, copyS);
      const paid = copyUsdPerS * Math.max(leastS, endS);
      gain += chance * (worthIn(endS) - usdPerS * endS - paid - alone) - (1 - chance) * inVain;
      cost += chance * paid + (1 - chance) * inVain;
      withCopy += chance * endS + (1 - chance) * leftS;
    }
  }
  const pairs = POINTS * POINTS;
  return { gainUsd: gain / pairs, costUsd: cost / pairs, leftS: left / POINTS, withS: withCopy / pairs };
}
