import type { JobSpec } from '../job.ts';
import { normalise, type NormaliseOptions } from './normalise.ts';
import { readText, type TextOptions } from './text.ts';

export interface ParseOptions extends TextOptions {
  /** Folder of the job file, absolute: what relative working directories are relative to. */
  readonly baseDir: string;
  /** Owner where the file names none. */
  readonly defaultOwner: string;
}

/**
 * A job file (YAML or JSON) to what the scheduler works with. Pure. Throws EbbError only, with every finding at once, each
 * with its place (`file:line:column path`): `job-file.syntax`, `body-too-large`, and the codes of `normaliseJob`.
 */
export function parseJobFile(text: string, options: ParseOptions): JobSpec {
  const { json, locate } = readText(text, options);
  return normalise(json, options, locate);
}

/**
 * The same from data, as the API gets it. Throws EbbError only: `job-file.invalid`, `job-file.dependency`,
 * `job-file.cycle`, `job.not-in-version`, each finding with its path.
 */
export const normaliseJob = (json: unknown, options: NormaliseOptions): JobSpec => normalise(json, options, () => null);

export type { NormaliseOptions } from './normalise.ts';
export { expandIndex } from './index-expansion.ts';
export { jobFileJsonSchema } from './schema.ts';
