import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { raw } from '../../../lib/kernel/units.ts';
import type { Workload, WorkloadJob, WorkloadReport } from '../../../lib/workload/workload.ts';
import { openWorkload } from '../../../lib/workload/open.ts';
import type { WorkloadOptions } from '../../../lib/workload/options.ts';

export const fixture = (name: string): string =>
  join(import.meta.dirname, '../../fixtures/workloads', ...name.split('/'));

export interface Collected {
  readonly workload: Workload;
  readonly jobs: readonly WorkloadJob[];
  readonly report: WorkloadReport;
}

export async function collect(path: string, options: WorkloadOptions = {}): Promise<Collected> {
  const workload = await openWorkload(path, options);
  const jobs: WorkloadJob[] = [];
  for await (const job of workload.jobs()) jobs.push(job);
  return { workload, jobs, report: workload.report() };
}

/** Writes contents to a file of that name in a folder of its own. */
export function written(name: string, contents: string | Buffer): string {
  const path = join(mkdtempSync(join(tmpdir(), 'ebb-workload-')), name);
  writeFileSync(path, contents);
  return path;
}

export async function refused(work: Promise<unknown>): Promise<EbbError> {
  const error: unknown = await work.then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(EbbError);
  return error as EbbError;
}

/** Running times by stage, as plain numbers. */
export const runtimes = (job: WorkloadJob | undefined): Record<string, number[]> =>
  Object.fromEntries([...(job?.truth ?? [])].map(([stage, t]) => [stage, [...t.runtimeS]]));

export const dropped = (report: WorkloadReport): Record<string, number> => Object.fromEntries(report.dropped);
export const adjusted = (report: WorkloadReport): Record<string, number> => Object.fromEntries(report.adjusted);
export const badLines = (report: WorkloadReport): number[] => report.bad.first.map((b) => b.line);

/** Seconds from submission to deadline; null for best-effort. */
export function deadlineS(job: WorkloadJob): number | null {
  const { deadline } = job.spec;
  return deadline === null || !('afterS' in deadline) ? null : raw(deadline.afterS);
}
