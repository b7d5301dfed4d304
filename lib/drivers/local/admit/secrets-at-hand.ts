import { join } from 'node:path';
import type { JobSpec } from '../../../domain/job.ts';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { SECRET_VARIABLE, SecretFault, secretValue } from '../fleet/secrets.ts';

/** Refuses a job whose secrets could not be given to its tasks. Throws `job.secret-missing` with every finding. */
export function refuseMissingSecrets(spec: JobSpec, dir: string): void {
  const issues: Issue[] = [];
  for (const stage of spec.stages) {
    for (const [variable, ref] of Object.entries(stage.secrets ?? {})) {
      try {
        secretValue(dir, ref, process.env);
      } catch (error) {
        if (!(error instanceof SecretFault)) throw error;
        issues.push({ at: `stages.${stage.name}.secrets.${variable}`, message: error.message });
      }
    }
  }
  const [first] = issues;
  if (first === undefined) return;
  throw new EbbError('job.secret-missing', {
    what: issues.length === 1 ? first.message : `${issues.length} secrets of the job cannot be read`,
    ...(issues.length === 1 ? { at: first.at } : {}),
    issues: issues.slice(0, 50),
    allowed: `files of mode 600 in ${join(dir, 'secrets')}, or ${SECRET_VARIABLE}* in the environment of the engine`,
    next: 'docs/secrets.md says how to make one',
  });
}
