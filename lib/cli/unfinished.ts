import type { HealthView, JobList, JobSummary } from '../api/schemas.ts';
import type { ServiceListView } from '../api/services/schemas.ts';
import type { Client } from './client.ts';
import { plural, shellWord } from './format.ts';
import { routes } from './routes.ts';

/** Unfinished jobs of the directory, at most 1000, without replicas of services. */
export async function unfinishedJobs(client: Client): Promise<readonly JobSummary[]> {
  const open = await client.get<JobList>(routes.jobs, { state: ['pending', 'running', 'held'], limit: 1000 });
  return open.items.filter((job) => job.class !== 'service');
}

/** Names of the services of the directory. */
export async function servicesThere(client: Client): Promise<readonly string[]> {
  return (await client.get<ServiceListView>(routes.services)).items.map((s) => s.name);
}

/** `2 jobs`, `1 service`, or both. */
export const amountText = (jobs: number, services: number): string =>
  [
    ...(jobs > 0 || services === 0 ? [plural(jobs, 'job')] : []),
    ...(services > 0 ? [plural(services, 'service')] : []),
  ].join(' and ');

/** `going on with 2 jobs of .ebb on market calm, 60 times as fast`, with the values of the directory. */
export async function goingOn(client: Client, what: string, dir: string): Promise<string> {
  const { market } = await client.get<HealthView>(routes.health);
  const speed = market.speed === 1 ? 'as fast as the clock' : `${market.speed} times as fast as the clock`;
  return `going on with ${what} of ${dir} on market ${market.name}, ${speed}`;
}

/** Command that resumes; the directory has all other options. A launcher with another name sets EBB_RESUME_COMMAND. */
export const resumeCommand = (dir: string, env: Readonly<Record<string, string | undefined>>): string =>
  env['EBB_RESUME_COMMAND'] ?? `ebb run --resume${dir === '.ebb' ? '' : ` --dir ${shellWord(dir)}`}`;
