import { letters, ONE_CPU, submissionOf } from './spec.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, hasColumns, numberIn, tableOf, type Row, type SourceFile } from './source.ts';
import { quote } from './tally.ts';

/**
 * Google's cluster trace of May 2011, job events folded to one row per job. Times are seconds since the trace's start.
 * Its window begins at 600 s; 0 means earlier (Reiss, Wilkes, Hellerstein: format and schema, 2011).
 */

const COLUMNS = [
  'job_id',
  'user',
  'logical_name',
  'job_name',
  'sched_class',
  'submit_s',
  'last_schedule_s',
  'end_s',
  'end_event',
] as const;
type Column = (typeof COLUMNS)[number];
const ENDS = new Set(['FINISH', 'KILL', 'FAIL', 'EVICT', 'LOST']);

export const isGoogleJobs = (head: string): boolean => hasColumns(head, COLUMNS);

/** Names of a job and its submitter. */
export interface GoogleNames {
  readonly owner: string;
  readonly name: string;
  readonly program: string;
}

/**
 * User, job name and logical name: features of JamaisVu's histories (table 1); the logical name stands for the program.
 * They are numbers in place of opaque hashes. As letters they keep templates apart; only the job's own number varies.
 */
const namesOf = (id: string, user: number, logical: number, name: number): GoogleNames => ({
  owner: `user-${letters(user)}`,
  name: `${letters(name)}-${id}`,
  program: `program-${letters(logical)}`,
});

/** Names of these jobs from the table of all jobs; reading stops when all are found. */
export async function googleNames(
  file: SourceFile,
  wanted: ReadonlySet<string>,
  { tally }: ReadContext,
): Promise<ReadonlyMap<string, GoogleNames>> {
  const names = new Map<string, GoogleNames>();
  for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: ',', hasHeader: true }, tally)) {
    for (const { cells } of rows) {
      if (!wanted.has(cells.job_id)) continue;
      const found = rowNames(cells);
      if (found !== null) names.set(cells.job_id, found);
    }
    if (names.size === wanted.size) break;
  }
  return names;
}

function rowNames(cells: Readonly<Record<Column, string>>): GoogleNames | null {
  const [user, logical, name] = [amountIn(cells.user), amountIn(cells.logical_name), amountIn(cells.job_name)];
  if (user === null || logical === null || name === null) return null;
  return namesOf(cells.job_id, Math.floor(user), Math.floor(logical), Math.floor(name));
}

export const googleJobs: Reader = {
  format: 'google-2011-jobs',
  about: 'jobs of the Google cluster trace of 2011, one row per job (jobs.csv)',
  notes: () => [
    'A job is one task: the table has no task counts.',
    'Each asks for 1 vCPU and 1 GiB: the table has no requests.',
    'Running time: from the last time it was scheduled to its end.',
  ],
  detects: (file) => isGoogleJobs(file.head),
  read: readJobs,
};

async function* readJobs(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: ',', hasHeader: true }, context.tally)) {
      for (const row of rows) {
        const job = jobOf(row, file, context);
        if (job !== null) yield job;
      }
    }
  }
}

function jobOf({ line, cells }: Row<Column>, file: SourceFile, context: ReadContext): Submission | null {
  const { options, tally } = context;
  const bad = (what: string): null => {
    tally.bad(file.label, line, what);
    return null;
  };
  const drop = (why: string): null => {
    tally.dropped(why);
    return null;
  };
  const { job_id: id, end_event: end } = cells;
  const names = rowNames(cells);
  const atS = amountIn(cells.submit_s);
  const [startS, endS] = [numberIn(cells.last_schedule_s), numberIn(cells.end_s)];
  if (!/^\d+$/.test(id)) return bad(`job_id is a number; got ${quote(id)}`);
  if (!/^\d$/.test(cells.sched_class)) return bad(`sched_class is a digit; got ${quote(cells.sched_class)}`);
  if (names === null) return bad('user, logical_name and job_name are numbers');
  if (atS === null) return bad(`submit_s is a number >= 0; got ${quote(cells.submit_s)}`);
  if (end !== '' && !ENDS.has(end)) return bad(`end_event is one of ${[...ENDS].join(', ')}; got ${quote(end)}`);
  if (atS === 0) return drop('job submitted before the trace begins');
  if (end === '') return drop('job still running when the trace ends');
  if (end !== 'FINISH' && options.unfinished === 'drop') return drop(`job ended by ${end}`);
  // A job that ended without being scheduled has no running time.
  if (startS === null && end !== 'FINISH') return drop(`job ended by ${end} before it ran`);
  if (startS === null || endS === null || !(endS >= startS)) {
    return bad(`a job ends after it is scheduled; got ${quote(cells.last_schedule_s)} to ${quote(cells.end_s)}`);
  }
  return submissionOf(
    {
      key: id,
      file: file.label,
      line,
      atS,
      production: null,
      ...names,
      labels: { schedClass: cells.sched_class },
      stages: [{ name: 'main', dependsOn: [], runtimeS: Float64Array.of(endS - startS), resources: ONE_CPU }],
    },
    context,
  );
}
