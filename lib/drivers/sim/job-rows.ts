import type { JobId } from '../../kernel/ids.ts';
import { raw, type EpochMs } from '../../kernel/units.ts';
import type { Job, JobClass, JobState } from '../../domain/job.ts';
import type { LedgerRow } from '../../domain/ledger.ts';
import type { JobColumns } from '../../report/outcome.ts';

const at = (t: EpochMs | null): number => (t === null ? NaN : raw(t));
const COLUMNS = [
  'tasks',
  'submittedMs',
  'startedMs',
  'finishedMs',
  'deadlineMs',
  'workUsd',
  'wastedUsd',
  'speculativeUsd',
  'movedUsd',
  'idleUsd',
  'onDemandUsd',
  'interruptions',
] as const;
type Column = (typeof COLUMNS)[number];
/** Columns that begin at 0. */
const SUMS = COLUMNS.slice(COLUMNS.indexOf('workUsd'));

/** A row per job in growing columns, in the order of first puts. */
export class JobRows {
  readonly #index = new Map<JobId, number>();
  readonly #key: string[] = [];
  readonly #name: string[] = [];
  readonly #owner: string[] = [];
  readonly #class: JobClass[] = [];
  readonly #state: JobState[] = [];
  readonly #numbers = Object.fromEntries(COLUMNS.map((c) => [c, [] as number[]])) as Record<Column, number[]>;

  /** The workload's name of a job that is about to be put. */
  name(id: JobId, key: string): void {
    this.#index.set(id, this.#key.length);
    this.#key.push(key);
  }

  /** Updates the row of a job. A job without a name is called by its id. */
  put(job: Job): void {
    if (!this.#index.has(job.id)) this.name(job.id, job.id);
    const i = this.#index.get(job.id) ?? 0;
    this.#name[i] = job.spec.name;
    this.#owner[i] = job.spec.owner;
    this.#class[i] = job.spec.class;
    this.#state[i] = job.state;
    const { tasks, submittedMs, startedMs, finishedMs, deadlineMs } = this.#numbers;
    tasks[i] = job.stages.reduce((n, s) => n + s.tasks, 0);
    submittedMs[i] = at(job.submittedMs);
    startedMs[i] = at(job.startedMs);
    finishedMs[i] = at(job.finishedMs);
    deadlineMs[i] = at(job.deadlineMs);
    for (const c of SUMS) this.#numbers[c][i] ??= 0;
  }

  charge(row: LedgerRow): void {
    if (row.job === null) return;
    this.#add(row.job, `${row.kind}Usd`, row.usd);
    if (row.kind === 'work') this.#add(row.job, 'onDemandUsd', row.onDemandUsd);
  }

  interrupted(job: JobId): void {
    this.#add(job, 'interruptions', 1);
  }

  columns(): JobColumns {
    const numbers = Object.fromEntries(COLUMNS.map((c) => [c, Float64Array.from(this.#numbers[c])]));
    return {
      key: this.#key,
      name: this.#name,
      owner: this.#owner,
      class: this.#class,
      state: this.#state,
      ...(numbers as Record<Column, Float64Array>),
    };
  }

  #add(job: JobId, column: Column, amount: number): void {
    const i = this.#index.get(job);
    if (i !== undefined) this.#numbers[column][i] = (this.#numbers[column][i] ?? 0) + amount;
  }
}
