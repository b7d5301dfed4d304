/**
 * JVuSched's utilities as the paper has them: the same for each job, whatever it costs, so that as many deadlines as
 * possible are met (JamaisVu, sections 4.1.4 and 4.2, figure 5). For machines that are paid for anyway; where they are
 * bought, a worth that follows the cost keeps a small job from being done at any price (jvusched.ts).
 */
import { raw, seconds, secondsBetween, type Seconds } from '../../kernel/units.ts';
import type { ValuePolicy } from '../../policy/contracts.ts';
import { valuePolicy, type CurveFacts, type DrawCurve } from './assess.ts';
import { bestEffortCurve, deadlineCurve } from './curves.ts';

/** Far above what a job costs on machines of one's own, US dollars: only ratios count. */
const BEST_EFFORT_USD = 100;
/** Strict priority among jobs (section 4.1.4). */
const DEADLINE_USD = 1000 * BEST_EFFORT_USD;
/** Best-effort work falls by so much within a day; figure 5 draws the slope without numbers. */
const LEFT_AFTER_A_DAY = 0.625;
const DAY_S = seconds(86_400);
/** Shortest time over which a late job's worth fades. */
const LEAST_FADE_S = 600;

interface Late {
  /** Time over which the worth of a late job falls. */
  readonly fadeS: Seconds;
  /** Its worth then. */
  readonly endUsd: number;
}

/**
 * Late jobs are worth less and less, so that over-estimated ones are not given up (section 4.3); in the end as much as
 * best-effort work, or nothing where the user says so.
 */
export const perJob: ValuePolicy = valuePolicy(
  drawn(({ job }) => {
    const stated = job.spec.value.worthlessAfterS;
    if (stated !== null) return { fadeS: stated, endUsd: 0 };
    const windowS = job.deadlineMs === null ? 0 : secondsBetween(job.submittedMs, job.deadlineMs);
    return { fadeS: seconds(Math.max(LEAST_FADE_S, windowS)), endUsd: LEFT_AFTER_A_DAY * BEST_EFFORT_USD };
  }),
);

/** Late jobs are worth nothing ("base" in figure 14). */
export const perJobSharp: ValuePolicy = valuePolicy(drawn(() => ({ fadeS: seconds(0), endUsd: 0 })));

function drawn(lateOf: (facts: CurveFacts) => Late): DrawCurve {
  return (facts) => {
    const { job, part, taskDeadlineMs } = facts;
    const stated = job.spec.value.onTimeUsd === null ? null : raw(job.spec.value.onTimeUsd);
    const usd = stated ?? (taskDeadlineMs === null ? BEST_EFFORT_USD : DEADLINE_USD);
    const words = stated === null ? `worth ${usd} USD as every such job` : `worth ${usd} USD as stated`;
    if (taskDeadlineMs === null) {
      const curve = bestEffortCurve({
        atOnceUsd: part * usd,
        submittedMs: job.submittedMs,
        fadeS: DAY_S,
        endUsd: part * LEFT_AFTER_A_DAY * usd,
      });
      return { curve, reason: `best effort: ${words}, falling slowly`, followsCost: false };
    }
    const { fadeS, endUsd } = lateOf(facts);
    const curve = deadlineCurve({ onTimeUsd: part * usd, deadlineMs: taskDeadlineMs, fadeS, endUsd: part * endUsd });
    const then = `falling to ${Math.min(endUsd, usd)} USD ${Math.round(raw(fadeS))} s later`;
    return { curve, reason: `deadline: ${words} until the deadline, ${then}`, followsCost: false };
  };
}
