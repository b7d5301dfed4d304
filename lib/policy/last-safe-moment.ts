/** The last moment from which work that is taken away still meets its deadline on capacity that is not. */
import { gte, plus, seconds, type EpochMs } from '../kernel/units.ts';
import type { Worth } from '../domain/plan.ts';

/** Cycles before the last safe moment from which a deadline group uses uninterruptible capacity only. */
export const GUARD_CYCLES = 2;

/**
 * Whether work that begins at `at` must not be interrupted any more. The last safe moment is when on-demand would
 * still finish in time; until then spot may be tried, because its loss leaves time for on-demand. After it a loss
 * means lateness. So with checkpoints and an honest estimate a job is late only if it was impossible at submission.
 */
export function isGuarded(worth: Worth, at: EpochMs, cyclePeriodS: number): boolean {
  if (worth.latestSafeStartMs === null) return false;
  return gte(plus(at, seconds(GUARD_CYCLES * cyclePeriodS)), worth.latestSafeStartMs);
}
