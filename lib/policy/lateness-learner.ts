/**
 * Deadlines met and missed: of the last jobs with a deadline whose tasks all succeeded, how many were late because of a
 * risk that was taken. The controller of the late budget reads it (late-budget.ts). A job that would have been late
 * without any risk says nothing of risks: what ended last was never taken away nor moved, and it is later than it
 * waited beyond the start-up of an instance, so that its running time alone was too long. One row, a text of one
 * character per job, and one of jobs that lost a task.
 */
import { gt, raw, type EpochMs } from '../kernel/units.ts';
import type { AttemptOutcome, Job } from '../domain/job.ts';
import type { AttemptEnded, Learner, LearningEvent } from './learner.ts';

/**
 * Of the last `most` jobs with a deadline that ended, or as many as are remembered, how many were late because of a
 * risk.
 */
export interface Lateness {
  readonly ofLast: (most: number) => { readonly ended: number; readonly late: number };
}

/** Jobs remembered: of the smallest budget that can be kept, 0.1 %, two of them may be late. */
const REMEMBERED = 2000;
/** Jobs with a deadline that lost an attempt and are not done. */
const MOST_LOST = 1000;
const KEY = 'lateness/deadlines';
const LOST_KEY = 'lateness/lost';
const LATE = 'l';
const MET = 'm';

export const latenessLearner = (): Learner<Lateness> => new LatenessLearner();

class LatenessLearner implements Learner<Lateness> {
  readonly name = 'lateness';
  readonly about = 'how many of the last jobs with a deadline were late because of a risk';
  readonly source = 'ours';
  readonly prefix = 'lateness/';
  readonly learnsFrom = ['attempt-ended'] as const;
  #ends = '';
  readonly #lost = new Set<string>();
  readonly #dirty = new Set<string>();

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended') return;
    const { job, outcome, atMs } = event;
    const { deadlineMs } = job;
    if (deadlineMs === null) return;
    if (LOSSES.includes(outcome)) return this.#lose(job.id);
    if (outcome !== 'succeeded' || !isDone(job)) return;
    const isLate = gt(atMs, deadlineMs) && (wasStopped(event, this.#lost) || waitedTooLong(event, deadlineMs));
    this.#ends = (this.#ends + (isLate ? LATE : MET)).slice(-REMEMBERED);
    this.#dirty.add(KEY);
    if (this.#lost.delete(job.id)) this.#dirty.add(LOST_KEY);
  }

  #lose(job: string): void {
    if (this.#lost.has(job)) return;
    this.#lost.add(job);
    this.#dirty.add(LOST_KEY);
    const [oldest] = this.#lost;
    if (this.#lost.size > MOST_LOST && oldest !== undefined) this.#lost.delete(oldest);
  }

  belief(): Lateness {
    const ends = this.#ends;
    return Object.freeze({
      ofLast: (most: number) => {
        const last = ends.slice(-most);
        return { ended: last.length, late: last.split(LATE).length - 1 };
      },
    });
  }

  takeDirty(): ReadonlyMap<string, string> {
    const rows = [...this.#dirty].map((key) => [key, key === KEY ? this.#ends : [...this.#lost].join(' ')] as const);
    this.#dirty.clear();
    return new Map(rows);
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#ends = (rows.get(KEY) ?? '').replace(/[^lm]/g, '').slice(-REMEMBERED);
    this.#lost.clear();
    const lost = (rows.get(LOST_KEY) ?? '').split(' ').filter((id) => id !== '');
    for (const id of lost.slice(-MOST_LOST)) this.#lost.add(id);
    this.#dirty.clear();
  }
}

const LOSSES: readonly AttemptOutcome[] = ['interrupted', 'moved', 'preempted'];

/**
 * True if its last task, which needs no others of its job, was stopped before, or if any task was, where others wait
 * for it.
 */
const wasStopped = ({ job, stage, attempt }: AttemptEnded, stopped: ReadonlySet<string>): boolean =>
  stopped.has(job.id) && (attempt.number > 1 || stage.dependsOn.length > 0);

/**
 * True if a job that had begun on a new instance at once would have met its deadline: nothing begins sooner that finds
 * no room. Its last task counts where it needs no other, unless it is a copy, which is no wait.
 */
function waitedTooLong({ job, stage, attempt, instance, atMs }: AttemptEnded, deadlineMs: EpochMs): boolean {
  const isFirst = stage.dependsOn.length === 0 && attempt.role !== 'copy';
  const begunMs = isFirst ? (attempt.startedMs ?? job.startedMs) : job.startedMs;
  if (begunMs === null) return true;
  const { requestedMs, readyMs } = instance;
  const startUpMs = readyMs === null ? 0 : raw(readyMs) - raw(requestedMs);
  return raw(atMs) - raw(deadlineMs) <= raw(begunMs) - raw(job.submittedMs) - startUpMs;
}

/** True with the success of its last task. */
const isDone = ({ stages }: Job): boolean => stages.every(({ tasks, succeeded }) => succeeded >= tasks);
