import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, hasColumns, tableOf, type Row, type SourceFile } from './source.ts';
import { letters, request, submissionOf } from './spec.ts';
import { quote } from './tally.ts';

/** Alibaba's GPU cluster trace of 2023: pods with requests, and times of creation, scheduling and deletion. */

const COLUMNS = [
  'name',
  'cpu_milli',
  'memory_mib',
  'num_gpu',
  'gpu_milli',
  'qos',
  'pod_phase',
  'creation_time',
  'deletion_time',
  'scheduled_time',
] as const;
type Cells = Readonly<Record<(typeof COLUMNS)[number], string>>;
/** End of the trace, 149 days. Pods deleted then were still running: all have the phase Running. */
const TRACE_ENDS_S = 12_902_960;
const PHASES = new Set(['Running', 'Failed', 'Pending', 'Succeeded']);
/** Production by class: latency-sensitive, guaranteed and burstable pods are, best-effort ones are not. */
const PRODUCTION: Readonly<Record<string, boolean>> = { LS: true, Guaranteed: true, Burstable: true, BE: false };

export const alibabaGpu: Reader = {
  format: 'alibaba-gpu-2023',
  about: 'pods of the Alibaba GPU cluster trace of 2023 (openb_pod_list_*.csv)',
  notes: () => [
    'A pod is a job of one task; its running time is from placing to deletion. Nothing recurs: the trace has no users or names.',
    'A share of a GPU is taken as a whole one, and the model of GPU that some ask for is left out.',
  ],
  tellsProduction: true,
  detects: (file) => hasColumns(file.head, COLUMNS),
  read: readPods,
};

async function* readPods(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: ',', hasHeader: true }, context.tally)) {
      for (const row of rows) {
        const job = jobOf(row, file, context);
        if (job !== null) yield job;
      }
    }
  }
}

function faultIn(cells: Cells): string | null {
  if (cells.name === '') return 'a pod has a name';
  if (!PHASES.has(cells.pod_phase))
    return `pod_phase is one of ${[...PHASES].join(', ')}; got ${quote(cells.pod_phase)}`;
  if (!Object.hasOwn(PRODUCTION, cells.qos)) {
    return `qos is one of ${Object.keys(PRODUCTION).join(', ')}; got ${quote(cells.qos)}`;
  }
  for (const column of ['cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli', 'creation_time', 'deletion_time'] as const) {
    if (amountIn(cells[column]) === null) return `${column} is a number >= 0; got ${quote(cells[column])}`;
  }
  if (!Number.isInteger(Number(cells.num_gpu))) return `num_gpu is a whole number; got ${quote(cells.num_gpu)}`;
  if (cells.scheduled_time === '') return null;
  const ranS = Number(cells.deletion_time) - Number(cells.scheduled_time);
  return ranS >= 0
    ? null
    : `a pod is deleted after it is placed; got ${cells.scheduled_time} to ${cells.deletion_time}`;
}

/** Reason for dropping a valid pod; null: it is kept. */
function reasonToDrop(cells: Cells, asRun: boolean): string | null {
  if (cells.scheduled_time === '') return 'pod that was never placed';
  if (Number(cells.creation_time) === 0) return 'pod created before the trace begins';
  if (asRun) return null;
  if (Number(cells.deletion_time) >= TRACE_ENDS_S) return 'pod still running when the trace ends';
  return cells.pod_phase === 'Failed' ? 'pod that failed' : null;
}

function jobOf(
  { line, cells }: Row<(typeof COLUMNS)[number]>,
  file: SourceFile,
  context: ReadContext,
): Submission | null {
  const wrong = faultIn(cells);
  if (wrong !== null) {
    context.tally.bad(file.label, line, wrong);
    return null;
  }
  const why = reasonToDrop(cells, context.options.unfinished === 'as-run');
  if (why !== null) {
    context.tally.dropped(why);
    return null;
  }
  const gpus = Number(cells.num_gpu);
  if (gpus > 0 && Number(cells.gpu_milli) < 1000) context.tally.adjusted('share of a GPU taken as a whole one');
  const number = /(\d+)$/.exec(cells.name)?.[1];
  const word = number === undefined ? cells.name : letters(Number(number));
  return submissionOf(
    {
      key: cells.name,
      file: file.label,
      line,
      atS: Number(cells.creation_time),
      production: PRODUCTION[cells.qos] === true,
      owner: 'alibaba',
      name: `pod-${word}`,
      program: `pod-${word}`,
      labels: { qos: cells.qos },
      stages: [
        {
          name: 'main',
          dependsOn: [],
          runtimeS: Float64Array.of(Number(cells.deletion_time) - Number(cells.scheduled_time)),
          resources: request(Number(cells.cpu_milli) / 1000, Number(cells.memory_mib), gpus),
        },
      ],
    },
    context,
  );
}
