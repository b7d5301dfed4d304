import { seconds } from '../../kernel/units.ts';
import type { ValuePolicy } from '../../policy/contracts.ts';
import { valuePolicy } from './assess.ts';
import { bestEffortCurve, deadlineCurve } from './curves.ts';
import { BEST_EFFORT_FADE_S, FLOOR_FACTOR, jobWorth } from './jvusched.ts';

/**
 * Baseline: TetriSched's utilities, which JVuSched refines. A deadline job is worth nothing once late (JamaisVu section
 * 4.3: "base" in figure 14); best-effort jobs as in JVuSched.
 */
export const sharpDeadline: ValuePolicy = valuePolicy((facts) => {
  const { job, part, onDemandUsd, taskDeadlineMs } = facts;
  const { usd, words } = jobWorth(facts);
  if (taskDeadlineMs !== null) {
    const curve = deadlineCurve({ onTimeUsd: part * usd, deadlineMs: taskDeadlineMs, fadeS: seconds(0), endUsd: 0 });
    return { curve, reason: `deadline: ${words} until the deadline and nothing later` };
  }
  const curve = bestEffortCurve({
    atOnceUsd: part * usd,
    submittedMs: job.submittedMs,
    fadeS: BEST_EFFORT_FADE_S,
    endUsd: part * Math.min(usd, FLOOR_FACTOR * onDemandUsd),
  });
  return { curve, reason: `best effort: ${words}, falling slowly` };
});
