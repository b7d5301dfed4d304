/** Job files as request bodies: checked by the schema that job files on disk have, and examples of them. */
import { EbbError } from '../kernel/errors.ts';
import type { JobSpec } from '../domain/job.ts';
// Not job-file.ts: it reads YAML, which is half of what a function that takes jobs would load.
import { normalise, type NormaliseOptions } from '../domain/job-file/normalise.ts';
import { jobFileSchema } from '../domain/job-file/schema.ts';
import { unusableTexts } from './text-check.ts';

/**
 * A job file whose working directories are absolute or left out: a request has no folder that others could be relative
 * to.
 */
export const jobFileBody = jobFileSchema.meta({ id: 'JobFile' });

/** Where a backend does not say who submits and from where. */
export const UNKNOWN_SUBMITTER: NormaliseOptions = { defaultOwner: 'anonymous', baseDir: null };

/** Throws `job-file.*` or `job.not-in-version` with every finding. `source` is the text that `json` came from. */
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
