import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-run-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A folder with one job file in it; each has its own state below. */
function folder(name: string, job: object): string {
  const cwd = mkdtempSync(join(scratch, `${name}-`));
  writeFileSync(join(cwd, 'job.json'), JSON.stringify({ name, owner: 'e2e', ...job }));
  return cwd;
}
const FAST = ['--speed', '120', '--seed', '3'];
const SMALL = { resources: { cpu: 1, memory: '128MiB' }, expectedRuntime: '1m' };
const ebb = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, [EBB, ...args], { cwd, encoding: 'utf8', timeout: 50_000 });

describe('ebb run', () => {
  it('runs a job to its end and says what it cost', () => {
    const cwd = folder('fine', { deadline: '4h', tasks: 3, command: 'echo task $EBB_TASK_INDEX', ...SMALL });
    const { status, stdout, stderr } = ebb(cwd, 'run', 'job.json', ...FAST, '--json');
    expect(stderr).not.toContain('error:');
    expect(status).toBe(0);
    const summary = JSON.parse(stdout) as { exit: number; costUsd: number; onDemandUsd: number; jobs: unknown[] };
    expect(summary.exit).toBe(0);
    expect(summary.costUsd).toBeGreaterThan(0);
    expect(summary.jobs).toHaveLength(1);
  });

  it('ends with 3 when the job failed, and names the reason', () => {
    const cwd = folder('failing', { command: 'echo too bad >&2; exit 9', retries: 0, ...SMALL });
    const { status, stdout } = ebb(cwd, 'run', 'job.json', ...FAST);
    expect(status).toBe(3);
    expect(stdout).toMatch(/^ +main\[0\] failed at attempt 1: exit code 9\n +\| too bad$/m);
  });

  it('leaves nothing behind when the second of two files is refused', () => {
    const cwd = folder('half', { command: 'true', ...SMALL });
    writeFileSync(join(cwd, 'bad.json'), '{"name":"bad","comand":"true"}');
    const { status, stderr } = ebb(cwd, 'run', 'job.json', 'bad.json', ...FAST);
    expect(status).toBe(2);
    expect(stderr).toContain('bad.json:1:');
    expect(stderr).toContain('command');
    expect(ebb(cwd, 'run', '--resume').status).toBe(6);
  });

  it('leaves the record of a finished run as it is when --resume finds nothing to do', () => {
    const cwd = folder('finished', { command: 'true', ...SMALL });
    expect(ebb(cwd, 'run', 'job.json', ...FAST, '--preset', 'greedy').status).toBe(0);
    const record = (): string => readFileSync(join(cwd, '.ebb', 'world.json'), 'utf8');
    const before = record();
    const { status, stderr } = ebb(cwd, 'run', '--resume');
    expect(status).toBe(6);
    expect(stderr).toContain('holds no unfinished job');
    expect(record()).toBe(before);
    const replayed = ebb(cwd, 'simulate', '--replay', '.ebb', '--json');
    expect((JSON.parse(replayed.stdout) as { presets: { preset: string }[] }).presets[0]?.preset).toBe('greedy');
  });

  // 40 steps of 0.1 s; what a task would have to do again after a stop is the whole of it.
  const SLOW = 'trap "exit 143" TERM; i=0; while [ $i -lt 40 ]; do sleep 0.1; i=$((i+1)); done';

  // Half as fast: where the machine is busy, four seconds still end long before this market takes the pool, after 25
  // minutes of it.
  const FIXED = ['--speed', '60', '--seed', '3'];

  /** A run whose first task has started, to be ended by a test. */
  async function started(cwd: string, ...args: string[]) {
    const child = spawn(process.execPath, [EBB, 'run', ...args], { cwd });
    const seen = { stderr: '' };
    child.stderr.on('data', (chunk) => (seen.stderr += String(chunk)));
    const running = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk) => {
        if (String(chunk).includes('starts on')) resolve();
      });
    });
    const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
    await Promise.race([running, ended]);
    return { child, ended, seen };
  }

  it('saves and stops at Ctrl-C, and goes on with --resume alone', async () => {
    const cwd = folder('stopped', { command: SLOW, checkpoint: { grace: '1s' }, ...SMALL });
    const { child, ended, seen } = await started(cwd, 'job.json', ...FIXED);
    child.kill('SIGINT');
    // As `timeout` does, which signals the process and then its group.
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(seen.stderr).toMatch(/Go on with: ebb run --resume$/m);
    const { status, stderr } = ebb(cwd, 'run', '--resume');
    expect(stderr).toContain('60 times as fast');
    expect(status).toBe(0);
  });

  it('goes on with --resume alone after kill -9, and refuses other options for the same work', async () => {
    const cwd = folder('killed', { command: SLOW, ...SMALL });
    const { child, ended } = await started(cwd, 'job.json', ...FIXED, '--set', 'refundRule=none');
    child.kill('SIGKILL');
    expect(await ended).toBeNull();
    const other = ebb(cwd, 'run', '--resume', '--speed', '30', '--set', 'refundRule=first-hour');
    expect(other.status).toBe(6);
    expect(other.stderr).toContain('allowed: --speed 60, --set refundRule="none"');
    const { status, stdout, stderr } = ebb(cwd, 'run', '--resume');
    expect(stderr).toContain('60 times as fast');
    expect(stdout).toContain('succeeded: 1/1 tasks');
    expect(status).toBe(0);
  });
});
