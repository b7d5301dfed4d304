import type { SubmitAnswer } from '../../api/schemas.ts';
import type { Client } from '../client.ts';
import type { SubmitOptions } from '../commands/jobs.ts';
import type { Action } from '../context.ts';
import { namingFile, readJobSource, type JobSource } from '../job-source.ts';
import { json, type Output } from '../output.ts';
import { routes } from '../routes.ts';
import { text } from '../views/table.ts';

export const submit: Action<SubmitOptions> = async ({ world, output, json: asJson, client }, files, options) => {
  // All files are read before the first is sent: a typing error in the second must not leave the first running.
  const sources: JobSource[] = [];
  for (const file of files) sources.push(await readJobSource(file, world.cwd, world.stdin));
  const engine = await client();
  const answers: SubmitAnswer[] = [];
  for (const [i, source] of sources.entries()) {
    const key = options.key === undefined || sources.length === 1 ? options.key : `${options.key}/${i}`;
    answers.push(await submitOne(engine, source, key));
  }
  if (asJson) {
    json(output, answers.length === 1 ? answers[0] : answers);
    return;
  }
  for (const answer of answers) report(output, answer);
};

/** Problems of the job file are reported with the file's name before their place. */
export const submitOne = (engine: Client, source: JobSource, key: string | undefined): Promise<SubmitAnswer> =>
  namingFile(source.label, () =>
    engine.post<SubmitAnswer>(routes.jobs, {
      body: source.document,
      headers: key === undefined ? {} : { 'idempotency-key': key },
    }),
  );

function report(output: Output, { outcome, job, admission }: SubmitAnswer): void {
  const { colors } = output;
  const verb = outcome === 'created' ? 'submitted' : 'was submitted before';
  output.line(`${colors.green('✓')} ${text(job.name)} ${verb}: ${colors.bold(job.id)}`);
  for (const note of admission.notes) output.note(`  ${admission.feasible ? '' : colors.yellow('warning: ')}${note}`);
}
