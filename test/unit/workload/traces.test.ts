import { describe, expect, it } from '@jest/globals';
import { templateOf } from '../../../lib/domain/job-features.ts';
import { parseTaskName } from '../../../lib/workload/alibaba-dags.ts';
import { adjusted, badLines, collect, dropped, fixture, runtimes, written } from './collect.ts';

describe('facebook-2010', () => {
  it('makes tasks and running times from bytes by its rule', async () => {
    const { workload, jobs, report } = await collect(fixture('facebook.tsv'), { deadlines: 'none' });

    expect(workload.format).toBe('facebook-2010');
    expect(jobs.map((j) => [j.key, j.submittedS])).toEqual([
      ['job0', 0],
      ['job1', 9],
      ['job2', 9],
      ['job4', 10],
    ]);
    // 256 MiB and 1 byte are two maps; without a shuffle there is no reduce; no bytes at all are one map.
    const tasks = jobs.map((j) => j.spec.stages.map((s) => [s.name, s.tasks, s.dependsOn]));
    expect(tasks).toEqual([
      [['map', 1, []]],
      [
        ['map', 2, []],
        ['reduce', 1, ['map']],
      ],
      [['map', 1, []]],
      [['map', 1, []]],
    ]);
    expect(badLines(report)).toEqual([4, 6, 7]);
  });

  it('draws about the mean of the rule, and no task beyond eight times of it', async () => {
    // 4,000 maps of 256 MiB that write as much: 10 s + 512 MiB at 10 MiB/s = 61.2 s.
    const bytes = 4000 * 256 * 2 ** 20;
    const { jobs } = await collect(written('fb.tsv', `job7\t0\t0\t${bytes}\t0\t${bytes}\n`));
    const times = runtimes(jobs[0])['map'] ?? [];
    const sorted = times.toSorted((a, b) => a - b);

    expect(times).toHaveLength(4000);
    // The median of a lognormal factor is 1: of 4,000 within 3 standard errors, 1.25 x 0.5 / sqrt(4000) = 1 % each.
    expect(sorted[2000]).toBeGreaterThan(61.2 * 0.97);
    expect(sorted[2000]).toBeLessThan(61.2 * 1.03);
    expect(sorted.at(-1)).toBeLessThanOrEqual(61.2 * 8 + 1e-9);
    expect(sorted.at(-1)).toBeGreaterThan(61.2 * 2);
  });
});

describe('alibaba-gpu-2023', () => {
  it('takes pods from placing to deletion and leaves out what did not end in the trace', async () => {
    const { workload, jobs, report } = await collect(fixture('openb_pods.csv'));

    expect(workload.format).toBe('alibaba-gpu-2023');
    expect(jobs.map((j) => [j.key, j.submittedS, runtimes(j)['main']])).toEqual([
      ['openb-pod-0001', 0, [72839]],
      ['openb-pod-0002', 2939, [200]],
    ]);
    expect(dropped(report)).toEqual({
      'pod created before the trace begins': 1,
      'pod that failed': 1,
      'pod that was never placed': 1,
      'pod still running when the trace ends': 1,
    });
    expect(badLines(report)).toEqual([8, 9, 10]);
  });

  it('asks for whole GPUs, for none, or leaves such pods out', async () => {
    const gpus = async (rule: 'keep' | 'ignore' | 'drop') => {
      const { jobs, report } = await collect(fixture('openb_pods.csv'), { gpus: rule, unfinished: 'as-run' });
      return [jobs.map((j) => j.spec.stages[0]?.resources.gpus), report.dropped.get('job wants a GPU')];
    };
    // Pods 1 (0.46 of a GPU), 2 (none), 3 (8, failed), 5 (none).
    expect(await gpus('keep')).toEqual([[1, 0, 8, 0], undefined]);
    expect(await gpus('ignore')).toEqual([[0, 0, 0, 0], undefined]);
    expect(await gpus('drop')).toEqual([[0, 0], 2]);
  });

  it('says how many shares of a GPU became whole ones', async () => {
    const { report } = await collect(fixture('openb_pods.csv'));
    expect(adjusted(report)).toEqual({ 'share of a GPU taken as a whole one': 1 });
  });
});

describe('alibaba-2018-dags', () => {
  it('reads what a stage waits for from its name', () => {
    expect(parseTaskName('J5_2_4')).toEqual({ name: 'J5', number: '5', parents: ['2', '4'] });
    expect(parseTaskName('M1')).toEqual({ name: 'M1', number: '1', parents: [] });
    expect(parseTaskName('J10_7_9_Stg4')).toEqual({ name: 'J10', number: '10', parents: ['7', '9'] });
    expect(parseTaskName('task_Nzg3ODAwNDgzMTAw==')).toEqual({
      name: 'task_Nzg3ODAwNDgzMTAw',
      number: null,
      parents: [],
    });
  });

  it('collects rows that lie apart, sorts by first start, drops jobs that have not ended', async () => {
    const { workload, jobs, report } = await collect(fixture('dags.csv'));

    expect(workload.format).toBe('alibaba-2018-dags');
    expect(jobs.map((j) => [j.key, j.submittedS])).toEqual([
      ['j_3', 0],
      ['j_2', 100],
      ['j_8', 1100],
    ]);
    const dag = jobs[1]?.spec.stages.map((s) => [s.name, s.dependsOn, s.tasks, s.resources.cpu, s.resources.memory]);
    // Percent of a core, percent of 384 GiB.
    expect(dag).toEqual([
      ['J5', ['M2', 'R4'], 3, 500, 1967],
      ['M2', [], 1, 1000, 984],
      ['R4', ['M2'], 2, 2000, 1967],
    ]);
    expect(runtimes(jobs[1])['M2']).toEqual([150]);
    expect(dropped(report)).toEqual({ 'job with a stage that did not end well': 2, 'job with a bad line': 2 });
    expect(adjusted(report)).toMatchObject({ 'dependency on a stage that the trace lacks left out': 1 });
    expect(badLines(report)).toEqual([9, 11, 14]);
  });

  it('parts a stage of more tasks than one may have, and lets what is behind it wait for all parts', async () => {
    const { jobs } = await collect(fixture('dags.csv'));
    const stages = jobs[2]?.spec.stages.map((s) => [s.name, s.tasks, s.dependsOn]);
    expect(stages).toEqual([
      ['M1', 10_000, []],
      ['M1-2', 10_000, []],
      ['M1-3', 1, []],
      ['R2', 1, ['M1', 'M1-2', 'M1-3']],
    ]);
    const times = Object.values(runtimes(jobs[2])).slice(0, 3).flat();
    // Drawn about the mean of 50 s: of 20,001 within 4 standard errors of 0.25 x 50 / sqrt(20001) s.
    expect(times).toHaveLength(20_001);
    expect(Math.abs(times.reduce((a, b) => a + b, 0) / times.length - 50)).toBeLessThan(0.36);
  });
});

describe('tpch-spark-dags', () => {
  it('takes the times on the fewest executors, in seconds', async () => {
    const { workload, jobs, report } = await collect(fixture('dags.jsonl'));
    const job = jobs.find((j) => j.key === 'q1-2g');

    expect(workload.format).toBe('tpch-spark-dags');
    // s1 has none on 2 executors, s2 one too few.
    expect(runtimes(job)).toEqual({ s0: [4.371, 4.368, 2.053], s1: [1.5, 0.25], s2: [0.1, 0.1, 0.1, 0.1] });
    expect(job?.spec.stages.map((s) => s.dependsOn)).toEqual([[], ['s0'], ['s0', 's1']]);
    expect(adjusted(report)).toEqual({ 'stage with more or fewer task times than tasks: cut or drawn again': 1 });
  });

  it('names circles, edges to nowhere, negative times, what is no JSON, and repeated queries', async () => {
    const { jobs, report } = await collect(fixture('dags.jsonl'));
    expect(jobs.map((j) => j.key).sort()).toEqual(['q1-2g', 'q1-50g']);
    expect(badLines(report)).toEqual([3, 4, 5, 6, 7]);
  });

  it('makes the sizes of a query runs of one template, and queries unlike', async () => {
    const { jobs } = await collect(fixture('dags.jsonl'));
    expect(new Set(jobs.map((j) => templateOf(j.spec)))).toEqual(new Set(['tpch/query-a-#g/query-a']));
  });
});

describe('scientific workflows', () => {
  it('makes stages of tasks of one type at one depth', async () => {
    const { workload, jobs, report } = await collect(fixture('workflows.jsonl'));
    const [job] = jobs;

    expect(workload.format).toBe('workflow-instances');
    // The list is in no order: the task at place 0 waits for those at 1 and 2. split_ID0003 waits for another split.
    expect(job?.spec.stages.map((s) => [s.name, s.dependsOn])).toEqual([
      ['split_id-0', []],
      ['merge_id-1', ['split_id-0']],
      ['split_id-1', ['split_id-0']],
      ['report-2', ['merge_id-1', 'split_id-1']],
    ]);
    expect(runtimes(job)).toEqual({
      'split_id-0': [10.5, 0.001],
      'merge_id-1': [30],
      'split_id-1': [12],
      'report-2': [1],
    });
    // 320.5 % of a core are 4; 3 GiB as measured; 87,824 "bytes" are below the least, the other split has no size.
    expect(job?.spec.stages.map((s) => [s.resources.cpu, s.resources.memory])).toEqual([
      [1000, 1024],
      [4000, 3072],
      [2000, 1024],
      [1000, 1024],
    ]);
    expect(badLines(report)).toEqual([2, 3, 4]);
  });

  it('reads WfFormat with tasks specified and executed apart, and as one', async () => {
    const { workload, jobs, report } = await collect(fixture('wfformat'), { interarrivalS: 0 });
    const byKey = new Map(jobs.map((j) => [j.key, j]));

    expect(workload.format).toBe('wfformat');
    expect(runtimes(byKey.get('one.json'))).toEqual({ 'make-sample-0': [8.5], 'use-sample-1': [40] });
    expect(byKey.get('one.json')?.spec.stages[1]).toMatchObject({
      dependsOn: ['make-sample-0'],
      resources: { cpu: 3000, memory: 2048 },
    });
    expect(byKey.get('two.json')?.spec.stages.map((s) => s.dependsOn)).toEqual([[], ['first-0']]);
    expect(report.bad.first).toEqual([
      { file: 'planned.json', line: 0, what: 'task t1 has no running time: it was not executed' },
    ]);
  });

  it('has a stage for each depth where there are too many kinds of tasks', async () => {
    const tasks = Array.from({ length: 150 }, (_, i) => ({
      n: `kind${String.fromCharCode(97 + (i % 26))}${String.fromCharCode(97 + Math.floor(i / 26))}`,
      rt: 1 + i,
      p: i < 100 ? [] : [i - 100],
    }));
    const { jobs, report } = await collect(written('w.jsonl', JSON.stringify({ path: 'x/y.json', tasks })));
    expect(jobs[0]?.spec.stages.map((s) => [s.name, s.tasks])).toEqual([
      ['depth-0', 100],
      ['depth-1', 50],
    ]);
    expect([...report.adjusted.keys()]).toEqual(['workflow of more than 100 kinds of tasks: a stage for each depth']);
  });
});

describe('Standard Workload Format', () => {
  it('makes a gang of the processors of a job', async () => {
    const { workload, jobs, report } = await collect(fixture('log.swf'), { deadlines: 'none' });

    expect(workload.format).toBe('swf');
    const seen = jobs.map((j) => {
      const stage = j.spec.stages[0];
      return [j.key, j.submittedS, stage?.gang, stage?.expectedRuntimeS, stage?.resources.memory, runtimes(j)['main']];
    });
    expect(seen).toEqual([
      ['1', 0, true, 3600, 1024, [600, 600, 600, 600]],
      ['4', 9, true, 60, 512, [50, 50]],
      ['10', 12, true, 60, 1024, [0.001, 0.001]],
    ]);
    expect(dropped(report)).toEqual({
      'job without a running time': 1,
      'job that failed': 1,
      'job of more than 10000 processors': 1,
      'part of a job that is listed as a whole': 1,
    });
    expect(badLines(report)).toEqual([9, 10, 12, 13]);
  });

  it("reads the archive's own layout: aligned columns, tabs, comments anywhere, blank lines", async () => {
    const { workload, jobs, report } = await collect(fixture('archive.swf'), { deadlines: 'none' });
    expect(workload.format).toBe('swf');
    expect(report.bad).toEqual({ count: 0, first: [] });
    expect(jobs.map((j) => [j.key, j.submittedS, j.spec.stages[0]?.tasks, runtimes(j)['main']?.[0]])).toEqual([
      ['1', 0, 32, 1451],
      ['2', 1460, 64, 3726],
      ['3', 5198, 1, 1067],
      ['4', 6269, 8, 28],
      ['5', 6300, 2, 17],
      ['100', 12_000, 16, 600],
      ['1000', 15_000, 4, 61],
    ]);
    expect(dropped(report)).toEqual({ 'job without a running time': 1 });
  });

  it('keeps group, queue and partition as labels, and none that is not known', async () => {
    const { jobs } = await collect(fixture('archive.swf'), { deadlines: 'none' });
    const labels = Object.fromEntries(jobs.map((j) => [j.key, j.spec.labels]));
    expect(labels['1']).toEqual({ group: '1', queue: '1', partition: '1' });
    // Queue 0 is a queue (interactive jobs), partition -1 is none.
    expect(labels['3']).toEqual({ group: '3', queue: '0', partition: '2' });
    expect(labels['4']).toEqual({ group: '3', queue: '2' });
    expect(labels['5']).toEqual({});
  });

  it('a window has its beginning and not its end', async () => {
    const { jobs, report } = await collect(fixture('log.swf'), { fromS: 9, toS: 12 });
    expect(jobs.map((j) => [j.key, j.submittedS])).toEqual([['4', 0]]);
    expect(report.dropped.get('job submitted before the window')).toBe(1);
    // The workload starts where the window does.
    const later = await collect(fixture('log.swf'), { fromS: 2 });
    expect(later.jobs.map((j) => [j.key, j.submittedS])).toEqual([
      ['4', 7],
      ['10', 10],
    ]);
  });

  it('takes the failed job when asked to, as one task of 2 GiB', async () => {
    const { jobs } = await collect(fixture('log.swf'), { unfinished: 'as-run' });
    const failed = jobs.find((j) => j.key === '3');
    expect(failed?.spec.stages[0]).toMatchObject({ gang: false, tasks: 1, expectedRuntimeS: null });
    expect(failed?.spec.stages[0]?.resources.memory).toBe(2048);
  });
});
