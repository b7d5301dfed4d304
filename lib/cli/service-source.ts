import type { ApplyAnswer } from '../api/services/schemas.ts';
import type { SubmitAnswer } from '../api/schemas.ts';
import type { Client } from './client.ts';
import type { Output } from './output.ts';
import { text } from './views/text-table.ts';
import { namingFile, readJobSources, type From, type JobSource } from './job-source.ts';
import { routes } from './routes.ts';

/** Services from files that must all be valid. */
export async function readServiceSources(
  paths: readonly string[],
  from: Pick<From, 'cwd' | 'stdin'>,
): Promise<readonly JobSource[]> {
  return readJobSources(paths, { ...from, as: 'services' });
}

/** Jobs and services of files that were named when an engine began. */
export async function beginAll(
  engine: Client,
  sources: readonly JobSource[],
  output: Pick<Output, 'note'>,
): Promise<void> {
  for (const source of sources) {
    if (source.kind === 'service') output.note(appliedText(await applyOne(engine, source)));
    else {
      const post = (): Promise<SubmitAnswer> => engine.post<SubmitAnswer>(routes.jobs, { bodyText: source.text });
      const { job } = await namingFile(source.label, post);
      output.note(`${text(job.name)} (${job.id}) is submitted`);
    }
  }
}

export function appliedText({ outcome, service }: ApplyAnswer): string {
  const at = service.url === null ? '' : ` at ${service.url}`;
  const name = text(service.name);
  if (outcome === 'unchanged') return `${name} is as the file says already (revision ${service.revision})${at}`;
  const does = outcome === 'created' ? 'begins' : `is updated to revision ${service.revision}`;
  return `${name} ${does}${at}; follow it with \`ebb service watch ${name}\``;
}

export const applyOne = (engine: Client, source: JobSource): Promise<ApplyAnswer> =>
  namingFile(source.label, () => engine.post<ApplyAnswer>(routes.services, { bodyText: source.text }));
