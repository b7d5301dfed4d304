import type { SQLInputValue } from 'node:sqlite';
import type { JobSpec, JobState } from '../../../domain/job.ts';
import type { JobFilter } from '../../../ports/store.ts';
import type { Database } from './database.ts';
import type { JobRow } from './sqlite-rows.ts';

const COLUMNS = 'j.arrival, j.id, j.cancel_requested, j.cancelled_by, j.released_hold_ms, j.body, s.spec';
const JOINED = 'jobs j JOIN job_specs s ON s.job = j.arrival';

export const jobById = (db: Database, id: string): JobRow | undefined =>
  db.one<JobRow>(`SELECT ${COLUMNS} FROM ${JOINED} WHERE j.id = ?`, id);

export const newestNamed = (db: Database, name: string): JobRow | undefined =>
  filteredJobs(db, { name }, { limit: 1, before: null })[0];

const STATES = Object.keys({
  pending: true,
  running: true,
  held: true,
  succeeded: true,
  failed: true,
  cancelled: true,
} satisfies Record<JobState, true>);

/** Unfinished jobs, without their specifications: those are immutable and mostly known. */
export const openJobs = (db: Database): Omit<JobRow, 'spec'>[] =>
  db.all(
    `SELECT arrival, id, cancel_requested, cancelled_by, released_hold_ms, body FROM jobs WHERE state IN ${OPEN_STATES} ORDER BY arrival`,
  );

/** States of jobs that are not over, as SQL. */
export const OPEN_STATES = `('pending', 'running', 'held')`;

export function specOf(db: Database, arrival: number): JobSpec {
  const row = db.one<{ spec: string }>('SELECT spec FROM job_specs WHERE job = ?', arrival);
  return JSON.parse(row?.spec ?? 'null') as JobSpec;
}

/**
 * Newest first, below `before`. One branch per state, each walking its index from the newest and stopping at the limit:
 * a few pending jobs among a million finished ones, and the newest finished ones, are found at once. The indexes by
 * owner and by name begin with the state too.
 */
export function filteredJobs(
  db: Database,
  filter: JobFilter,
  page: { readonly limit: number; readonly before: number | null },
): JobRow[] {
  const conditions: string[] = [];
  const values: SQLInputValue[] = [];
  const where = (condition: string, ...of: SQLInputValue[]): void => {
    conditions.push(condition);
    values.push(...of);
  };
  if (page.before !== null) where('arrival < ?', page.before);
  if (filter.owner !== undefined) where('owner = ?', filter.owner);
  if (filter.name !== undefined) where('name = ?', filter.name);
  if (filter.label !== undefined) {
    where('arrival IN (SELECT job FROM job_labels WHERE key = ? AND value = ?)', filter.label.key, filter.label.value);
  }
  const branch = (extra: string[]): string => {
    const all = [...conditions, ...extra];
    return `SELECT arrival FROM jobs ${all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`} ORDER BY arrival DESC LIMIT ?`;
  };
  const isIndexedByState = filter.owner !== undefined || filter.name !== undefined;
  const states = filter.states === undefined ? (isIndexedByState ? STATES : null) : [...new Set(filter.states)];
  if (states?.length === 0) return [];
  const branches = states === null ? [branch([])] : states.map(() => branch(['state = ?']));
  const bound = (states ?? [null]).flatMap((s) => [...values, ...(s === null ? [] : [s]), page.limit]);
  const union = branches.map((sql) => `SELECT arrival FROM (${sql})`).join(' UNION ALL ');
  return db.all<JobRow>(
    `SELECT ${COLUMNS} FROM (${union}) f JOIN jobs j ON j.arrival = f.arrival JOIN job_specs s ON s.job = f.arrival
     ORDER BY f.arrival DESC LIMIT ?`,
    ...bound,
    page.limit,
  );
}
