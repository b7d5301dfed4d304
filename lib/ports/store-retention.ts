/**
 * What a store forgets, so that it does not grow with every cycle. Of explanations the latest per job is kept as long as the job.
 *
 * What is final ages out: a job that is over, with its tasks and attempts, once all its attempts have ended; an instance that has
 * ended, with its ledger, once its bill is settled. Then it is as if it had never been, but for its costs, which
 * stay in every sum. An idempotency key holds as long, from its submission on: so it never outlives the job that it made. What is
 * not over is never forgotten.
 */
export interface Retention {
  /** Newest plans kept, and with them the outcomes of their effects. Effects without an outcome are always kept. */
  readonly plans: number;
  /** Newest events kept. Sequence numbers go on ascending. */
  readonly events: number;
  /** Wall days from the end on after which what is final ages out, at the latest with a commit thereafter; null: never. */
  readonly historyDays: number | null;
}

/** At one cycle a minute: eight hours of plans. Events of some 25,000 attempts. */
export const DEFAULT_RETENTION: Retention = { plans: 500, events: 100_000, historyDays: null };

/** Key of the sums by job of what has aged out. */
export const AGED_OUT = '(aged out)';

export const DAY_MS = 86_400_000;
