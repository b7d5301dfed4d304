import type { JobId } from '../../kernel/ids.ts';
import type { JobState } from '../../domain/job.ts';
import { Spending } from '../money/spending.ts';

/**
 * Accounts of jobs with a budget, and the ends of jobs that others wait for, which would be read for each of them in
 * each cycle else. Right for as long as all that was observed since was observed with it, and committed.
 */
export class Remembered {
  readonly finishedJobs = new Map<JobId, JobState>();
  readonly spending = new Spending();

  forget(): void {
    this.finishedJobs.clear();
    this.spending.forget();
  }
}

/**
 * What one process keeps from look to look, so that a cycle in which little happens reads little. Another process may
 * have looked between and taken in what this one has not heard of: each look takes the lease once, so the tokens tell.
 */
export class LookMemory {
  readonly remembered = new Remembered();
  /** Of its last look, if that came to its end. */
  #token: number | null = null;

  /** A look begins under this token. */
  begin(token: number): void {
    if (this.#token !== token - 1) this.remembered.forget();
    this.#token = null;
  }

  /** All that it took in is committed. */
  end(token: number): void {
    this.#token = token;
  }
}
