/** Which copies the contract of the speculate stage allows. */
import { isEnding } from '../domain/job.ts';
import { isStopping, runningNamed, type RunningTask, type Snapshot } from '../domain/snapshot.ts';
import type { Copy } from './contracts.ts';
import { wrongTarget } from './targets.ts';

/** Attempts of a task that a copy asks for where it does not say. */
const WITH_ONE_COPY = 2;

/** How many attempts of its task a copy wants to live. */
export const attemptsWanted = ({ attempts = WITH_ONE_COPY }: Copy): number => attempts;

/** Why a running attempt cannot be copied; null: it can. */
export function whyNotCopied(running: RunningTask, { jobs }: Pick<Snapshot, 'jobs'>): string | null {
  if (isStopping(running)) return 'which is stopping';
  // Copies of copies would keep a task that hangs from ever failing.
  if (running.isLastTry === true) return 'whose task has used up its retries';
  const job = jobs.get(running.attempt.job);
  if (job === undefined) return 'whose job is set aside';
  if (isEnding(job)) return 'whose job is being stopped';
  return running.stage.gang ? 'which is one of a gang' : null;
}

/** The first thing that is wrong with the copies that a policy asks for, for people; null: nothing. */
export function wrongCopy(copies: readonly Copy[], snapshot: Snapshot): string | null {
  const named = runningNamed(
    snapshot,
    copies.map((c) => c.of),
  );
  const copied = new Set<string>();
  for (const copy of copies) {
    const running = named.get(copy.of);
    if (running === undefined) return `it copies ${copy.of}, which does not run`;
    const why = whyNotCopied(running, snapshot);
    if (why !== null) return `it copies ${copy.of}, ${why}`;
    const { job, stage, index } = running.attempt;
    const task = `${job}/${stage}/${index}`;
    if (copied.has(task)) return `it copies ${task} twice`;
    copied.add(task);
    const attempts = attemptsWanted(copy);
    if (!Number.isSafeInteger(attempts) || attempts < WITH_ONE_COPY)
      return `it wants ${attempts} attempts of ${task}, where a copy makes at least ${WITH_ONE_COPY}`;
    const wrong = copy.to === undefined ? null : wrongTarget(copy.to, running, snapshot);
    if (wrong !== null) return `it copies ${copy.of} ${wrong}`;
  }
  return null;
}
