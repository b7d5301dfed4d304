import { raw } from '../kernel/units.ts';
import { hasLost, type Attempt } from '../domain/job.ts';

/**
 * The attempt of a task that tells how the task fares: the one that succeeded; else the newest that lives; else, where
 * the task has failed, its last failure; else the one that ended last. Superseded attempts tell nothing while others
 * do. Null: there is none. O(attempts of the task).
 */
export function decisiveAttempt(attempts: readonly Attempt[], hasFailed: boolean): Attempt | null {
  const won = attempts.find((a) => a.outcome === 'succeeded');
  if (won !== undefined) return won;
  const tells = (a: Attempt): boolean => !hasLost(a) && a.outcome !== 'superseded';
  const telling = attempts.some(tells) ? attempts.filter(tells) : attempts;
  const live = telling.filter((a) => a.state !== 'ended');
  if (live.length > 0) return lastBy(live, () => 0);
  const failed = hasFailed ? telling.filter(isFailed) : [];
  return lastBy(failed.length > 0 ? failed : telling, endedMs);
}

export type FailedAttempt = Attempt & { readonly outcome: 'failed' | 'timed-out' };

export const isFailed = (a: Attempt): a is FailedAttempt => a.outcome === 'failed' || a.outcome === 'timed-out';

/** Milliseconds; 0 for an attempt that lives. */
export const endedMs = (a: Attempt): number => (a.endedMs === null ? 0 : raw(a.endedMs));

/** The attempt with the largest value; of equal ones the one with the largest number. */
const lastBy = (attempts: readonly Attempt[], of: (a: Attempt) => number): Attempt | null =>
  attempts.reduce<Attempt | null>(
    (last, a) => (last === null || of(a) > of(last) || (of(a) === of(last) && a.number > last.number) ? a : last),
    null,
  );
