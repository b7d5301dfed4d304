import { describe, expect, it } from '@jest/globals';
import { templateOf } from '../../../lib/domain/job-features.ts';
import { adjusted, badLines, collect, deadlineS, dropped, fixture, runtimes, written } from './collect.ts';

describe('google-2011, task attempts', () => {
  it('folds attempts that lie apart into tasks, tasks of one request into stages', async () => {
    const { workload, jobs, report } = await collect(fixture('google-2011'));

    expect(workload.format).toBe('google-2011');
    expect(jobs.map((j) => [j.key, j.submittedS])).toEqual([
      ['6001', 0],
      ['6003', 25.5],
    ]);
    // Task 0 was evicted once, task 1 failed once, task 2 was killed, task 3 asks for more.
    expect(runtimes(jobs[0])).toEqual({ main: [100, 40.25], 'request-2': [60] });
    expect([...(jobs[0]?.truth.get('main')?.failures ?? [])]).toEqual([0, 1]);
    expect(jobs[0]?.truth.get('request-2')?.failures).toBeUndefined();
    // Submitted again after it had finished: the first time counts.
    expect(runtimes(jobs[1])).toEqual({ main: [9] });
    expect(dropped(report)).toEqual({ 'task that did not finish': 2, 'job of which no task finished': 1 });
    expect(report.tasks).toBe(4);
  });

  it('turns fractions of the largest machine into amounts, requests of 0 into the least', async () => {
    const { jobs } = await collect(fixture('google-2011'), { machine: { vcpus: 16, memoryGiB: 32 } });
    const asked = jobs.flatMap((j) => j.spec.stages.map((s) => s.resources));

    // 0.0625 x 16 vCPUs, 0.0159 x 32 GiB rounded up; 0.5 and 0.25; 0 and 0.
    expect(asked).toEqual([
      { cpu: 1000, memory: 522, gpus: 0, disk: 0 },
      { cpu: 8000, memory: 8192, gpus: 0, disk: 0 },
      { cpu: 10, memory: 16, gpus: 0, disk: 0 },
    ]);
  });

  it('counts and names bad lines', async () => {
    const { report } = await collect(fixture('google-2011'));
    expect(report.bad.count).toBe(6);
    expect(badLines(report)).toEqual([11, 12, 13, 14, 15, 16]);
    expect(report.bad.first[0]?.what).toContain("'720' to '710'");
    expect(report.bad.first[3]?.what).toContain('attempt 2 of task 0 of job 6003');
  });

  it('takes names from the table of jobs beside it, so that templates recur', async () => {
    const joined = await collect(fixture('google-2011'));
    const alone = await collect(fixture('google-alone'));

    const [first] = joined.jobs;
    expect([first?.spec.owner, first?.spec.name, first?.spec.stages[0]?.command]).toEqual([
      'user-h',
      'ab-6001',
      ['program-aa'],
    ]);
    expect(templateOf((first ?? never()).spec)).toBe('user-h/ab-#/program-aa');
    // Without it no two jobs share a template.
    expect(new Set(alone.jobs.map((j) => templateOf(j.spec))).size).toBe(2);
    expect(alone.jobs.map((j) => [j.key, runtimes(j)])).toEqual(joined.jobs.map((j) => [j.key, runtimes(j)]));
  });

  it('takes work that did not finish as it ran, when asked to', async () => {
    const { jobs, report } = await collect(fixture('google-2011'), { unfinished: 'as-run' });
    // The killed task ran for 95 s; that of job 6002 never ran.
    expect(runtimes(jobs[0])).toEqual({ main: [100, 40.25, 95], 'request-2': [60] });
    expect(dropped(report)).toEqual({ 'task that did not finish': 1, 'job of which no task finished': 1 });
  });

  it('gives deadlines to what the trace calls production, when asked to', async () => {
    const deadlines = { by: 'production', slackPercents: [50], startDelayS: 10 } as const;
    const { jobs } = await collect(fixture('google-2011'), { deadlines });
    // Priority 9: both stages at once, 100 s of running and 10 s to start; 40.25 s twice, for a try that fails, is
    // less.
    expect(jobs.map(deadlineS)).toEqual([100 + 10 + 50, null]);
  });
});

it('a deadline leaves room for the tries that fail', async () => {
  const header =
    'job_id,task_index,attempt,submit_s,schedule_s,end_s,end_event,sched_class,priority,cpu_req,mem_req,disk_req,machine';
  const rows = [
    '1,0,1,600,600,700,FINISH,0,0,0.1,0.1,0,1',
    '1,1,1,600,600,605,FAIL,0,0,0.1,0.1,0,1',
    '1,1,2,605,605,610,FAIL,0,0,0.1,0.1,0,1',
    '1,1,3,610,610,670,FINISH,0,0,0.1,0.1,0,1',
  ];
  const { jobs } = await collect(written('attempts.csv', [header, ...rows].join('\n')), {
    deadlines: { share: 1, slackPercents: [10], startDelayS: 7 },
  });
  // 60 s, three times over, is the longest: 180 s, 10 % of them, and the start.
  expect(jobs.map(deadlineS)).toEqual([180 + 18 + 7]);
});

it('a file that is not sorted gives jobs by their first submission', async () => {
  const header =
    'job_id,task_index,attempt,submit_s,schedule_s,end_s,end_event,sched_class,priority,cpu_req,mem_req,disk_req,machine';
  const rows = [
    '1,0,1,700,700,701,FINISH,0,0,0.1,0.1,0,1',
    '3,0,1,900,900,901,FINISH,0,0,0.1,0.1,0,1',
    '2,0,1,700,700,701,FINISH,0,0,0.1,0.1,0,1',
    '3,1,1,650,650,651,FINISH,0,0,0.1,0.1,0,1',
  ];
  const { jobs } = await collect(written('attempts.csv', [header, ...rows].join('\n')));
  expect(jobs.map((j) => [j.key, j.submittedS])).toEqual([
    ['3', 0],
    ['1', 50],
    ['2', 50],
  ]);
});

const never = (): never => {
  throw new Error('no such job');
};

describe('google-2011, jobs', () => {
  it('takes what finished, from its last scheduling to its end', async () => {
    const { workload, jobs, report } = await collect(fixture('google-2011/jobs.csv'));

    expect(workload.format).toBe('google-2011-jobs');
    // Job 6001 was scheduled twice. Time 0 of the trace is before its window, so the workload starts with job 6001.
    expect(jobs.map((j) => [j.key, j.submittedS, runtimes(j)['main']])).toEqual([
      ['6001', 0, [100]],
      ['6003', 25.5, [9]],
      ['6012', 55.5, [0.001]],
    ]);
    expect(dropped(report)).toEqual({
      'job submitted before the trace begins': 2,
      'job still running when the trace ends': 1,
      'job ended by KILL': 2,
    });
    expect(adjusted(report)).toEqual({ 'task of less than 0.001 s taken as so long': 1 });
  });

  it('names duplicate ids, times that go back, negative durations and numbers that are none', async () => {
    const { report } = await collect(fixture('google-2011/jobs.csv'));
    expect(report.bad.first.map(({ line, what }) => `${line} ${what}`)).toEqual([
      '9 job 6003 is there already',
      '10 job 6008 was submitted at 605 s, before the job above it (630 s): sort the file by submission',
      "11 a job ends after it is scheduled; got '655' to '650'",
      "12 submit_s is a number >= 0; got '-5'",
      '13 user, logical_name and job_name are numbers',
    ]);
  });

  it('takes what was killed while it ran, when asked to', async () => {
    const { jobs, report } = await collect(fixture('google-2011/jobs.csv'), { unfinished: 'as-run' });
    expect(jobs.map((j) => j.key)).toEqual(['6001', '6003', '6007', '6012']);
    expect(dropped(report)).toMatchObject({ 'job ended by KILL before it ran': 1 });
  });
});
