/**
 * Deadlines met and missed: of the last jobs with a deadline whose tasks all succeeded, how many were late. The
 * controller of the late budget reads it (late-budget.ts). One row, a text of one character per job.
 */
import { gt } from '../kernel/units.ts';
import type { Job } from '../domain/job.ts';
import type { Learner, LearningEvent } from './learner.ts';

/** Of the last `most` jobs with a deadline that ended, or as many as are remembered, how many were late. */
export interface Lateness {
  readonly ofLast: (most: number) => { readonly ended: number; readonly late: number };
}

/** Jobs remembered: of the smallest budget that can be kept, 0.1 %, two of them may be late. */
const REMEMBERED = 2000;
const KEY = 'lateness/deadlines';
const LATE = 'l';
const MET = 'm';

export const latenessLearner = (): Learner<Lateness> => new LatenessLearner();

class LatenessLearner implements Learner<Lateness> {
  readonly name = 'lateness';
  readonly about = 'how many of the last jobs with a deadline were late';
  readonly source = 'ours';
  readonly prefix = 'lateness/';
  readonly learnsFrom = ['attempt-ended'] as const;
  #ends = '';
  #isDirty = false;

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.outcome !== 'succeeded') return;
    const { deadlineMs } = event.job;
    if (deadlineMs === null || !isDone(event.job)) return;
    this.#ends = (this.#ends + (gt(event.atMs, deadlineMs) ? LATE : MET)).slice(-REMEMBERED);
    this.#isDirty = true;
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
    const rows = this.#isDirty ? new Map([[KEY, this.#ends]]) : new Map<string, string>();
    this.#isDirty = false;
    return rows;
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#ends = (rows.get(KEY) ?? '').replace(/[^lm]/g, '').slice(-REMEMBERED);
    this.#isDirty = false;
  }
}

/** True with the success of its last task. */
const isDone = ({ stages }: Job): boolean => stages.every(({ tasks, succeeded }) => succeeded >= tasks);
