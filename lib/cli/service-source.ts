import type { ApplyAnswer } from '../api/services/schemas.ts';
import type { Client } from './client.ts';
import { namingFile, readJobSources, type From, type JobSource } from './job-source.ts';
import { routes } from './routes.ts';

/** Services from files that must all be valid. */
export async function readServiceSources(
  paths: readonly string[],
  from: Pick<From, 'cwd' | 'stdin'>,
): Promise<readonly JobSource[]> {
  return readJobSources(paths, { ...from, as: 'services' });
}

export const applyOne = (engine: Client, source: JobSource): Promise<ApplyAnswer> =>
  namingFile(source.label, () => engine.post<ApplyAnswer>(routes.services, { bodyText: source.text }));
