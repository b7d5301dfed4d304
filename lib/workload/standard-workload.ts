import { LIMITS } from '../domain/job-file/schema.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { linesOf, type SourceFile } from './source.ts';
import { letters, request, submissionOf } from './spec.ts';
import { quote } from './tally.ts';

/**
 * Standard Workload Format of the Parallel Workloads Archive: one job per line, 18 numbers, -1 for unknown. Lines with
 * `;` are comments (Feitelson et al., definition of version 2.2).
 */

const FIELDS = 18;
/** Positions of the used fields, from 0. */
const FIELD = {
  job: 0,
  submitS: 1,
  runS: 3,
  processors: 4,
  processorsAsked: 7,
  timeAskedS: 8,
  memoryUsedKb: 6,
  memoryAskedKb: 9,
  status: 10,
  user: 11,
  group: 12,
  program: 13,
  queue: 14,
  partition: 15,
} as const;
/** Values of `status`: 2 to 4 are parts of a job that is also listed as a whole. */
const COMPLETED = 1;
const PARTS = new Set([2, 3, 4]);
const ENDED: Readonly<Record<number, string>> = { 0: 'job that failed', 5: 'job that was cancelled' };
/** Memory per processor if unknown. */
const UNKNOWN_KB = 1024 * 1024;

export const standardWorkload: Reader = {
  format: 'swf',
  about: 'a log in the Standard Workload Format (Parallel Workloads Archive)',
  notes: () => [
    'A job is one gang with a task per processor, 1 vCPU each, all with the same running time.',
    'Group, queue and partition are labels of the job, where they are known.',
    'The time that its user asked for is the expected running time. Jobs do not wait for the ones they followed: their submission already did.',
  ],
  detects: ({ head }) => {
    const first = head.split(/\r?\n/).find((line) => line.trim() !== '' && !line.trim().startsWith(';'));
    return first === undefined ? /^\s*;/.test(head) : isRecord(first.trim().split(/\s+/));
  },
  read: readLog,
};

const isRecord = (cells: readonly string[]): boolean =>
  cells.length === FIELDS && cells.every((c) => c !== '' && Number.isFinite(Number(c)));

async function* readLog(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    for await (const { line, text: padded } of linesOf(file, context.tally)) {
      // Files of the archive align their columns with leading blanks.
      const text = padded.trim();
      if (text.startsWith(';')) continue;
      const cells = text.split(/\s+/);
      if (!isRecord(cells)) {
        context.tally.bad(file.label, line, `a job has ${FIELDS} numbers; got ${quote(text)}`);
        continue;
      }
      const job = jobOf(cells.map(Number), line, file, context);
      if (job !== null) yield job;
    }
  }
}

function jobOf(fields: readonly number[], line: number, file: SourceFile, context: ReadContext): Submission | null {
  const { options, tally } = context;
  const field = (name: keyof typeof FIELD): number => fields[FIELD[name]] ?? -1;
  const bad = (what: string): null => {
    tally.bad(file.label, line, what);
    return null;
  };
  const drop = (why: string): null => {
    tally.dropped(why);
    return null;
  };
  const [job, atS, runS, status] = [field('job'), field('submitS'), field('runS'), field('status')];
  if (!Number.isInteger(job) || job < 0) return bad(`a job's number is a whole one from 0; got ${job}`);
  if (atS < 0) return bad(`a submission is >= 0 s; got ${atS}`);
  if (runS < 0 && runS !== -1) return bad(`a running time is >= 0 s, or -1 when it is not known; got ${runS}`);
  if (PARTS.has(status)) return drop('part of a job that is listed as a whole');
  const tasks = field('processors') > 0 ? field('processors') : field('processorsAsked');
  if (runS === -1) return drop('job without a running time');
  if (!(tasks > 0)) return drop('job without a number of processors');
  if (status !== COMPLETED && options.unfinished === 'drop' && ENDED[status] !== undefined) return drop(ENDED[status]);
  // Gangs cannot be split.
  if (tasks > LIMITS.tasksPerStage) return drop(`job of more than ${LIMITS.tasksPerStage} processors`);
  const memoryKb = [field('memoryAskedKb'), field('memoryUsedKb')].find((kb) => kb > 0) ?? UNKNOWN_KB;
  const program = named('program', field('program'), job);
  return submissionOf(
    {
      key: String(job),
      file: file.label,
      line,
      atS,
      production: null,
      owner: named('user', field('user'), null),
      name: `${program}-${job}`,
      program,
      labels: labelsOf({ group: field('group'), queue: field('queue'), partition: field('partition') }),
      stages: [
        {
          name: 'main',
          dependsOn: [],
          gang: tasks > 1,
          runtimeS: new Float64Array(Math.ceil(tasks)).fill(runS),
          resources: request(1, memoryKb / 1024),
          expectedRuntimeS: field('timeAskedS') > 0 ? field('timeAskedS') : null,
        },
      ],
    },
    context,
  );
}

/** Known numbers, as labels. */
function labelsOf(numbers: Readonly<Record<string, number>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(numbers).flatMap(([name, number]) => (number >= 0 ? [[name, String(Math.floor(number))]] : [])),
  );
}

/**
 * Name for the number of a user or program, in letters, which keep templates apart. Unknown programs belong to their
 * job.
 */
function named(kind: string, number: number, job: number | null): string {
  if (number >= 0) return `${kind}-${letters(Math.floor(number))}`;
  return job === null ? `${kind}-unknown` : `job-${letters(job)}`;
}
