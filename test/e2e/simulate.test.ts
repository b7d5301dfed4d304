/** `ebb simulate` as its user has it: a process with arguments, two streams and an exit code. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { Comparison } from '../../lib/report/figures.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-simulate-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const folder = (name: string): string => mkdtempSync(join(scratch, `${name}-`));
const ebb = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, [EBB, ...args], { cwd, encoding: 'utf8', timeout: 100_000 });
type Answer = Comparison & {
  readonly refusals: readonly { readonly code: string; readonly count: number }[];
  readonly workload: { readonly name: string } | null;
  readonly marketNotes: readonly string[];
};

const JOB = {
  name: 'small',
  owner: 'e2e',
  deadline: '2h',
  tasks: 2,
  command: 'true',
  resources: { cpu: 1, memory: '256MiB' },
  expectedRuntime: '10m',
};
const jobFile = (cwd: string, over: object = {}): string => {
  writeFileSync(join(cwd, 'job.json'), JSON.stringify({ ...JOB, ...over }));
  return 'job.json';
};

describe('ebb simulate', () => {
  it('needs no data and no account, and says what it assumed', () => {
    const cwd = folder('alone');
    const { status, stdout, stderr } = ebb(cwd, 'simulate', '--workload', 'synthetic:jobs=6');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^PRESET +COST/m);
    expect(stdout).toMatch(/^ebbtide +\$\d/m);
    expect(stderr).toContain('Made, not measured: 6 jobs');
    expect(stderr).toContain('Deadlines are made');
  });

  it('runs services on their requests, alone or beside jobs', () => {
    const cwd = folder('service');
    const service = join(process.cwd(), 'examples', 'service', 'service.yaml');
    const asked = ['--service', service, '--rate', '30', '--for', '30m'];
    const alone = ebb(cwd, 'simulate', ...asked);
    expect(alone.stderr).toContain('web: 30.0 requests per second on average for 0.500 h');
    expect(alone.stdout).toMatch(/^SERVICE +PRESET +REQUESTS/m);
    expect(alone.status).toBe(0);
    const beside = ebb(cwd, 'simulate', ...asked, '--workload', jobFile(cwd), '--report', 'r.html', '--json');
    expect(beside.status).toBe(0);
    const { presets } = JSON.parse(beside.stdout) as Answer;
    const [web] = presets[0]?.services ?? [];
    expect(presets[0]).toMatchObject({ jobs: 1, succeeded: 1 });
    // 54,000 requests are expected; six standard deviations are 1,400.
    expect(Math.abs((web?.requests ?? 0) - 54_000)).toBeLessThan(1400);
    expect(web?.costUsd.value).toBeGreaterThan(0);
    expect(readFileSync(join(cwd, 'r.html'), 'utf8')).toContain('id="services-title"');
  });

  it('compares presets on the same jobs, writes one page, and each event log is the same twice', () => {
    const cwd = folder('compare');
    const job = jobFile(cwd);
    const compared = ebb(
      cwd,
      'simulate',
      '--workload',
      job,
      '--compare',
      'on-demand,ebbtide',
      '--report',
      'r.html',
      '--json',
    );
    expect(compared.stderr).not.toContain('error:');
    const { presets, workload, refusals } = JSON.parse(compared.stdout) as Answer;
    expect(workload?.name).toBe('job.json');
    expect(refusals).toEqual([]);
    const [onDemand, ebbtide] = presets;
    expect(presets.map((p) => [p.preset, p.succeeded, p.missed])).toEqual([
      ['on-demand', 1, 0],
      ['ebbtide', 1, 0],
    ]);
    // The reference packs as well as the preset, or better; the bound is below both.
    expect(onDemand?.toOnDemand?.value).toBeGreaterThan(0.9);
    expect(onDemand?.toBound?.value).toBeGreaterThan(1);
    expect(ebbtide?.toBound?.value).toBeGreaterThan(1);
    expect(ebbtide?.costUsd.value).toBeLessThan(onDemand?.costUsd.value ?? 0);
    expect(readFileSync(join(cwd, 'r.html'), 'utf8')).toContain('</html>');
    for (const log of ['one.jsonl', 'two.jsonl']) ebb(cwd, 'simulate', '--workload', job, '--log', log);
    const [one, two] = ['one.jsonl', 'two.jsonl'].map((log) => readFileSync(join(cwd, log), 'utf8'));
    expect(one?.trim().split('\n').length).toBeGreaterThan(5);
    expect(two).toBe(one);
  });

  it('decides the same twice with a trained model, and otherwise than from history or with the truth', () => {
    const cwd = folder('model');
    const log = (forecast: string, file: string): string => {
      const workload = ['--workload', 'synthetic:jobs=6,maxTasks=20'];
      const { stderr } = ebb(cwd, 'simulate', ...workload, '--set', `forecast=${forecast}`, '--log', file);
      expect(stderr).not.toContain('error:');
      return readFileSync(join(cwd, file), 'utf8');
    };
    const [one, two] = [log('model', 'one'), log('model', 'two')];
    expect(two).toBe(one);
    expect(new Set([one, log('history', 'history'), log('oracle', 'oracle')]).size).toBe(3);
  });

  it('says what is assumed of a market that has no prices', () => {
    const cwd = folder('unpriced');
    const series = join(cwd, 'aws-04-19-2023');
    mkdirSync(series);
    const data = Array.from({ length: 48 }, () => 1);
    writeFileSync(join(series, 'us-east-1b_intel_64.json'), JSON.stringify({ metadata: { gap_seconds: 600 }, data }));
    const args = ['simulate', '--workload', jobFile(cwd), '--market', series, '--preset', 'greedy'];
    const { status, stderr } = ebb(cwd, ...args, '--report', 'r.html');
    expect(status).toBe(0);
    expect(stderr).toContain('Prices of 1 market are assumed: a flat 0.3 of on-demand');
    expect(readFileSync(join(cwd, 'r.html'), 'utf8')).toContain('Prices of 1 market are assumed');
    const { marketNotes } = JSON.parse(ebb(cwd, ...args, '--json').stdout) as Answer;
    expect(marketNotes).toHaveLength(3);
    expect(marketNotes.at(-1)).toMatch(/^Billed by the second/);
  });

  it('says which jobs no policy would have been given', () => {
    const cwd = folder('refused');
    const job = jobFile(cwd, { resources: { cpu: 1, memory: '900GiB' } });
    const { stdout } = ebb(cwd, 'simulate', '--workload', job, '--json');
    expect((JSON.parse(stdout) as Answer).refusals).toMatchObject([{ code: 'job.unplaceable', count: 1 }]);
    const { status, stdout: shown, stderr } = ebb(cwd, 'simulate', '--workload', job);
    // As `ebb run` ends when the job is refused.
    expect(status).toBe(2);
    expect(shown).toContain('Not one job was done');
    expect(stderr).toMatch(/1 refused at submission: job.unplaceable; .*no pool can hold a task/);
  });

  it('says how to come by a market that has what the made-up one lacks', () => {
    const cwd = folder('gpus');
    const job = jobFile(cwd, { resources: { cpu: 1, gpu: 1 } });
    const { status, stderr } = ebb(cwd, 'simulate', '--workload', job);
    expect(status).toBe(2);
    expect(stderr).toContain('too little GPU excludes 54');
    const [, told] = /`ebb (market generate [^`]*)`/.exec(stderr) ?? [];
    expect(ebb(cwd, ...(told ?? '').split(' ')).status).toBe(0);
    expect(ebb(cwd, 'simulate', '--workload', job, '--market', 'gpus.ebbmarket').status).toBe(0);
  });

  it('speaks of no other market where the limit of vCPUs leaves out its machines', () => {
    const cwd = folder('limit');
    const { status, stderr } = ebb(cwd, 'simulate', '--workload', jobFile(cwd), '--vcpus', '1');
    expect(status).toBe(2);
    expect(stderr).toContain('the limit of 1 vCPUs excludes 54');
    expect(stderr).not.toContain('ebb market generate');
  });

  it('says which jobs come after the end, and leaves a log alone that it cannot write anew', () => {
    const cwd = folder('late');
    const late = ['simulate', '--workload', 'synthetic:jobs=40', '--from', '2026-01-18T23:30Z', '--preset', 'greedy'];
    const { status, stdout } = ebb(cwd, ...late, '--json');
    expect(status).toBe(0);
    const { presets, warnings } = JSON.parse(stdout) as Answer;
    expect((presets[0]?.jobs ?? 0) + (presets[0]?.notSubmitted ?? 0)).toBe(40);
    expect(warnings.join()).toContain(`${presets[0]?.notSubmitted} of its jobs were never submitted`);
    writeFileSync(join(cwd, 'l.jsonl'), 'earlier');
    writeFileSync(join(cwd, 'bad.yaml'), 'command: "true"\n');
    expect(ebb(cwd, 'simulate', '--workload', 'bad.yaml', '--log', 'l.jsonl').status).toBe(2);
    expect(readFileSync(join(cwd, 'l.jsonl'), 'utf8')).toBe('earlier');
  });

  it('decides anew what an engine has run, on its terms', () => {
    const cwd = folder('replay');
    const terms = ['--set', 'billing=per-hour', '--preset', 'greedy'];
    const run = ebb(
      cwd,
      'run',
      jobFile(cwd, { expectedRuntime: '1m' }),
      '--speed',
      '120',
      '--seed',
      '3',
      ...terms,
      '--json',
    );
    expect(run.status).toBe(0);
    const same = JSON.parse(ebb(cwd, 'simulate', '--replay', '.ebb', '--json').stdout) as Answer;
    expect(same.presets.map((p) => p.preset)).toEqual(['greedy']);
    // Started hours, as the engine was billed; how many it bought depends on how busy the machine was.
    const other = ebb(cwd, 'simulate', '--replay', '.ebb', '--set', 'billing=per-second', '--json');
    const bySecondUsd = (JSON.parse(other.stdout) as Answer).presets[0]?.costUsd.value ?? Infinity;
    expect(same.presets[0]?.costUsd.value).toBeGreaterThan(5 * bySecondUsd);
    expect((JSON.parse(run.stdout) as { costUsd: number }).costUsd).toBeGreaterThan(5 * bySecondUsd);
    const { status, stdout, stderr } = ebb(
      cwd,
      'simulate',
      '--replay',
      '.ebb',
      '--compare',
      'on-demand,ebbtide',
      '--json',
    );
    expect(stderr).not.toContain('error:');
    expect(status).toBe(0);
    const { presets } = JSON.parse(stdout) as Answer;
    expect(presets.map((p) => [p.preset, p.jobs, p.tasks, p.succeeded])).toEqual([
      ['on-demand', 1, 2, 1],
      ['ebbtide', 1, 2, 1],
    ]);
    const none = ebb(cwd, 'simulate', '--replay', 'nowhere');
    expect(none.status).not.toBe(0);
    expect(none.stderr).toContain('no engine has worked in this directory');
  });

  const stops = [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const;
  it.each(stops)('reports what it has when %s stops it, and says that it is partial', async (signal, code) => {
    const cwd = folder('stopped');
    const args = ['simulate', '--workload', 'synthetic:jobs=100000,perHour=600', '--report', 'r.html', '--json'];
    const child = spawn(process.execPath, [EBB, ...args], { cwd });
    const seen = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (seen.stdout += String(chunk)));
    // Progress has been shown: the simulation is under way.
    await new Promise<void>((resolve) =>
      child.stderr.on('data', (chunk) => {
        seen.stderr += String(chunk);
        if (/events\/s/.test(seen.stderr)) resolve();
      }),
    );
    child.kill(signal);
    // As `timeout` does, which signals the process and then its group.
    child.kill(signal);
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(code);
    expect(seen.stderr).toContain('stopping');
    const { presets, warnings } = JSON.parse(seen.stdout) as Answer;
    expect(presets.map((p) => [p.preset, p.aborted])).toEqual([['ebbtide', 1]]);
    expect(warnings.join()).toContain('1 of 1 runs were aborted');
    expect(readFileSync(join(cwd, 'r.html'), 'utf8')).toContain('</html>');
    expect(readdirSync(cwd).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(existsSync(join(cwd, 'r.html'))).toBe(true);
  });
});
