import { mkdtempSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { openWorkload } from '../../../lib/workload/open.ts';
import { collect, deadlineS, fixture, refused, runtimes, written } from './collect.ts';

describe('opening a workload', () => {
  it('reads a job file, with running times drawn about the expected one', async () => {
    const one = await collect(fixture('jobs-folder/a.yaml'));
    const [job] = one.jobs;
    expect(one.workload.format).toBe('job-files');
    expect([job?.spec.owner, job && deadlineS(job)]).toEqual(['ana', 7200]);
    const sorted = (runtimes(job)['analyse'] ?? []).toSorted((a, b) => a - b);
    expect(sorted).toHaveLength(500);
    // Median 100 s, sigma 0.25: of 500 within 4 standard errors, 1.25 x 0.25 / sqrt(500) = 1.4 % each.
    expect(Math.abs(((sorted[250] ?? 0) - 100) / 100)).toBeLessThan(0.056);

    const exact = await collect(fixture('jobs-folder/a.yaml'), { runtimeSpread: 0 });
    expect(new Set(runtimes(exact.jobs[0])['analyse'])).toEqual(new Set([100]));
  });

  it('reads a folder of job files: all at once, or some time apart; what is wrong is named', async () => {
    const folder = await collect(fixture('jobs-folder'));
    expect(folder.jobs.map((j) => [j.key, j.submittedS])).toEqual([
      ['a.yaml', 0],
      ['b.json', 0],
    ]);
    expect(folder.report.bad.first.map((b) => b.file)).toEqual(['c.yaml', 'd.yaml']);
    expect(folder.report.bad.first[1]?.what).toContain('d.yaml:3:18');

    const apart = await collect(fixture('jobs-folder'), { interarrivalS: 100 });
    expect(apart.jobs[1]?.submittedS).toBeGreaterThan(0);
    // Classes of job files are their own.
    expect(apart.jobs.map((j) => j.spec.class)).toEqual(['deadline', 'best-effort']);
  });

  it('knows how many jobs may come where the number is given, and else not', async () => {
    const most = async (path: string, options = {}) => (await openWorkload(path, options)).mostJobs;
    expect(await most('synthetic:jobs=7')).toBe(7);
    expect(await most('synthetic:jobs=7', { jobsLimit: 3 })).toBe(3);
    expect(await most('synthetic:jobs=7', { scale: 1.5 })).toBe(14);
    expect(await most(fixture('jobs-folder'))).toBeNull();
    expect(await most(fixture('jobs-folder'), { jobsLimit: 3 })).toBe(3);
  });

  it('shows the faults of a single job file as they are', async () => {
    expect((await refused(collect(fixture('jobs-folder/d.yaml')))).code).toBe('job-file.invalid');
    const unknown = await refused(collect(fixture('jobs-folder/c.yaml')));
    expect([unknown.code, unknown.facts.next]).toEqual(['workload.invalid', 'Add `expectedRuntime` to the job file.']);
  });

  it('reads gzip as well as plain text, with either end of line and a byte order mark', async () => {
    const text = readFileSync(fixture('log.swf'), 'utf8');
    const plain = await collect(fixture('log.swf'));
    const zipped = await collect(written('log.gz', gzipSync(text)));
    expect(zipped.jobs).toEqual(plain.jobs);

    const csv = readFileSync(fixture('google-alone/attempts.csv'), 'utf8');
    const dos = await collect(written('attempts.csv', `\uFEFF${csv.replaceAll('\n', '\r\n')}`));
    expect(dos.jobs).toEqual((await collect(fixture('google-alone'))).jobs);
    expect(dos.report.bad.count).toBe(6);
  });

  it('reads quoted cells, columns in another order and columns that it does not know', async () => {
    const pods =
      'extra,scheduled_time,deletion_time,creation_time,pod_phase,qos,gpu_milli,num_gpu,memory_mib,cpu_milli,name\n' +
      '"a, b",110,160,100,Succeeded,"BE",0,0,2048,500,"pod ""1"""\n';
    const { jobs, report } = await collect(written('pods.csv', pods));
    expect(jobs.map((j) => [j.key, runtimes(j)['main']])).toEqual([['pod "1"', [50]]]);
    expect(report.bad.count).toBe(0);
  });

  it('reads cells in any letters, without blanks around them', async () => {
    const pods =
      'name, cpu_milli,memory_mib,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time\n' +
      'pöd-1,500,2048,0,0,BE,Succeeded,100,160,110\n' +
      '\u00A0pod-2,500,2048,0,0,BE,Succeeded,100,170,110\n' +
      'pod-3,500,2048,0,0,BE,Succeeded,100,180,110,\n' +
      '\n' +
      ' pod-4 ,500\t,2048,0,0,BE,Succeeded,100,190,110';
    const { jobs, report } = await collect(written('pods.csv', pods));
    expect(jobs.map((j) => [j.key, runtimes(j)['main']])).toEqual([
      ['pöd-1', [50]],
      ['pod-2', [60]],
      ['pod-4', [80]],
    ]);
    expect(report.bad.first).toEqual([{ file: 'pods.csv', line: 4, what: 'a row has 10 cells; got 11' }]);
  });

  it('uses what came before the damage in an unfinished gzip, and says so', async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => `job${i}\t${i}\t1\t${(i * 7919) % 100_000}\t0\t0\n`);
    const bytes = gzipSync(rows.join(''));
    const { jobs, report } = await collect(written('fb.tsv.gz', bytes.subarray(0, bytes.length - 2000)));

    expect(jobs.length).toBeGreaterThan(100);
    expect(jobs.length).toBeLessThan(5000);
    const said = report.bad.first.map((b) => b.what).join('; ');
    expect(said).toContain('the file is damaged, the rest of it is left out');
  });

  it('joins lines that lie on the border of what is read at once', async () => {
    const rows = Array.from({ length: 30_000 }, (_, i) => `job${i}\t${i}\t1\t0\t0\t0\n`);
    const text = rows.join('');
    expect(text.length).toBeGreaterThan(2 * 262_144);
    for (const path of [written('fb.tsv', text), written('fb.tsv.gz', gzipSync(text))]) {
      const { report } = await collect(path, { deadlines: 'none' });
      expect([report.jobs, report.bad.count]).toEqual([30_000, 0]);
    }
  });

  it('gives the same jobs each time it is read', async () => {
    const workload = await openWorkload(fixture('dags.csv'));
    const read = async () => {
      const jobs = [];
      for await (const job of workload.jobs()) jobs.push(job);
      return jobs;
    };
    expect(await read()).toEqual(await read());
    expect(workload.report().jobs).toBe(3);
  });

  it('reports as far as it has been read', async () => {
    const workload = await openWorkload('synthetic:jobs=100');
    for await (const job of workload.jobs()) {
      if (job.key === 'job-10') break;
    }
    expect(workload.report().jobs).toBe(10);
  });

  it('says in words what it assumes', async () => {
    const google = await openWorkload(fixture('google-2011'), { machine: { vcpus: 12, memoryGiB: 34 } });
    expect(google.notes.join(' ')).toContain('taken as 12 vCPUs and 34 GiB');
    expect(google.notes.at(-1)).toContain(
      'slack of 20, 40, 60, 80 % of the running time, and 160 s to start each stage',
    );
    const plain = await openWorkload(fixture('facebook.tsv'), { deadlines: 'none' });
    expect(plain.notes.at(-1)).toBe('No deadlines: all jobs are best-effort.');
  });
});

describe('workloads that cannot be', () => {
  it('names formats, and refuses others', async () => {
    const wrong = await refused(openWorkload(fixture('log.swf'), { format: 'slurm' }));
    expect([wrong.code, wrong.facts.got]).toEqual(['usage', 'slurm']);
    expect(wrong.facts.allowed).toMatch(/^swf: .*Standard Workload Format/m);
    const other = await refused(openWorkload(fixture('log.swf'), { format: 'facebook-2010' }));
    expect([other.code, other.message]).toEqual([
      'workload.invalid',
      expect.stringContaining('no workload of format facebook-2010'),
    ]);
  });

  it.each([
    ['an empty file', '', 'the workload is empty'],
    ['text of another kind', 'Dear all,\nthis is no trace.\n', 'no workload in a known format'],
    ['half a gzip header', gzipSync('').subarray(0, 5), 'no workload in a known format'],
  ])('refuses %s', async (_, contents, what) => {
    const error = await refused(openWorkload(written('trace', contents)));
    expect([error.code, error.facts.what]).toEqual(['workload.invalid', what]);
  });

  it('refuses a path that is not there, and an empty folder', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'ebb-workload-'));
    expect((await refused(openWorkload(join(empty, 'none')))).facts.what).toBe('no such file or folder');
    expect((await refused(openWorkload(empty))).facts.what).toBe('the workload is empty');
  });

  it('refuses a folder of several workloads, and takes the one that is named', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ebb-workload-'));
    mkdirSync(join(folder, 'deep'));
    writeFileSync(join(folder, 'log.swf'), readFileSync(fixture('log.swf')));
    writeFileSync(join(folder, 'deep', 'fb.tsv'), readFileSync(fixture('facebook.tsv')));
    const error = await refused(openWorkload(folder));
    expect(error.facts.got).toContain('log.swf (swf)');
    expect(error.facts.got).toContain('(facebook-2010)');
    expect((await openWorkload(folder, { format: 'swf' })).format).toBe('swf');
    // Two of one kind are two workloads.
    writeFileSync(join(folder, 'more.swf'), readFileSync(fixture('log.swf')));
    expect((await refused(openWorkload(folder, { format: 'swf' }))).facts.what).toBe(
      'the folder has several workloads',
    );
  });

  it('ends with an error when not one job can be used, naming the lines', async () => {
    const header = readFileSync(fixture('openb_pods.csv'), 'utf8').split('\n')[0] ?? '';
    const none = await refused(collect(written('pods.csv', `${header}\n`)));
    expect([none.code, none.facts.got]).toEqual(['workload.invalid', '0 bad lines']);
    const bad = await refused(collect(written('pods.csv', `${header}\nx,1\n`)));
    expect(bad.facts.issues).toEqual([{ at: 'pods.csv:2', message: 'a row has 11 cells; got 2' }]);
  });

  it('refuses options that cannot be, with every finding', async () => {
    const error = await refused(openWorkload('synthetic', { scale: 0, jobsLimit: 1.5 }));
    expect(error.code).toBe('usage');
    expect(error.facts.issues?.map((i) => i.at)).toEqual(['scale', 'jobsLimit']);
    expect((await refused(openWorkload('synthetic', { fromS: 5, toS: 5 }))).facts.what).toContain('empty');
    expect((await refused(openWorkload('synthetic:jobs=10,jobs=20'))).facts.allowed).toContain('each key once');
    expect((await refused(openWorkload('synthetic:size=10'))).code).toBe('usage');
    expect((await refused(openWorkload('synthetic:jobs=x'))).code).toBe('usage');
  });

  it('refuses deadlines by production where a trace does not tell it', async () => {
    const error = await refused(openWorkload(fixture('facebook.tsv'), { deadlines: { by: 'production' } }));
    expect([error.code, error.facts.allowed]).toEqual(['usage', expect.stringContaining('google-2011')]);
  });
});
