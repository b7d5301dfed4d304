/**
 * Expiry of items (`ttl`, the table's time to live). No write deletes them, so ageing costs only the attribute, which
 * is set with other writes. The service deletes items within days. Readers treat them as gone from the exact second
 * (dynamo-table.ts).
 *
 * Finished work expires `historyDays` after the commit that finds it over. Small items beside it are written before its
 * end is known, so they get a year more: no open work needs them that long.
 */
import { secondsBetween } from '../../../kernel/units.ts';
import type { Job } from '../../../domain/job.ts';
import type { Write } from './dynamo-table.ts';
import { number } from './codec.ts';

const DAY_S = 86_400;
/** Longest life of a job, task or instance whose neighbouring items are sure to be kept, days. */
export const LIFE_DAYS = 365;
/**
 * Extra life of entries in the list of all jobs, beyond that of a job that ends at once, days. A job that lives half as
 * long renews its entry at its end.
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

  /** Current day (UTC): `2026-01-31`. */
  get day(): string {
    return new Date(this.#nowMs).toISOString().slice(0, 10);
  }

  get nowS(): number {
    return Math.floor(this.#nowMs / 1000);
  }

  /** True if anything ever expires. */
  get isOn(): boolean {
    return this.#days !== null;
  }

  /** Expiry of finished work, and of a key in use. */
  get over(): Attributes {
    return this.#after(0);
  }

  /** Expiry of items beside open work. */
  get beside(): Attributes {
    return this.#after(LIFE_DAYS);
  }

  /** Expiry of an entry in the list of all jobs. */
  get listed(): Attributes {
    return this.#after(LISTED_DAYS);
  }

  /** True if a finished job lived so long that its entry in the list of all jobs may expire before it. */
  isLongListed(job: Pick<Job, 'submittedMs' | 'finishedMs'> | null): boolean {
    if (job === null || job.finishedMs === null) return false;
    return secondsBetween(job.submittedMs, job.finishedMs) > (LISTED_DAYS / 2) * DAY_S;
  }

  #after(moreDays: number): Attributes {
    if (this.#days === null) return {};
    return { ttl: number(this.nowS + (this.#days + moreDays) * DAY_S) };
  }
}
