import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseJobs } from '../domain/job-file/job-file.ts';
import type { JobSpec } from '../domain/job.ts';
import { EbbError } from '../kernel/errors.ts';
import { raw } from '../kernel/units.ts';
import { arriving } from './arrivals.ts';
import { drawsOf, factors } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import type { SourceFile } from './source.ts';
import { SHORTEST_S } from './spec.ts';
import type { StageTruth } from './workload.ts';

/** Owner of jobs whose file names none. */
const OWNER = 'simulated';

export const jobFiles: Reader = {
  format: 'job-files',
  about: 'a job file, or a folder of them',
  notes: () => [
    'A job file tells no running times: each task takes `expectedRuntime` times a lognormal factor of median 1 (sigma: `runtimeSpread`).',
    "Jobs are submitted in the order of their names, all at once unless `interarrivalS` is given. Classes and deadlines are the files' own.",
  ],
  keepsClass: true,
  takesFolders: true,
  detects: ({ path, gzip, head }) =>
    !gzip &&
    /\.(ya?ml|json)$/i.test(path) &&
    /^\s*["']?(command|stages)["']?\s*:|[{,]\s*"(command|stages)"\s*:/m.test(head),
  read: readFiles,
};

async function* readFiles(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  const jobs: Submission[] = [];
  for (const file of files) {
    try {
      const path = { path: file.label, baseDir: dirname(file.path), defaultOwner: OWNER };
      const specs = parseJobs(await readFile(file.path, 'utf8'), path);
      for (const [i, spec] of specs.entries()) {
        // A file with one job needs its name only.
        const key = i === 0 ? file.label : `${file.label}#${i + 1}`;
        jobs.push({ key, file: file.label, line: 0, atS: 0, production: null, ...real(key, spec, file, context) });
      }
    } catch (error) {
      // With a single file nothing else is left: its faults are shown as in `ebb submit`.
      if (!(error instanceof EbbError) || files.length === 1) throw error;
      context.tally.bad(file.label, 0, error.message);
    }
  }
  yield* arriving(jobs, context.options.interarrivalS ?? 0, context.options.seed);
}

/** Job with drawn running times. Throws EbbError `workload.invalid` for a stage without a time to draw about. */
function real(
  key: string,
  spec: JobSpec,
  file: SourceFile,
  { options }: ReadContext,
): Pick<Submission, 'spec' | 'truth'> {
  const truth = new Map<string, StageTruth>();
  for (const stage of spec.stages) {
    const { expectedRuntimeS } = stage;
    if (expectedRuntimeS === null) {
      throw new EbbError('workload.invalid', {
        what: `stage ${stage.name} has no expectedRuntime: how long it takes is not known`,
        at: file.label,
        next: 'Add `expectedRuntime` to the job file.',
      });
    }
    const draws = drawsOf(options.seed, 'job-file', `${key}/${stage.name}`);
    const factor = factors(draws, options.runtimeSpread);
    const medianS = raw(expectedRuntimeS);
    const runtimeS = Float64Array.from({ length: stage.tasks }, () => Math.max(SHORTEST_S, medianS * factor()));
    truth.set(stage.name, { runtimeS });
  }
  return { spec, truth };
}
