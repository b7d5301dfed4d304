import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Resources } from '../../domain/resources.ts';
import { googleNames, isGoogleJobs, type GoogleNames } from './google-jobs.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, hasColumns, numberIn, sourceFiles, tableOf, type Row, type SourceFile } from './source.ts';
import { letters, request, submissionOf, type TraceStage } from './spec.ts';
import { quote, type Tally } from './tally.ts';

/*
 * Google's cluster trace of May 2011, task events folded to one row per attempt. The attempts of a job lie anywhere in the
 * file (a task evicted is submitted again hours later), so all are folded before the first job is handed out: some 60 bytes a task.
 *
 * A task's running time is that of its first attempt that ended in FINISH. Attempts before it that ended in FAIL are
 * failures; those that ended in EVICT or KILL were that cluster's doing and are left out, for here another market takes
 * instances away. A task that never finished has no known running time: see `unfinished`.
 */

const COLUMNS = [
  'job_id',
  'task_index',
  'attempt',
  'submit_s',
  'schedule_s',
  'end_s',
  'end_event',
  'sched_class',
  'priority',
  'cpu_req',
  'mem_req',
] as const;
type Cells = Readonly<Record<(typeof COLUMNS)[number], string>>;
const ENDS = new Set(['FINISH', 'KILL', 'EVICT', 'FAIL', 'LOST', '']);
/** More tasks than any job of the trace has (10,500): an index beyond it is a damaged number. */
const MOST_INDEX = 1_000_000;
/** Requests are fractions of the largest machine, which is not told; Stratus section 3.3.1 takes 64 vCPUs and 256 GiB. */
const LARGEST = { vcpus: 64, memoryGiB: 256 };
/** The trace's priorities 9 to 11 are production and monitoring (Reiss et al. 2011). */
const PRODUCTION_FROM = 9;

export const googleAttempts: Reader = {
  format: 'google-2011',
  about: 'task attempts of the Google cluster trace of 2011 (task_attempts.csv), with names from jobs.csv beside it',
  notes: ({ machine = LARGEST }) => [
    `Requests are fractions of the largest machine, taken as ${machine.vcpus} vCPUs and ${machine.memoryGiB} GiB.`,
    'Running time of a task: its first attempt that finished; attempts that failed before it are failures, evictions and kills are left out.',
    'Stages: tasks of one request. Local disk requests and machine constraints are left out.',
  ],
  tellsProduction: true,
  detects: (file) => hasColumns(file.head, COLUMNS),
  read: readAttempts,
};

async function* readAttempts(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    const fold = new AttemptFold(file, context.tally);
    for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: ',', hasHeader: true }, context.tally)) {
      for (const row of rows) fold.add(row);
    }
    const names = await namesBeside(file, fold.ids(), context);
    for (const job of fold.take(context, names)) yield job;
  }
}

/** From the table of jobs in the same folder, so that templates recur; without it each job is a template of its own. */
async function namesBeside(
  file: SourceFile,
  wanted: ReadonlySet<string>,
  context: ReadContext,
): Promise<ReadonlyMap<string, GoogleNames>> {
  const paths = ['jobs.csv.gz', 'jobs.csv'].map((name) => join(dirname(file.path), name)).filter(existsSync);
  for (const path of paths) {
    const [jobs] = await sourceFiles(path);
    if (jobs !== undefined && isGoogleJobs(jobs.head)) return googleNames(jobs, wanted, context);
  }
  return new Map();
}

interface JobFold {
  readonly line: number;
  readonly priority: string;
  readonly schedClass: string;
  firstS: number;
  /** Index of a task to its place in the columns. */
  readonly tasks: Map<number, number>;
}

/** Attempts by job and task. Columns instead of objects: half a million tasks in some 40 MB. */
class AttemptFold {
  readonly #file: SourceFile;
  readonly #tally: Tally;
  readonly #jobs = new Map<string, JobFold>();
  readonly #requests = new Map<string, number>();
  readonly #requestCells: (readonly [cpu: number, mem: number])[] = [];
  /** Running time of the first attempt that finished; -1: none did. */
  readonly #finishedS: number[] = [];
  /** Of the longest attempt that ended otherwise; -1: none ran. */
  readonly #ranS: number[] = [];
  readonly #failures: number[] = [];
  readonly #request: number[] = [];
  readonly #attempt: number[] = [];

  constructor(file: SourceFile, tally: Tally) {
    this.#file = file;
    this.#tally = tally;
  }

  ids(): ReadonlySet<string> {
    return new Set(this.#jobs.keys());
  }

  add({ line, cells }: Row<(typeof COLUMNS)[number]>): void {
    const wrong = faultIn(cells);
    if (wrong !== null) return this.#tally.bad(this.#file.label, line, wrong);
    const atS = Number(cells.submit_s);
    const job = this.#job(cells, line, atS);
    const index = Number(cells.task_index);
    let task = job.tasks.get(index);
    if (task === undefined) {
      task = this.#finishedS.length;
      job.tasks.set(index, task);
      this.#finishedS.push(-1);
      this.#ranS.push(-1);
      this.#failures.push(0);
      this.#request.push(0);
      this.#attempt.push(0);
    }
    if (Number(cells.attempt) <= (this.#attempt[task] ?? 0)) {
      const which = `attempt ${cells.attempt} of task ${index} of job ${cells.job_id}`;
      return this.#tally.bad(this.#file.label, line, `${which} comes after a later one, or twice`);
    }
    job.firstS = Math.min(job.firstS, atS);
    this.#attempt[task] = Number(cells.attempt);
    this.#end(task, cells);
  }

  #job(cells: Cells, line: number, atS: number): JobFold {
    let job = this.#jobs.get(cells.job_id);
    if (job === undefined) {
      job = { line, priority: cells.priority, schedClass: cells.sched_class, firstS: atS, tasks: new Map() };
      this.#jobs.set(cells.job_id, job);
    }
    return job;
  }

  #end(task: number, cells: Cells): void {
    // Submitted again after it had finished: the first time counts.
    if ((this.#finishedS[task] ?? -1) >= 0) return;
    this.#request[task] = this.#requestOf(cells);
    if (cells.schedule_s === '' || cells.end_s === '') return;
    const ranS = Number(cells.end_s) - Number(cells.schedule_s);
    if (cells.end_event === 'FINISH') this.#finishedS[task] = ranS;
    else this.#ranS[task] = Math.max(this.#ranS[task] ?? -1, ranS);
    if (cells.end_event === 'FAIL') this.#failures[task] = (this.#failures[task] ?? 0) + 1;
  }

  #requestOf(cells: Cells): number {
    const key = `${cells.cpu_req}/${cells.mem_req}`;
    let id = this.#requests.get(key);
    if (id === undefined) {
      id = this.#requestCells.length;
      this.#requests.set(key, id);
      this.#requestCells.push([Number(cells.cpu_req), Number(cells.mem_req)]);
    }
    return id;
  }

  /** The jobs by their first submission. */
  *take(context: ReadContext, names: ReadonlyMap<string, GoogleNames>): Generator<Submission> {
    const { vcpus, memoryGiB } = context.options.machine ?? LARGEST;
    const resources = this.#requestCells.map(([cpu, mem]) => request(cpu * vcpus, mem * memoryGiB * 1024));
    // Array.sort is stable: ties stay in the order of the file.
    const jobs = [...this.#jobs].sort(([, a], [, b]) => a.firstS - b.firstS);
    for (const [id, fold] of jobs) {
      const stages = this.#stages(fold, context, resources);
      if (stages.length === 0) {
        context.tally.dropped('job of which no task finished');
        continue;
      }
      const { priority, schedClass } = fold;
      const job = submissionOf(
        {
          key: id,
          file: this.#file.label,
          line: fold.line,
          atS: fold.firstS,
          production: Number(priority) >= PRODUCTION_FROM,
          ...(names.get(id) ?? namesWithout(id)),
          labels: { priority, schedClass },
          stages,
        },
        context,
      );
      if (job !== null) yield job;
    }
  }

  /** One stage for each request, in the order of their first tasks. */
  #stages(fold: JobFold, { options, tally }: ReadContext, resources: readonly Resources[]): TraceStage[] {
    const byRequest = new Map<number, { runtimeS: number[]; failures: number[] }>();
    let unfinished = 0;
    for (const [, task] of [...fold.tasks].sort(([a], [b]) => a - b)) {
      const finishedS = this.#finishedS[task] ?? -1;
      const ranS = options.unfinished === 'as-run' ? (this.#ranS[task] ?? -1) : -1;
      if (finishedS < 0 && ranS < 0) {
        unfinished++;
        continue;
      }
      const id = this.#request[task] ?? 0;
      const group = byRequest.get(id) ?? { runtimeS: [], failures: [] };
      byRequest.set(id, group);
      group.runtimeS.push(finishedS < 0 ? ranS : finishedS);
      group.failures.push(finishedS < 0 ? 0 : (this.#failures[task] ?? 0));
    }
    tally.dropped('task that did not finish', unfinished);
    return [...byRequest].map(([id, { runtimeS, failures }], i) => ({
      name: i === 0 ? 'main' : `request-${i + 1}`,
      dependsOn: [],
      runtimeS: Float64Array.from(runtimeS),
      failures: Uint16Array.from(failures),
      resources: resources[id] ?? request(0, 0),
    }));
  }
}

const namesWithout = (id: string): GoogleNames => ({
  owner: 'google',
  name: `job-${letters(Number(id))}`,
  program: `program-${letters(Number(id))}`,
});

const CLASSES = ['sched_class', 'priority'] as const;
const REQUESTS = ['cpu_req', 'mem_req'] as const;

function faultIn(cells: Cells): string | null {
  const index = amountIn(cells.task_index);
  const attempt = amountIn(cells.attempt);
  if (!/^\d{1,15}$/.test(cells.job_id)) return `job_id is a number; got ${quote(cells.job_id)}`;
  if (index === null || !Number.isInteger(index) || index > MOST_INDEX) {
    return `task_index is a whole number up to ${MOST_INDEX}; got ${quote(cells.task_index)}`;
  }
  if (attempt === null || !Number.isInteger(attempt) || attempt < 1) {
    return `attempt is a whole number from 1; got ${quote(cells.attempt)}`;
  }
  if (amountIn(cells.submit_s) === null) return `submit_s is a number >= 0; got ${quote(cells.submit_s)}`;
  if (!ENDS.has(cells.end_event)) return `end_event is a known one; got ${quote(cells.end_event)}`;
  for (const name of CLASSES) {
    if (!/^\d{1,2}$/.test(cells[name])) return `${name} is a number from 0 to 99; got ${quote(cells[name])}`;
  }
  for (const name of REQUESTS) {
    const fraction = amountIn(cells[name]);
    if (fraction === null || fraction > 1) return `${name} is a fraction from 0 to 1; got ${quote(cells[name])}`;
  }
  return faultInTimes(cells);
}

function faultInTimes(cells: Cells): string | null {
  const startS = numberIn(cells.schedule_s);
  const endS = numberIn(cells.end_s);
  const rule = brokenByTimes(cells, startS, endS);
  return rule === null ? null : `${rule}; got ${quote(cells.schedule_s)} to ${quote(cells.end_s)}`;
}

function brokenByTimes({ end_event }: Cells, startS: number | null, endS: number | null): string | null {
  if (Number.isNaN(startS) || Number.isNaN(endS)) return 'schedule_s and end_s are numbers';
  if (startS !== null && endS !== null && endS < startS) return 'an attempt ends after it is scheduled';
  const lacks = startS === null || endS === null;
  return end_event === 'FINISH' && lacks ? 'an attempt that finished has its times' : null;
}
