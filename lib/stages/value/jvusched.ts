import { raw, seconds, secondsBetween, type Seconds } from '../../kernel/units.ts';
import type { ValuePolicy } from '../../policy/contracts.ts';
import { valuePolicy, type CurveFacts } from './assess.ts';
import { bestEffortCurve, deadlineCurve } from './curves.ts';

/**
 * Worth of a job as a multiple of its on-demand cost, without a value from the user. Best-effort work starts at twice
 * its on-demand cost and never falls below 1.25 times: so running it on demand pays in the end, whatever the spot
 * market does, and the difference is the possible gain of waiting for a cheaper hour. Deadline jobs are worth 1000
 * times a best-effort job of the same size (JamaisVu section 4.1.2).
 */
const BEST_EFFORT_FACTOR = 2;
export const FLOOR_FACTOR = 1.25;
const DEADLINE_FACTOR = 1000 * BEST_EFFORT_FACTOR;

/**
 * Over which a best-effort job's worth falls to its floor: a day. JamaisVu figure 5 draws the slope without numbers.
 */
export const BEST_EFFORT_FADE_S: Seconds = seconds(86_400);

/** Shortest default time over which a late job's worth fades. */
const MIN_FADE_S = 600;

/**
 * JVuSched's utilities (JamaisVu sections 4.1.2, 4.3, figure 5).
 * Deadline jobs: constant until the deadline, then linear. With `value.worthlessAfter` the worth falls to 0 over that
 * time, and then nothing more is spent on the job. Without it, it falls over as long again as the job had (deadline
 * less submission, at least ten minutes), to the floor of best-effort work: the result may still be useful. Best-effort
 * jobs: linear from submission to the floor over a day; `value.onTimeUsd` replaces the start, and also the floor if it
 * is lower.
 */
export const jvuSched: ValuePolicy = valuePolicy((facts) => {
  const { job, part, onDemandUsd, taskDeadlineMs } = facts;
  const worth = jobWorth(facts);
  const floorUsd = Math.min(worth.usd, FLOOR_FACTOR * onDemandUsd);
  if (taskDeadlineMs === null) {
    const curve = bestEffortCurve({
      atOnceUsd: part * worth.usd,
      submittedMs: job.submittedMs,
      fadeS: BEST_EFFORT_FADE_S,
      endUsd: part * floorUsd,
    });
    return {
      curve,
      get reason() {
        return `best effort: ${worth.words}, falling to ${dollars(floorUsd)} within a day`;
      },
    };
  }
  const stated = job.spec.value.worthlessAfterS;
  const fadeS = stated ?? fadeOf(facts);
  const endUsd = stated === null ? floorUsd : 0;
  const curve = deadlineCurve({
    onTimeUsd: part * worth.usd,
    deadlineMs: taskDeadlineMs,
    fadeS,
    endUsd: part * endUsd,
  });
  return {
    curve,
    get reason() {
      const end = endUsd === 0 ? 'nothing' : dollars(endUsd);
      return `deadline: ${worth.words} until the deadline, falling to ${end} ${Math.round(raw(fadeS))} s later`;
    },
  };
});

function fadeOf({ job }: CurveFacts): Seconds {
  const windowS = job.deadlineMs === null ? 0 : secondsBetween(job.submittedMs, job.deadlineMs);
  return seconds(Math.max(MIN_FADE_S, windowS));
}

/** Worth of the whole job when it is on time, US dollars. */
export function jobWorth({ job, onDemandUsd }: Pick<CurveFacts, 'job' | 'onDemandUsd'>): {
  readonly usd: number;
  readonly words: string;
} {
  const stated = job.spec.value.onTimeUsd;
  if (stated !== null) return { usd: raw(stated), words: `the job is worth ${dollars(raw(stated))} as stated` };
  const factor = job.deadlineMs === null ? BEST_EFFORT_FACTOR : DEADLINE_FACTOR;
  return {
    usd: factor * onDemandUsd,
    get words() {
      return `the job is worth ${dollars(factor * onDemandUsd)} (${factor} times its on-demand cost)`;
    },
  };
}

const dollars = (usd: number): string => `${usd >= 0.01 ? usd.toFixed(2) : usd.toPrecision(2)} USD`;
