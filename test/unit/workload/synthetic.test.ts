import { beforeAll, describe, expect, it } from '@jest/globals';
import { templateOf } from '../../../lib/domain/job-features.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { collect, runtimes } from './collect.ts';

/** What the generator promises, on jobs enough to see it: bounds are 4 standard errors where a share is compared. */
describe('the synthetic workload', () => {
  const N = 20_000;
  let jobs: readonly WorkloadJob[] = [];
  beforeAll(async () => {
    const settings = `jobs=${N},perHour=600,dailyCycle=0.8,templates=2000,recurring=0.9,dags=0.3,maxTasks=1000`;
    jobs = (await collect(`synthetic:${settings}`, { deadlines: 'none' })).jobs;
  });

  it('arrives at the rate asked for, following the day', () => {
    const hours = (jobs.at(-1)?.submittedS ?? 0) / 3600;
    // 33 hours of which the first 24 are a whole cycle: the mean rate over a day is the one asked for.
    const day = jobs.filter((j) => j.submittedS < 86_400).length;
    expect(hours).toBeGreaterThan(24);
    expect(Math.abs(day - 14_400)).toBeLessThan(4 * Math.sqrt(14_400));
    const at = (hour: number) =>
      jobs.filter((j) => j.submittedS >= (hour - 1) * 3600 && j.submittedS < (hour + 1) * 3600).length;
    // Noon to early morning: (1 + 0.8) / (1 - 0.8) = 9, over two hours each a little less.
    expect(at(12) / at(1)).toBeGreaterThan(5);
  });

  it('recurs: a few templates make most of the runs', () => {
    const counts = new Map<string, number>();
    for (const job of jobs) counts.set(templateOf(job.spec), (counts.get(templateOf(job.spec)) ?? 0) + 1);
    const ordered = [...counts.values()].sort((a, b) => b - a);
    const once = ordered.filter((n) => n === 1).length;
    // A tenth of the jobs are one-off; some rare templates also come once.
    expect(once).toBeGreaterThan(0.09 * N);
    // The most popular of 2,000 templates has 1 / H(2000) = 12.2 % of the recurring runs.
    expect(Math.abs((ordered[0] ?? 0) / (0.9 * N) - 0.122)).toBeLessThan(0.01);
  });

  it('is heavy-tailed in tasks and running times, as the trace that it is fitted to', () => {
    // One run of each template, so that popular ones do not count often.
    const single = [...new Map(jobs.map((j) => [templateOf(j.spec), j])).values()].filter(
      (j) => j.spec.stages.length === 1,
    );
    const small = single.filter((j) => (j.spec.stages[0]?.tasks ?? 0) < 10).length / single.length;
    expect(single.length).toBeGreaterThan(2000);
    // Three of four have fewer than 10 tasks (1 - 10^-0.6 = 0.749).
    expect(Math.abs(small - 0.749)).toBeLessThan(4 * Math.sqrt((0.75 * 0.25) / single.length));
    const medians = single
      .map((j) => {
        const times = (Object.values(runtimes(j))[0] ?? []).toSorted((a, b) => a - b);
        return times[Math.floor(times.length / 2)] ?? NaN;
      })
      .sort((a, b) => a - b);
    const quantile = (p: number) => medians[Math.floor(p * medians.length)] ?? NaN;
    // 109 s in the middle; lognormal sigma 1.8 puts the 90 % point at 109 exp(1.8 x 1.2816) = 1,095 s.
    expect(quantile(0.5)).toBeGreaterThan(95);
    expect(quantile(0.5)).toBeLessThan(125);
    expect(quantile(0.9)).toBeGreaterThan(900);
    expect(quantile(0.9)).toBeLessThan(1350);
  });

  it('has DAGs of several shapes', () => {
    const templates = [...new Map(jobs.map((j) => [templateOf(j.spec), j])).values()];
    const dags = templates.filter((j) => j.spec.stages.length > 1);
    expect(Math.abs(dags.length / templates.length - 0.3)).toBeLessThan(4 * Math.sqrt(0.21 / templates.length));
    const shapes = new Set(dags.map((j) => JSON.stringify(j.spec.stages.map((s) => s.dependsOn))));
    expect(shapes.size).toBe(4);
  });
});
