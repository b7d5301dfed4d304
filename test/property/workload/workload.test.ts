import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { normaliseJob } from '../../../lib/domain/job-file/job-file.ts';
import { templateOf } from '../../../lib/domain/job-features.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import type { WorkloadOptions } from '../../../lib/workload/options.ts';
import { collect, deadlineS, written, type Collected } from '../../unit/workload/collect.ts';
import { asJobFile } from './job-file-form.ts';

const RUNS = { seed: 20261121, numRuns: 25 };
/** Jobs that the properties have seen: generators whose jobs are all left out would prove nothing. */
let seen = 0;

/** What holds for every workload whatsoever. */
function expectSound({ jobs, report }: Collected): void {
  let lastS = 0;
  for (const { key, submittedS, spec, truth } of jobs) {
    expect(submittedS).toBeGreaterThanOrEqual(lastS);
    lastS = submittedS;
    const again = normaliseJob(asJobFile(spec), { baseDir: null, defaultOwner: 'nobody' });
    expect({ key, ...again }).toEqual({ key, ...spec });
    expect([...truth.keys()].sort()).toEqual(spec.stages.map((s) => s.name).sort());
    for (const stage of spec.stages) {
      const { runtimeS, failures } = truth.get(stage.name) ?? { runtimeS: new Float64Array() };
      expect(runtimeS).toHaveLength(stage.tasks);
      expect(runtimeS.every((s) => Number.isFinite(s) && s > 0)).toBe(true);
      expect(failures?.length ?? stage.tasks).toBe(stage.tasks);
      expect(Math.max(0, ...(failures ?? []))).toBeLessThanOrEqual(stage.retries);
    }
  }
  expect(new Set(jobs.map((j) => j.key)).size).toBe(jobs.length);
  expect(report.jobs).toBe(jobs.length);
  expect(report.tasks).toBe(jobs.reduce((n, j) => n + j.spec.stages.reduce((m, s) => m + s.tasks, 0), 0));
  seen += jobs.length;
}

/** The same, or null for a workload of which nothing can be used. */
async function collectAny(path: string, options: WorkloadOptions = {}): Promise<Collected | null> {
  try {
    return await collect(path, options);
  } catch (error) {
    expect(error).toMatchObject({ code: 'workload.invalid' });
    return null;
  }
}

const integer = (min: number, max: number) => fc.integer({ min, max });
/** Mostly a sensible number, at times what no number should be. */
const cell = (sensible: fc.Arbitrary<number | string>) =>
  fc.oneof(
    { weight: 40, arbitrary: sensible.map(String) },
    { weight: 1, arbitrary: fc.constantFrom('', '-1', 'NaN', '1e400', '0x10', 'x', '99999999999999999999', ' 7 ') },
  );
const options = fc.record(
  {
    seed: integer(-5, 5),
    unfinished: fc.constantFrom('drop', 'as-run'),
    checkpointEveryS: integer(1, 1000),
    deadlines: fc.record(
      {
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        slackPercents: fc.array(integer(0, 300), { minLength: 1, maxLength: 4 }),
        by: fc.constantFrom('seeded', 'recurring'),
        startDelayS: integer(0, 1000),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<WorkloadOptions>;

describe('every workload is sound, whatever is in the file', () => {
  it('Standard Workload Format', async () => {
    const line = fc
      .tuple(
        ...Array.from({ length: 18 }, (_, i) =>
          i === 1 ? integer(0, 5) : i === 3 ? integer(0, 5000) : i === 4 ? integer(-1, 30) : integer(-1, 10),
        ).map(cell),
      )
      .map((cells) => cells.join(' '));
    const log = fc.array(line, { minLength: 1, maxLength: 25 }).map((lines) => {
      let atS = 0;
      return lines.map((l, i) => l.replace(/^\S* *(\S*)/, (_, gap: string) => `${i} ${(atS += Number(gap) || 0)}`));
    });
    await fc.assert(
      fc.asyncProperty(log, options, async (lines, o) => {
        const found = await collectAny(written('log.swf', `; a log\n${lines.join('\n')}\n`), { ...o, format: 'swf' });
        if (found !== null) expectSound(found);
      }),
      RUNS,
    );
    expect(seen).toBeGreaterThan(RUNS.numRuns);
  });

  it('google-2011: each task is handed out, dropped, or on bad lines only', async () => {
    const before = seen;
    const row = fc.record({
      job: cell(integer(1, 6)),
      task: cell(integer(0, 4)),
      gap: integer(0, 100),
      wait: integer(-1, 50),
      ran: integer(-1, 500),
      end: fc.constantFrom('FINISH', 'FINISH', 'FINISH', 'KILL', 'FAIL', 'EVICT', 'LOST', '', 'ODD'),
      cpu: cell(fc.constantFrom(0, 0.006248, 0.5, 1)),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 60 }), options, async (rows, o) => {
        let atS = 600;
        const attempts = new Map<string, number>();
        const lines = rows.map((r) => {
          atS += r.gap;
          const task = `${r.job}/${r.task}`;
          const attempt = (attempts.get(task) ?? 0) + 1;
          attempts.set(task, attempt);
          const start = r.wait < 0 ? '' : String(atS + r.wait);
          const end = r.wait < 0 || r.end === '' ? '' : String(atS + r.wait + r.ran);
          return [r.job, r.task, attempt, atS, start, end, r.end, 1, 9, r.cpu, 0.1, 0, 1].join(',');
        });
        const header =
          'job_id,task_index,attempt,submit_s,schedule_s,end_s,end_event,sched_class,priority,cpu_req,mem_req,disk_req,machine';
        const found = await collectAny(written('attempts.csv', `${header}\n${lines.join('\n')}\n`), o);
        if (found === null) return;
        expectSound(found);
        const onlyBad =
          attempts.size - found.report.tasks - (found.report.dropped.get('task that did not finish') ?? 0);
        expect(onlyBad).toBeGreaterThanOrEqual(0);
        expect(onlyBad).toBeLessThanOrEqual(found.report.bad.count);
      }),
      RUNS,
    );
    expect(seen - before).toBeGreaterThan(RUNS.numRuns);
  });

  it('alibaba-2018-dags', async () => {
    const before = seen;
    const name = fc.oneof(
      fc
        .tuple(fc.constantFrom('M', 'R', 'J'), integer(1, 5), fc.array(integer(1, 6), { maxLength: 2 }))
        .map(([type, number, parents]) => [type + number, ...parents].join('_')),
      fc.constantFrom('task_a=', 'MergeTask', 'M1_Stg2'),
    );
    const row = fc.record({
      job: integer(1, 12),
      name,
      instances: cell(fc.oneof(integer(1, 5), fc.constant(10_001))),
      status: fc.constantFrom(
        'Terminated',
        'Terminated',
        'Terminated',
        'Terminated',
        'Terminated',
        'Failed',
        'Waiting',
      ),
      start: integer(1, 1000),
      ran: integer(-1, 100),
      mean: cell(integer(0, 100)),
      cpu: cell(integer(0, 200)),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 40 }), options, async (rows, o) => {
        const lines = rows.map((r) =>
          [`j_${r.job}`, r.name, r.instances, r.status, r.start, r.start + r.ran, r.mean, r.cpu, 0.3].join(','),
        );
        const header = 'job_name,task_name,instance_num,status,start_s,end_s,mean_instance_s,plan_cpu_pct,plan_mem\n';
        const found = await collectAny(written('dags.csv', header + lines.join('\n')), o);
        if (found !== null) expectSound(found);
      }),
      RUNS,
    );
    expect(seen - before).toBeGreaterThan(RUNS.numRuns);
  });

  it('workflows of any shape: no task is lost, and no task starts before what it waits for', async () => {
    const before = seen;
    const task = fc.record({
      n: fc.constantFrom('split_1', 'split_2', 'merge_77', 'x', '(!)', `${'long'.repeat(30)}_3`),
      rt: integer(0, 100),
      p: fc.array(integer(0, 60), { maxLength: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(task, { minLength: 1, maxLength: 60 }), options, async (tasks, o) => {
        // Parents are earlier tasks: acyclic.
        const acyclic = tasks.map((t, i) => ({ ...t, p: i === 0 ? [] : t.p.map((p) => p % i) }));
        const text = JSON.stringify({ path: 'a/b-001.json', wms: 'Any', tasks: acyclic });
        const found = await collect(written('w.jsonl', text), {
          ...o,
          format: 'workflow-instances',
        });
        expectSound(found);
        const [job] = found.jobs;
        expect(found.report.tasks).toBe(tasks.length);
        // A stage's end, all tasks at once, is no earlier than the end of the longest path of tasks.
        const ends: number[] = [];
        acyclic.forEach((t, i) => ends.push(Math.max(0, ...t.p.map((p) => ends[p] ?? 0)) + acyclic[i]!.rt));
        expect(longestS(job!)).toBeGreaterThanOrEqual(Math.max(...ends) - 1e-9);
      }),
      RUNS,
    );
    expect(seen - before).toBe(RUNS.numRuns);
  });

  it('synthetic, with any settings', async () => {
    const settings = fc.record(
      {
        jobs: integer(1, 40),
        seed: integer(0, 9),
        perHour: integer(1, 10_000),
        dailyCycle: fc.double({ min: 0, max: 1, noNaN: true }),
        templates: integer(1, 20),
        recurring: fc.double({ min: 0, max: 1, noNaN: true }),
        medianRuntimeS: integer(1, 10_000),
        runtimeSigma: fc.double({ min: 0, max: 3, noNaN: true }),
        taskTail: fc.double({ min: 0.2, max: 3, noNaN: true }),
        maxTasks: integer(1, 300),
        dags: fc.double({ min: 0, max: 1, noNaN: true }),
      },
      { requiredKeys: ['jobs'] },
    );
    await fc.assert(
      fc.asyncProperty(settings, options, async (s, o) => {
        const path = `synthetic:${Object.entries(s)
          .map(([k, v]) => `${k}=${v}`)
          .join(',')}`;
        const found = await collect(path, o);
        expectSound(found);
        expect(found.jobs).toHaveLength(s.jobs);
        // Same seed, same workload.
        expect((await collect(path, o)).jobs).toEqual(found.jobs);
      }),
      RUNS,
    );
  });
});

/** Longest path by trying every one: stages of these jobs are few. Each stage takes its slowest task and `delayS`. */
function longestS({ spec, truth }: WorkloadJob, delayS = 0): number {
  const byName = new Map(spec.stages.map((s) => [s.name, s]));
  const ends = new Map<string, number>();
  const endS = (name: string): number => {
    const known = ends.get(name);
    if (known !== undefined) return known;
    const startS = (byName.get(name)?.dependsOn ?? []).reduce((most, d) => Math.max(most, endS(d)), 0);
    const { runtimeS, failures } = truth.get(name) ?? { runtimeS: new Float64Array() };
    const slowestS = [...runtimeS].reduce((most, s, i) => Math.max(most, s * ((failures?.[i] ?? 0) + 1)), 0);
    ends.set(name, startS + delayS + slowestS);
    return startS + delayS + slowestS;
  };
  return Math.max(...[...byName.keys()].map(endS));
}

describe('deadlines', () => {
  it('are the longest path, its starts, and one of the slacks', async () => {
    let deadlines = 0;
    await fc.assert(
      fc.asyncProperty(
        integer(0, 50),
        integer(0, 500),
        fc.array(integer(0, 400), { minLength: 1, maxLength: 3 }),
        async (seed, startDelayS, slackPercents) => {
          const rule = { share: 0.7, startDelayS, slackPercents };
          const { jobs } = await collect('synthetic:jobs=20,dags=0.7,maxTasks=20', { seed, deadlines: rule });
          for (const job of jobs) {
            const afterS = deadlineS(job);
            expect(job.spec.class).toBe(afterS === null ? 'best-effort' : 'deadline');
            if (afterS === null) continue;
            deadlines++;
            const possible = slackPercents.map((p) => longestS(job, startDelayS) + (longestS(job) * p) / 100);
            expect(Math.min(...possible.map((p) => Math.abs(p - afterS) / afterS))).toBeLessThan(1e-9);
          }
        },
      ),
      RUNS,
    );
    expect(deadlines).toBeGreaterThan(300);
  });

  it('are given to the share of the jobs that is asked for, each slack as often', async () => {
    const { jobs } = await collect('synthetic:jobs=4000,maxTasks=1,dags=0', {
      deadlines: { share: 0.3, slackPercents: [0, 100], startDelayS: 0 },
    });
    const slacks = jobs.flatMap((job) => {
      const afterS = deadlineS(job);
      return afterS === null ? [] : [Math.round((afterS / longestS(job) - 1) * 100)];
    });
    // Within 4 standard errors: sqrt(0.3 x 0.7 / 4000) = 0.0072, and sqrt(0.25 / 1200) = 0.0144.
    expect(Math.abs(slacks.length / 4000 - 0.3)).toBeLessThan(0.029);
    expect(Math.abs(slacks.filter((s) => s === 100).length / slacks.length - 0.5)).toBeLessThan(0.058);
  });

  it('by template: all runs of one are alike', async () => {
    const { jobs } = await collect('synthetic:jobs=500,templates=30,recurring=1,maxTasks=1,dags=0', {
      deadlines: { by: 'recurring', startDelayS: 0, share: 0.5 },
    });
    const byTemplate = new Map<string, Set<number | null>>();
    for (const job of jobs) {
      const afterS = deadlineS(job);
      const slack = afterS === null ? null : Math.round((afterS / longestS(job) - 1) * 100);
      const template = templateOf(job.spec);
      byTemplate.set(template, (byTemplate.get(template) ?? new Set()).add(slack));
    }
    expect(byTemplate.size).toBeGreaterThan(20);
    expect([...byTemplate.values()].every((slacks) => slacks.size === 1)).toBe(true);
    // Several slacks and best-effort ones are among them.
    expect(new Set([...byTemplate.values()].flatMap((s) => [...s])).size).toBeGreaterThanOrEqual(4);
  });
});

describe('windows and scales', () => {
  const path = 'synthetic:jobs=400,perHour=400,maxTasks=5';
  const shifted = (jobs: readonly WorkloadJob[], byS: number) =>
    jobs.map((j) => ({ ...j, submittedS: Math.round((j.submittedS + byS) * 1e6) / 1e6 }));

  it('a window has the jobs of the whole that were submitted in it, unchanged', async () => {
    const { jobs: all } = await collect(path);
    let inside = 0;
    await fc.assert(
      fc.asyncProperty(integer(0, 2000), integer(1, 2000), async (fromS, lengthS) => {
        const toS = fromS + lengthS;
        const expected = all.filter((j) => j.submittedS >= fromS && j.submittedS < toS);
        const found = await collectAny(path, { fromS, toS });
        expect(shifted(found?.jobs ?? [], fromS)).toEqual(shifted(expected, 0));
        inside += expected.length;
      }),
      { ...RUNS, numRuns: 15 },
    );
    expect(inside).toBeGreaterThan(500);
  });

  it('a limit takes the first jobs', async () => {
    const { jobs: all } = await collect(path);
    for (const jobsLimit of [1, 7, 399, 400, 1000]) {
      expect((await collect(path, { jobsLimit })).jobs).toEqual(all.slice(0, jobsLimit));
    }
  });

  it('a scale below 1 leaves jobs out at random and the others as they are', async () => {
    const { jobs: all } = await collect(path);
    const byKey = new Map(all.map((j) => [j.key, j]));
    const { jobs, report } = await collect(path, { scale: 0.25 });
    expect(jobs.map((j) => byKey.get(j.key))).toEqual(jobs);
    expect(report.jobs + (report.dropped.get('job left out by the scale') ?? 0)).toBe(400);
    // Within 4 standard errors, sqrt(0.25 x 0.75 x 400) = 8.7.
    expect(Math.abs(jobs.length - 100)).toBeLessThan(35);
  });

  it('what the scale leaves has deadlines as often as the whole: draws for two purposes have nothing in common', async () => {
    const { jobs } = await collect('synthetic:jobs=8000,maxTasks=1,dags=0', { scale: 0.25, deadlines: { share: 0.5 } });
    const share = jobs.filter((j) => j.spec.class === 'deadline').length / jobs.length;
    // About 2,000 jobs: within 4 standard errors of sqrt(0.25 / 2000) = 0.0112.
    expect(jobs.length).toBeGreaterThan(1800);
    expect(Math.abs(share - 0.5)).toBeLessThan(0.045);
  });

  it('a scale above 1 repeats each job, within the hour and a little longer or shorter', async () => {
    const { jobs: all } = await collect(path);
    const found = await collect(path, { scale: 2.5 });
    expectSound(found);
    const times = new Map<string, WorkloadJob[]>();
    for (const job of found.jobs) {
      const key = job.key.replace(/~\d+$/, '');
      times.set(key, [...(times.get(key) ?? []), job]);
    }
    expect(times.size).toBe(400);
    let repeats = 0;
    const logs: number[] = [];
    for (const original of all) {
      const [first, ...others] = times.get(original.key) ?? [];
      expect(first).toEqual(original);
      expect([1, 2]).toContain(others.length);
      repeats += others.length;
      for (const job of others) {
        expect(job.submittedS).toBeGreaterThanOrEqual(original.submittedS);
        expect(job.submittedS).toBeLessThan(original.submittedS + 3600);
        expect(templateOf(job.spec)).toBe(templateOf(original.spec));
        const factors = [...job.truth].flatMap(([stage, t]) =>
          [...t.runtimeS].map((s, i) => s / (original.truth.get(stage)?.runtimeS[i] ?? NaN)),
        );
        expect(Math.max(...factors) - Math.min(...factors)).toBeLessThan(1e-9);
        logs.push(Math.abs(Math.log(factors[0] ?? NaN)));
      }
    }
    // 600 on average, within 4 standard errors of sqrt(0.25 x 400) = 10.
    expect(Math.abs(repeats - 600)).toBeLessThan(40);
    // Half of the repeats within 18 %: standard error of the median of 600 is about 0.0072.
    expect(Math.abs((logs.toSorted((a, b) => a - b)[300] ?? 0) - Math.log(1.18))).toBeLessThan(0.035);
  });

  it('seeds change what is drawn, and nothing but that', async () => {
    const [a, b] = [await collect(path, { seed: 1 }), await collect(path, { seed: 2 })];
    expect(a.jobs.map((j) => j.submittedS)).not.toEqual(b.jobs.map((j) => j.submittedS));
    const fixed = `${path},seed=3`;
    const [c, d] = [await collect(fixed, { seed: 1 }), await collect(fixed, { seed: 2 })];
    expect(c.jobs.map((j) => [j.submittedS, j.truth])).toEqual(d.jobs.map((j) => [j.submittedS, j.truth]));
    expect(c.jobs.map(deadlineS)).not.toEqual(d.jobs.map(deadlineS));
  });
});
