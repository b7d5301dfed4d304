import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Resources } from '../domain/resources.ts';
import { googleNames, isGoogleJobs, type GoogleNames } from './google-jobs.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, hasColumns, numberIn, sourceFiles, tableOf, type Row, type SourceFile } from './source.ts';
import { letters, request, submissionOf, type TraceStage } from './spec.ts';
import { quote, type Tally } from './tally.ts';

/**
 * Google's cluster trace of May 2011, task events folded to one row per attempt. Attempts of a job are scattered over
 * the file: an evicted task returns hours later. So all are folded before the first job, in some 60 bytes a task.
 *
 * A task's running time is that of its first attempt that ended in FINISH. Earlier attempts that ended in FAIL are
 * failures. Those that ended in EVICT or KILL are left out: that cluster caused them, and here another market takes
 * instances. For tasks that never finished see `unfinished`.
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
/** Largest plausible index; the largest job of the trace has 10,500 tasks. */
const MOST_INDEX = 1_000_000;
/**
 * Largest machine, of which requests are fractions. Its size is unpublished; Stratus section 3.3.1 assumes 64 vCPUs and
 * 256 GiB.
 */
const LARGEST = { vcpus: 64, memoryGiB: 256 };
/** Lowest production priority: 9 to 11 are production and monitoring (Reiss et al. 2011). */
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

/**
 * Names from the table of jobs in the same folder, so that templates recur. Without it each job is its own template.
 */
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
  /** Position in the columns by task index. */
  readonly tasks: Map<number, number>;
}

/** Attempts by job and task. Columns hold half a million tasks in some 40 MB. */
class AttemptFold {
  readonly #file: SourceFile;
  readonly #tally: Tally;
  readonly #jobs = new Map<string, JobFold>();
  /** Position among the requests by CPU, then by memory. */
  readonly #requestIds = new Map<number, Map<number, number>>();
  readonly #requests: (readonly [cpu: number, mem: number])[] = [];
  /** Running time of the first finished attempt; -1: none. */
  readonly #finishedS: number[] = [];
  /** Running time of the longest other attempt; -1: none. */
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
    const attempt = attemptIn(cells);
    if (typeof attempt === 'string') return this.#tally.bad(this.#file.label, line, attempt);
    const { index, number, submitS } = attempt;
    const job = this.#job(cells, line, submitS);
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
    if (number <= (this.#attempt[task] ?? 0)) {
      const which = `attempt ${cells.attempt} of task ${index} of job ${cells.job_id}`;
      return this.#tally.bad(this.#file.label, line, `${which} comes after a later one, or twice`);
    }
    job.firstS = Math.min(job.firstS, submitS);
    this.#attempt[task] = number;
    this.#end(task, attempt);
  }

  #job(cells: Cells, line: number, atS: number): JobFold {
    const id = cells.job_id;
    let job = this.#jobs.get(id);
    if (job === undefined) {
      job = { line, priority: cells.priority, schedClass: cells.sched_class, firstS: atS, tasks: new Map() };
      this.#jobs.set(id, job);
    }
    return job;
  }

  #end(task: number, { cpu, mem, ranS, end }: TraceAttempt): void {
    // A finished task was submitted again: the first time counts.
    if ((this.#finishedS[task] ?? -1) >= 0) return;
    this.#request[task] = this.#requestOf(cpu, mem);
    if (ranS === null) return;
    if (end === 'FINISH') this.#finishedS[task] = ranS;
    else this.#ranS[task] = Math.max(this.#ranS[task] ?? -1, ranS);
    if (end === 'FAIL') this.#failures[task] = (this.#failures[task] ?? 0) + 1;
  }

  #requestOf(cpu: number, mem: number): number {
    let ids = this.#requestIds.get(cpu);
    if (ids === undefined) this.#requestIds.set(cpu, (ids = new Map<number, number>()));
    let id = ids.get(mem);
    if (id === undefined) ids.set(mem, (id = this.#requests.push([cpu, mem]) - 1));
    return id;
  }

  /** Jobs by first submission. */
  *take(context: ReadContext, names: ReadonlyMap<string, GoogleNames>): Generator<Submission> {
    const { vcpus, memoryGiB } = context.options.machine ?? LARGEST;
    const resources = this.#requests.map(([cpu, mem]) => request(cpu * vcpus, mem * memoryGiB * 1024));
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

  /** Stages, one per request, in the order of their first tasks. */
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

/** Parsed row. */
interface TraceAttempt {
  readonly index: number;
  readonly number: number;
  readonly submitS: number;
  /** Null: not scheduled, or not ended. */
  readonly ranS: number | null;
  readonly end: string;
  readonly cpu: number;
  readonly mem: number;
}

const ID = /^\d{1,15}$/;
const CLASS = /^\d{1,2}$/;

/** Parsed row, or its fault. */
function attemptIn(cells: Cells): TraceAttempt | string {
  const { job_id: id, sched_class: schedClass, priority, end_event: end } = cells;
  const index = amountIn(cells.task_index);
  const number = amountIn(cells.attempt);
  const submitS = amountIn(cells.submit_s);
  const cpu = amountIn(cells.cpu_req);
  const mem = amountIn(cells.mem_req);
  if (!ID.test(id)) return `job_id is a number; got ${quote(id)}`;
  if (index === null || !Number.isInteger(index) || index > MOST_INDEX) {
    return `task_index is a whole number up to ${MOST_INDEX}; got ${quote(cells.task_index)}`;
  }
  if (number === null || !Number.isInteger(number) || number < 1) {
    return `attempt is a whole number from 1; got ${quote(cells.attempt)}`;
  }
  if (submitS === null) return `submit_s is a number >= 0; got ${quote(cells.submit_s)}`;
  if (!ENDS.has(end)) return `end_event is a known one; got ${quote(end)}`;
  if (!CLASS.test(schedClass)) return `sched_class is a number from 0 to 99; got ${quote(schedClass)}`;
  if (!CLASS.test(priority)) return `priority is a number from 0 to 99; got ${quote(priority)}`;
  if (cpu === null || cpu > 1) return `cpu_req is a fraction from 0 to 1; got ${quote(cells.cpu_req)}`;
  if (mem === null || mem > 1) return `mem_req is a fraction from 0 to 1; got ${quote(cells.mem_req)}`;
  const ranS = ranIn(cells, end);
  return typeof ranS === 'string' ? ranS : { index, number, submitS, ranS, end, cpu, mem };
}

function ranIn({ schedule_s: start, end_s: stop }: Cells, end: string): number | string | null {
  const startS = numberIn(start);
  const endS = numberIn(stop);
  const got = (rule: string): string => `${rule}; got ${quote(start)} to ${quote(stop)}`;
  if (Number.isNaN(startS) || Number.isNaN(endS)) return got('schedule_s and end_s are numbers');
  if (startS === null || endS === null) return end === 'FINISH' ? got('an attempt that finished has its times') : null;
  return endS < startS ? got('an attempt ends after it is scheduled') : endS - startS;
}
