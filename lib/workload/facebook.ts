import { drawsOf, factors } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { amountIn, tableOf, type Row, type SourceFile } from './source.ts';
import { letters, request, submissionOf, type TraceStage } from './spec.ts';
import { quote } from './tally.ts';

/**
 * Day of Facebook's Hadoop cluster in 2010 (SWIM): submission times and bytes only. Tasks and running times follow from
 * the bytes by the rule below, which is ours: the mix of sizes is real, the seconds are not.
 */

const COLUMNS = ['job', 'submitS', 'gapS', 'mapBytes', 'shuffleBytes', 'outputBytes'] as const;
const RULE = {
  /** Input of a map task: the usual HDFS block size of that cluster. */
  bytesPerMap: 256 * 2 ** 20,
  bytesPerReduce: 2 ** 30,
  /** Time to start a JVM and commit the output. */
  overheadS: 10,
  /** Throughput of a task: a share of one disk of 2010. */
  bytesPerSecond: 10 * 2 ** 20,
  /** Spread of tasks, lognormal, cut off at the observed maximum of that cluster: 8 times (Hopper section 1). */
  sigma: 0.5,
  slowest: 8,
};
const RESOURCES = request(1, 2048);

export const facebook: Reader = {
  format: 'facebook-2010',
  about: 'jobs of a Facebook Hadoop cluster in 2010 (SWIM: tab-separated, no header)',
  notes: () => [
    `Map tasks of ${RULE.bytesPerMap / 2 ** 20} MiB, reduce tasks of ${RULE.bytesPerReduce / 2 ** 30} GiB, each 1 vCPU and 2 GiB.`,
    `The trace has no running times: a task takes ${RULE.overheadS} s and its bytes at ${RULE.bytesPerSecond / 2 ** 20} MiB/s, times a lognormal factor of sigma ${RULE.sigma}, at most ${RULE.slowest}.`,
  ],
  detects: ({ head }) => /^\S+\t\d+\t\d+\t\d+\t\d+\t\d+\r?$/m.test(head.split('\n', 1)[0] ?? ''),
  read: readJobs,
};

async function* readJobs(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  for (const file of files) {
    for await (const rows of tableOf(file, { columns: COLUMNS, delimiter: '\t', hasHeader: false }, context.tally)) {
      for (const row of rows) {
        const job = jobOf(row, file, context);
        if (job !== null) yield job;
      }
    }
  }
}

function jobOf(
  { line, cells }: Row<(typeof COLUMNS)[number]>,
  file: SourceFile,
  context: ReadContext,
): Submission | null {
  const atS = amountIn(cells.submitS);
  const [map, shuffle, output] = [amountIn(cells.mapBytes), amountIn(cells.shuffleBytes), amountIn(cells.outputBytes)];
  if (cells.job === '' || atS === null || map === null || shuffle === null || output === null) {
    const got = Object.values(cells).join(' ');
    context.tally.bad(file.label, line, `a row has a name, times and bytes that are numbers >= 0; got ${quote(got)}`);
    return null;
  }
  const factor = factors(drawsOf(context.options.seed, 'facebook', cells.job), RULE.sigma);
  // Without a shuffle the map tasks write the output.
  const maps = stage('map', map, map + (shuffle === 0 ? output : shuffle), RULE.bytesPerMap);
  const reduces = stage('reduce', Math.max(shuffle, output), shuffle + output, RULE.bytesPerReduce);
  const named = /^job(\d+)$/.exec(cells.job)?.[1];
  return submissionOf(
    {
      key: cells.job,
      file: file.label,
      line,
      atS,
      production: null,
      owner: 'facebook',
      name: `job-${named === undefined ? cells.job : letters(Number(named))}`,
      program: 'mapreduce',
      stages: [maps(factor, []), ...(shuffle === 0 ? [] : [reduces(factor, ['map'])])],
    },
    context,
  );
}

/** Stage of equal tasks: one per piece of `inputBytes`, at least one. */
const stage =
  (name: string, inputBytes: number, movedBytes: number, bytesPerTask: number) =>
  (factor: () => number, dependsOn: readonly string[]): TraceStage => {
    const tasks = Math.max(1, Math.ceil(inputBytes / bytesPerTask));
    const meanS = RULE.overheadS + movedBytes / tasks / RULE.bytesPerSecond;
    const runtimeS = Float64Array.from({ length: tasks }, () => meanS * Math.min(RULE.slowest, factor()));
    return { name, dependsOn, runtimeS, resources: RESOURCES };
  };
