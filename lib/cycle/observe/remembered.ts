import type { JobId } from '../../kernel/ids.ts';
import type { JobState } from '../../domain/job.ts';
import { Spending } from '../money/spending.ts';

/**
 * Cache of accounts of jobs with a budget, and of the ends of jobs that others wait for; each cycle would read them
 * otherwise. Valid as long as every observation went through it, and was committed.
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
 * Memory of one process between observations, so that a cycle with few events reads little. Another process may have
 * observed in between, with events unknown to this one: each observation takes the lease once, so the tokens tell.
 */
export class ObservationMemory {
  readonly remembered = new Remembered();
  /** Token of its last observation, if that was completed. */
  #token: number | null = null;

  /** An observation begins under this token. */
  begin(token: number): void {
    if (this.#token !== token - 1) this.remembered.forget();
    this.#token = null;
  }

  /** All of the observation is committed. */
  end(token: number): void {
    this.#token = token;
  }
}
