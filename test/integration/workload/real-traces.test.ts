import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { templateOf } from '../../../lib/domain/job-features.ts';
import { raw } from '../../../lib/kernel/units.ts';
import type { JobSpec } from '../../../lib/domain/job.ts';
import { openWorkload } from '../../../lib/workload/open.ts';
import type { WorkloadJob, WorkloadReport } from '../../../lib/workload/workload.ts';
import { dropped } from '../../unit/workload/collect.ts';

/** Totals here are those that the sources publish, not what the readers happened to find. */

const data = process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../../../shared/data');

function onTrace(folder: string, name: string, test: (path: string) => Promise<void>): void {
  const path = join(data, folder);
  const present = existsSync(path);
  if (!present) console.warn(`skipped: no ${path} (set EBB_DATA_DIR)`);
  (present ? it : it.skip)(`${folder}: ${name}`, () => test(path), 300_000);
}

const sum = (counts: Record<string, number>, pattern: RegExp): number =>
  Object.entries(counts).reduce((n, [why, count]) => (pattern.test(why) ? n + count : n), 0);
const quantile = (sorted: Float64Array, p: number): number => sorted[Math.floor(p * sorted.length)] ?? NaN;
const tasksOf = (spec: JobSpec): number => spec.stages.reduce((n, s) => n + s.tasks, 0);
const hasDependencies = (spec: JobSpec): boolean => spec.stages.some((s) => s.dependsOn.length > 0);

/** A job at a time, as a simulation takes them: whole traces are not kept. */
async function visit(path: string, see: (job: WorkloadJob) => void): Promise<WorkloadReport & { format: string }> {
  const workload = await openWorkload(path, { deadlines: 'none' });
  for await (const job of workload.jobs()) see(job);
  return { ...workload.report(), format: workload.format };
}

describe('real traces', () => {
  onTrace('google-2011', 'attempts fold to 469,680 tasks of 15,185 jobs within 19.6 hours', async (path) => {
    const templates = new Set<string>();
    let [small, named, lastS] = [0, 0, 0];
    const report = await visit(path, ({ spec, submittedS }) => {
      templates.add(templateOf(spec));
      if (tasksOf(spec) < 10) small++;
      if (spec.owner.startsWith('user-')) named++;
      lastS = submittedS;
    });
    const left = dropped(report);
    expect([report.format, report.bad.count]).toEqual(['google-2011', 0]);
    expect(report.jobs + sum(left, /^job/)).toBe(15_185);
    expect(report.tasks + sum(left, /^task/)).toBe(469_680);
    // Of 320,467 FINISH events the tasks that finish again give one each.
    expect(report.tasks).toBeLessThan(320_467);
    expect(lastS).toBeLessThanOrEqual(70_756 - 600);
    // The table of jobs lies beside it: every user is known, templates recur.
    expect(named).toBe(report.jobs);
    expect(templates.size).toBeLessThan(report.jobs / 2);
    // Three of four jobs have fewer than 10 tasks (Stratus section 3.3.1, of this trace).
    expect(small / report.jobs).toBeGreaterThan(0.75);
  });

  onTrace('google-2011/jobs.csv.gz', '385,582 of 672,074 jobs finish, running times as published', async (path) => {
    const times: number[] = [];
    const report = await visit(path, (job) => times.push(job.truth.get('main')?.runtimeS[0] ?? NaN));
    const left = dropped(report);
    expect(report.bad.count).toBe(0);
    expect(report.jobs + sum(left, /./)).toBe(672_074);
    // Those that ended, but were there before the trace began, are among neither.
    const before = left['job submitted before the trace begins'] ?? 0;
    expect(report.jobs).toBeLessThanOrEqual(385_582);
    expect(report.jobs).toBeGreaterThan(385_582 - before);
    expect(left['job ended by KILL']).toBeLessThanOrEqual(272_341);
    expect(left['job ended by KILL']).toBeGreaterThan(272_341 - before);
    const sorted = Float64Array.from(times).sort();
    expect([0.1, 0.5, 0.9].map((p) => Math.round(quantile(sorted, p)))).toEqual([23, 109, 1058]);
    expect(Math.abs(quantile(sorted, 0.99) - 10_337)).toBeLessThan(103);
  });

  onTrace('facebook-2010', '24,442 jobs of one day', async (path) => {
    let lastS = 0;
    const report = await visit(path, (job) => (lastS = job.submittedS));
    expect([report.format, report.jobs, report.bad.count]).toEqual(['facebook-2010', 24_442, 0]);
    expect(lastS).toBeLessThanOrEqual(86_400);
  });

  onTrace('alibaba-gpu-2023', '8,152 pods of 149 days', async (path) => {
    let [lastS, gpus] = [0, 0];
    const report = await visit(path, ({ spec, submittedS }) => {
      lastS = submittedS;
      gpus = Math.max(gpus, spec.stages[0]?.resources.gpus ?? 0);
    });
    // The list of nodes beside the pods is no workload.
    expect([report.format, report.bad.count]).toEqual(['alibaba-gpu-2023', 0]);
    expect(report.jobs + sum(dropped(report), /./)).toBe(8_152);
    expect(lastS / 86_400).toBeLessThan(149);
    expect(gpus).toBe(8);
  });

  onTrace('alibaba-2018-dags', '6,600 jobs, 4,266 of them with dependencies, at most 72 stages', async (path) => {
    let [dags, stages, lastS] = [0, 0, 0];
    const report = await visit(path, ({ spec, submittedS }) => {
      if (hasDependencies(spec)) dags++;
      // Parts of a stage of too many tasks are one.
      stages = Math.max(stages, spec.stages.filter((s) => !/-\d+$/.test(s.name)).length);
      lastS = submittedS;
    });
    const left = sum(dropped(report), /./);
    expect([report.jobs + left, report.bad.count]).toEqual([6_600, 0]);
    expect(dags).toBeLessThanOrEqual(4_266);
    expect(dags).toBeGreaterThanOrEqual(4_266 - left);
    expect(stages).toBe(72);
    expect(lastS).toBeLessThanOrEqual(698_661);
  });

  onTrace('tpch-spark-dags', '154 queries of 22 kinds with 1,414 stages', async (path) => {
    const templates = new Set<string>();
    let stages = 0;
    const report = await visit(path, ({ spec }) => {
      templates.add(templateOf(spec));
      stages += spec.stages.length;
    });
    expect([report.jobs, report.bad.count, stages, templates.size]).toEqual([154, 0, 1_414, 22]);
  });

  onTrace('workflow-instances', '128 executed workflows within the limits of a job', async (path) => {
    let [largest, stages, memoryMiB] = [0, 0, 0];
    const report = await visit(path, ({ spec }) => {
      largest = Math.max(largest, tasksOf(spec));
      stages = Math.max(stages, spec.stages.length);
      memoryMiB = Math.max(memoryMiB, ...spec.stages.map((s) => raw(s.resources.memory)));
    });
    expect([report.jobs, report.bad.count]).toEqual([128, 0]);
    // The largest workflow of the source has 2,122 tasks.
    expect(largest).toBeLessThanOrEqual(2_122);
    expect(largest).toBeGreaterThan(1_000);
    expect(stages).toBeLessThanOrEqual(100);
    // No machine there had more: bytes taken as KiB would be a thousand times as much.
    expect(memoryMiB).toBeLessThan(64 * 1024);
  });
});
