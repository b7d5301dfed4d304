/** Job files as request bodies, checked by the schema of job files on disk; examples of them. */
import { EbbError } from '../kernel/errors.ts';
import type { JobSpec } from '../domain/job.ts';
// Not job-file.ts: its YAML reader is half of the code that the intake function would load.
import { normalise, type NormaliseOptions } from '../domain/job-file/normalise.ts';
import { jobFileSchema } from '../domain/job-file/schema.ts';
import { unusableTexts } from './text-check.ts';

/** Job file with absolute or missing working directories: a request has no folder for relative ones. */
export const jobFileBody = jobFileSchema.meta({ id: 'JobFile' });

/** Default of a backend without submitter and folder. */
export const UNKNOWN_SUBMITTER: NormaliseOptions = { defaultOwner: 'anonymous', baseDir: null };

/** Throws `job-file.*` or `job.not-in-version` with every finding. `source` is the text of `json`. */
export function readJobFile(json: unknown, source: string, submitter = UNKNOWN_SUBMITTER): JobSpec {
  const issues = unusableTexts(json, source);
  if (issues.length > 0) {
    throw new EbbError('job-file.invalid', {
      what: 'the job file has texts that no program can be given',
      issues,
      allowed: 'Unicode without NUL',
      next: 'Put binary data into a file in the working directory.',
    });
  }
  return normalise(json, submitter, () => null);
}

export const jobExample = {
  name: 'nightly-render',
  owner: 'studio',
  labels: { project: 'lighthouse' },
  deadline: '6h',
  workdir: '/srv/render',
  stages: [
    {
      name: 'frames',
      tasks: 240,
      command: ['./render', '--frame', '{index}'],
      inputs: ['scene/**'],
      outputs: ['frames/{index}.exr'],
      resources: { cpu: 2, memory: '4GiB' },
      checkpoint: { signal: 'SIGUSR1', grace: '30s' },
      expectedRuntime: '12m',
    },
    { name: 'film', dependsOn: 'frames', command: './join frames film.mp4', resources: { cpu: 4, memory: '8GiB' } },
  ],
};

export const batchExample = {
  jobs: [
    { name: 'fetch', workdir: '/srv/etl', command: './fetch', resources: { cpu: 1, memory: '1GiB' } },
    { name: 'load', after: 'fetch', workdir: '/srv/etl', command: './load', deadline: '2h' },
  ],
};
