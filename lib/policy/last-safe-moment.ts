/**
 * Last safe start: the last time from which interrupted work still meets its deadline on non-interruptible capacity.
 */
import { gte, plus, seconds, type EpochMs } from '../kernel/units.ts';
import type { Worth } from '../domain/plan.ts';

/** Cycles before the last safe start from which a deadline group uses non-interruptible capacity only. */
export const GUARD_CYCLES = 2;

/**
 * True if work that starts at `at` must not be interrupted any more. Until the last safe start spot may be tried,
 * because on-demand would still finish in time after its loss. After it a loss means lateness. So with checkpoints and
 * an honest estimate a job is late only if it was impossible at submission.
 */
export function isGuarded(worth: Worth, at: EpochMs, cyclePeriodS: number): boolean {
  if (worth.latestSafeStartMs === null) return false;
  return gte(plus(at, seconds(GUARD_CYCLES * cyclePeriodS)), worth.latestSafeStartMs);
}
