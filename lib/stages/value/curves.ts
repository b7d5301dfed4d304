import { most, plus, seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { UtilityCurve } from '../../domain/plan.ts';

/** Value functions of JVuSched (JamaisVu figure 5a): worth of finishing at a time, US dollars. */

/** Points of a curve lie apart at least this far. */
const MILLISECOND = seconds(0.001);

const after = (t: EpochMs, s: Seconds): EpochMs => plus(t, most(s, MILLISECOND));

/**
 * Deadline job: constant until the deadline, then linearly down to `endUsd` within `fadeS` (JamaisVu section 4.3: so
 * that a job whose runtime was over-estimated is not given up).
 */
export const deadlineCurve = (c: {
  readonly onTimeUsd: number;
  readonly deadlineMs: EpochMs;
  readonly fadeS: Seconds;
  readonly endUsd: number;
}): UtilityCurve => ({
  points: [
    { atMs: c.deadlineMs, usd: c.onTimeUsd },
    { atMs: after(c.deadlineMs, c.fadeS), usd: Math.min(c.endUsd, c.onTimeUsd) },
  ],
});

/** Best-effort job: from submission slowly down to `endUsd`, then constant. */
export const bestEffortCurve = (c: {
  readonly atOnceUsd: number;
  readonly submittedMs: EpochMs;
  readonly fadeS: Seconds;
  readonly endUsd: number;
}): UtilityCurve => ({
  points: [
    { atMs: c.submittedMs, usd: c.atOnceUsd },
    { atMs: after(c.submittedMs, c.fadeS), usd: Math.min(c.endUsd, c.atOnceUsd) },
  ],
});

/** The same worth at any time. */
export const constantCurve = (usd: number, atMs: EpochMs): UtilityCurve => ({ points: [{ atMs, usd }] });
