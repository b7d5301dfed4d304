import { dependencyFindings } from '../domain/job-file/dependencies.ts';
import { drawsOf, factors } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, hasColumns, tableOf, type Row, type SourceFile } from './source.ts';
import { letters, request, stageName, submissionOf, type TraceStage } from './spec.ts';
import { quote } from './tally.ts';

/**
 * Alibaba's cluster trace of 2018, batch tasks as DAGs. A task of the trace is a stage here, its instances are the
 * tasks. Names contain the dependencies: J5_2_4 is stage 5 and waits for stages 2 and 4. The rows of a job are
 * scattered, those without times first, so all rows are read before the first job.
 */

const COLUMNS = [
  'job_name',
  'task_name',
  'instance_num',
  'status',
  'start_s',
  'end_s',
  'mean_instance_s',
  'plan_cpu_pct',
  'plan_mem',
] as const;
type Cells = Readonly<Record<(typeof COLUMNS)[number], string>>;
const STATUSES = new Set(['Terminated', 'Running', 'Failed', 'Waiting', 'Ready', 'Interrupted', 'Cancelled']);
/** Machines of that cluster: 96 cores. Memory is a percentage of an unpublished size; 4 GiB per core is our guess. */
const LARGEST = { vcpus: 96, memoryGiB: 384 };
/** Spread of a stage's instances, lognormal about its mean, which is all that the trace has. Ours. */
const INSTANCE_SIGMA = 0.25;
/** Largest plausible number of instances: the trace has at most 97,890. */
const MOST_INSTANCES = 1_000_000;

export const alibabaDags: Reader = {
  format: 'alibaba-2018-dags',
  about: 'batch DAGs of the Alibaba cluster trace of 2018',
  notes: ({ machine = LARGEST }) => [
    'A job is submitted when its first stage starts. Nothing recurs: the trace has no users or names.',
    `Running times of a stage's tasks are drawn about their mean (lognormal, sigma ${INSTANCE_SIGMA}): the trace has no others.`,
    `Memory is percent of a machine, taken as ${machine.memoryGiB} GiB.`,
  ],
  detects: (file) => hasColumns(file.head, COLUMNS),
  read: readDags,
};

interface Rows {
  readonly line: number;
  readonly rows: Cells[];
  /** Reason for dropping the job; null: none. */
  fault: string | null;
}

async function* readDags(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    const jobs = new Map<string, Rows>();
    for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: ',', hasHeader: true }, context.tally)) {
      for (const row of rows) collect(row, jobs, file, context);
    }
    // Array.sort is stable: ties stay in the order of the file.
    for (const [key, rows] of [...jobs].sort(([, a], [, b]) => startOf(a) - startOf(b))) {
      const job = jobOf(key, rows, file, context);
      if (job !== null) yield job;
    }
  }
}

/** Start of a job's first stage. Unusable jobs may have no number there. */
const startOf = ({ rows }: Rows): number => Math.min(...rows.map((r) => amountIn(r.start_s) ?? 0));

function collect(
  { line, cells }: Row<(typeof COLUMNS)[number]>,
  jobs: Map<string, Rows>,
  file: SourceFile,
  context: ReadContext,
): void {
  if (cells.job_name === '') return context.tally.bad(file.label, line, 'a row has a job_name');
  const job = jobs.get(cells.job_name) ?? { line, rows: [], fault: null };
  jobs.set(cells.job_name, job);
  const wrong = faultIn(cells);
  if (wrong !== null) {
    context.tally.bad(file.label, line, wrong);
    job.fault = 'job with a bad line';
  }
  job.rows.push(cells);
}

function faultIn(cells: Cells): string | null {
  if (cells.task_name === '') return 'a row has a task_name';
  if (!STATUSES.has(cells.status)) return `status is a known one; got ${quote(cells.status)}`;
  // Only ended rows have meaningful times and instances.
  if (cells.status !== 'Terminated' && cells.status !== 'Failed') return null;
  const instances = amountIn(cells.instance_num);
  if (instances === null || !Number.isInteger(instances) || instances < 1 || instances > MOST_INSTANCES) {
    return `instance_num is a whole number from 1 to ${MOST_INSTANCES}; got ${quote(cells.instance_num)}`;
  }
  const [startS, endS, meanS] = [amountIn(cells.start_s), amountIn(cells.end_s), amountIn(cells.mean_instance_s)];
  if (startS === null || endS === null || meanS === null || endS < startS) {
    const got = `${quote(cells.start_s)} to ${quote(cells.end_s)}, ${quote(cells.mean_instance_s)}`;
    return `a stage ends after it starts, and has a mean running time >= 0; got ${got}`;
  }
  return null;
}

function jobOf(key: string, of: Rows, file: SourceFile, context: ReadContext): Submission | null {
  const { line, rows, fault } = of;
  const { options, tally } = context;
  const drop = (why: string): null => {
    tally.dropped(why);
    return null;
  };
  if (fault !== null) return drop(fault);
  const isUsable = ({ status }: Cells): boolean =>
    status === 'Terminated' || (status === 'Failed' && options.unfinished === 'as-run');
  if (!rows.every(isUsable)) return drop('job with a stage that did not end well');
  const stages = stagesOf(key, rows, context);
  const [wrong] = dependencyFindings(stages);
  if (wrong !== undefined) {
    tally.bad(file.label, line, `job ${key}: ${wrong.message}`);
    return null;
  }
  const number = /(\d+)$/.exec(key)?.[1];
  const word = number === undefined ? key : letters(Number(number));
  return submissionOf(
    {
      key,
      file: file.label,
      line,
      atS: startOf(of),
      production: null,
      owner: 'alibaba',
      name: `job-${word}`,
      program: `job-${word}`,
      stages,
    },
    context,
  );
}

interface ParsedName {
  readonly name: string;
  readonly number: string | null;
  readonly parents: readonly string[];
}

/** `J5_2_4` or `J5_2_4_Stg8`; any other name is a stage without dependencies. */
export function parseTaskName(text: string): ParsedName {
  const parsed = /^([A-Za-z]+)(\d+)((?:_\d+)*)(?:_Stg\d+)?$/.exec(text);
  if (parsed === null) return { name: stageName(text), number: null, parents: [] };
  const [, type = '', number = '', parents = ''] = parsed;
  return { name: stageName(type + number), number, parents: parents.split('_').slice(1) };
}

function stagesOf(key: string, rows: readonly Cells[], { options, tally }: ReadContext): TraceStage[] {
  const { vcpus, memoryGiB } = options.machine ?? LARGEST;
  const names = rows.map((row) => parseTaskName(row.task_name));
  const byNumber = new Map(names.flatMap(({ name, number }) => (number === null ? [] : [[number, name] as const])));
  return rows.map((row, i): TraceStage => {
    const { name, parents } = names[i] ?? parseTaskName(row.task_name);
    const known = parents.flatMap((p) => byNumber.get(p) ?? []);
    tally.adjusted('dependency on a stage that the trace lacks left out', parents.length - known.length);
    const factor = factors(drawsOf(options.seed, 'alibaba', `${key}/${row.task_name}`), INSTANCE_SIGMA);
    const meanS = Number(row.mean_instance_s);
    const tasks = Number(row.instance_num);
    const memoryPercent = amountIn(row.plan_mem);
    // The mean of a lognormal factor of median 1 is exp(sigma^2 / 2); a single instance is its own mean.
    const medianS = meanS / Math.exp(INSTANCE_SIGMA ** 2 / 2);
    return {
      name,
      dependsOn: [...new Set(known)],
      runtimeS: tasks === 1 ? Float64Array.of(meanS) : Float64Array.from({ length: tasks }, () => medianS * factor()),
      resources: request(
        Math.min(vcpus, (amountIn(row.plan_cpu_pct) ?? 100) / 100),
        memoryPercent === null ? 1024 : (memoryPercent / 100) * memoryGiB * 1024,
      ),
    };
  });
}
