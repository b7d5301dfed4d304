/**
 * When items go away by themselves (`ttl`, the table's time to live): no write deletes them, so ageing out costs
 * nothing but the attribute, which is set with what is written anyway. The service deletes within days of that second;
 * readers take an item as gone from that second on (dynamo-table.ts).
 *
 * What is over goes `historyDays` after the commit that finds it over. Small items beside it, written while nobody
 * knows how long it will live, get a year more: nothing that is still looked for by them lives so long.
 */
import { secondsBetween } from '../../../kernel/units.ts';
import type { Job } from '../../../domain/job.ts';
import type { Write } from './dynamo-table.ts';
import { number } from './codec.ts';

const DAY_S = 86_400;
/** Longest life of a job, a task or an instance of which everything is still found by its neighbours. */
export const LIFE_DAYS = 365;
/**
 * Entries of the list of all jobs go so much later than a job that ends at once: one that lives half as long looks
 * after its entry when it ends.
 */
const LISTED_DAYS = 30;

type Attributes = NonNullable<Write['set']>;

export class Expiry {
  readonly #days: number | null;
  readonly #nowMs: number;

  /** `nowMs`: wall time. */
  constructor(historyDays: number | null, nowMs: number) {
    this.#days = historyDays;
    this.#nowMs = nowMs;
  }

  /** The day (UTC) of now: `2026-01-31`. */
  get day(): string {
    return new Date(this.#nowMs).toISOString().slice(0, 10);
  }

  get nowS(): number {
    return Math.floor(this.#nowMs / 1000);
  }

  /** Whether anything ever goes. */
  get isOn(): boolean {
    return this.#days !== null;
  }

  /** Of what is over now, and of a key that is used now. */
  get over(): Attributes {
    return this.#after(0);
  }

  /** Of what lies beside something that is not over. */
  get beside(): Attributes {
    return this.#after(LIFE_DAYS);
  }

  /** Of an entry in the list of all jobs. */
  get listed(): Attributes {
    return this.#after(LISTED_DAYS);
  }

  /** Whether a job that is over has lived so long that its entry in the list of all jobs may go before it. */
  isLongListed(job: Pick<Job, 'submittedMs' | 'finishedMs'> | null): boolean {
    if (job === null || job.finishedMs === null) return false;
    return secondsBetween(job.submittedMs, job.finishedMs) > (LISTED_DAYS / 2) * DAY_S;
  }

  #after(moreDays: number): Attributes {
    if (this.#days === null) return {};
    return { ttl: number(this.nowS + (this.#days + moreDays) * DAY_S) };
  }
}
