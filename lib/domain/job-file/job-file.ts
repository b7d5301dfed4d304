import type { JobSpec } from '../job.ts';
import { EbbError } from '../../kernel/errors.ts';
import { normalise, type NormaliseOptions } from './normalise.ts';
import { readDocuments, type TextDocument, type TextOptions } from './text.ts';

export interface ParseOptions extends TextOptions {
  /** Folder of the job file, absolute; relative working directories start here. */
  readonly baseDir: string;
  /** Owner where the file names none. */
  readonly defaultOwner: string;
}

/**
 * The jobs of a job file (YAML, where several documents are several jobs, or JSON), at least one. Pure. Throws EbbError
 * only, with every finding at once, each with its place (`file:line:column path`): `job-file.syntax`, `body-too-large`,
 * and the codes of `normaliseJob`.
 */
export function parseJobs(text: string, options: ParseOptions): readonly JobSpec[] {
  return readDocuments(text, options).map((document) => normaliseLocated(document, options));
}

/** Job of one document. */
export const normaliseLocated = ({ json, locate }: TextDocument, options: NormaliseOptions): JobSpec =>
  normalise(json, options, locate);

/** The same of a file that holds one job. Throws `job-file.syntax` where it holds several. */
export function parseJobFile(text: string, options: ParseOptions): JobSpec {
  const [job, ...more] = parseJobs(text, options);
  if (job !== undefined && more.length === 0) return job;
  throw new EbbError('job-file.syntax', {
    what: 'the file holds several jobs where one is expected',
    at: options.path,
    got: `${more.length + 1} documents`,
    allowed: 'one document',
  });
}

/**
 * The same from data, as the API gets it. Throws EbbError only: `job-file.invalid`, `job-file.dependency`,
 * `job-file.cycle`, `job.not-in-version`, each finding with its path.
 */
export const normaliseJob = (json: unknown, options: NormaliseOptions): JobSpec => normalise(json, options, () => null);

export type { NormaliseOptions } from './normalise.ts';
export { expandIndex } from './index-expansion.ts';
export { jobFileJsonSchema } from './schema.ts';
