import type { z } from 'zod';
import type { Attempt } from '../domain/job.ts';
import type { Backend } from '../ports/backend.ts';
import type { LogEnd } from '../ports/fleet.ts';
import { decisiveAttempt, endedMs, isFailed, type FailedAttempt } from './decisive-attempt.ts';
import { findJob } from './find-job.ts';
import type { failuresQuery } from './requests.ts';
import type { FailureList, FailureView } from './schemas.ts';
import { iso } from './views.ts';

/** Most log lines shown: enough for the last error of a program, bounded for a terminal. */
const MOST_LINES = 10;
const MOST_BYTES = 2048;

/**
 * Tasks whose decisive attempt failed, with the end of its output. Interruptions and preemptions are not failures.
 * O(attempts of the job), and one log read per task shown.
 */
export async function listFailures(
  of: Backend,
  ref: string,
  { limit, stage, task }: z.output<typeof failuresQuery>,
): Promise<FailureList> {
  const job = await findJob(of, ref);
  const attempts = (await of.store.attempts(job.id)).filter(
    (a) => (stage === undefined || a.stage === stage) && (task === undefined || a.index === task),
  );
  if (!attempts.some(isFailed)) return { job: job.id, total: 0, items: [] };
  const final = new Set(
    (await of.store.tasks(job.id)).filter((t) => t.state === 'failed').map((t) => `${t.stage}/${t.index}`),
  );
  const failed = [...Map.groupBy(attempts, (a) => `${a.stage}/${a.index}`)]
    .map(([key, ofTask]) => decisiveAttempt(ofTask, final.has(key)))
    .filter((a) => a !== null)
    .filter(isFailed);
  const isFinal = (a: Attempt): boolean => final.has(`${a.stage}/${a.index}`);
  // One failure per reason: equal ones are one fact.
  const alike = [...Map.groupBy(failed, (a) => `${a.stage}\0${String(isFinal(a))}\0${a.reason ?? ''}`).values()];
  const chosen = alike
    .map((same) => ({ first: same.toSorted(latestFirst)[0], others: same.length - 1 }))
    .flatMap(({ first, others }) => (first === undefined ? [] : [{ attempt: first, others }]))
    .sort((a, b) => Number(isFinal(b.attempt)) - Number(isFinal(a.attempt)) || latestFirst(a.attempt, b.attempt));
  const items: FailureView[] = [];
  for (const { attempt, others } of chosen.slice(0, limit)) {
    items.push(failureView(attempt, isFinal(attempt), others, await endOfLog(of, attempt)));
  }
  return { job: job.id, total: failed.length, items };
}

const latestFirst = (a: Attempt, b: Attempt): number => endedMs(b) - endedMs(a) || a.index - b.index;

function failureView(a: FailedAttempt, isFinal: boolean, alike: number, log: LogEnd | null): FailureView {
  return {
    stage: a.stage,
    index: a.index,
    final: isFinal,
    attempt: a.number,
    outcome: a.outcome,
    exitCode: a.exitCode,
    exitSignal: a.exitSignal,
    reason: a.reason,
    endedAt: a.endedMs === null ? null : iso(a.endedMs),
    alike,
    stderr: log === null ? null : lastLines(log.text),
    merged: log?.isMerged === true,
  };
}

/** End of a log; null if it cannot be read: the reason of the failure is known without it. */
async function endOfLog({ fleet }: Backend, { id }: Attempt): Promise<LogEnd | null> {
  try {
    if (fleet.logEnd !== undefined) return await fleet.logEnd(id, 'stderr');
    const { totalBytes } = await fleet.logs(id, 'stderr', 0, 1);
    const from = Math.max(0, totalBytes - MOST_BYTES);
    const { text } = await fleet.logs(id, 'stderr', from, MOST_BYTES);
    // The range may begin inside the first line, which is cut.
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1) };
  } catch {
    return null;
  }
}

/** Last lines with text, within the bounds; null without any. */
function lastLines(text: string): string | null {
  const lines = text.trimEnd().split('\n').slice(-MOST_LINES);
  const kept = lines.join('\n').slice(-MOST_BYTES);
  return kept.trim() === '' ? null : kept;
}
