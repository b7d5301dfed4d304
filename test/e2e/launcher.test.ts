import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { ONE_REQUEST_MS } from '../../lib/cli/signals.ts';

const ROOT = process.cwd();
const scratch = mkdtempSync(join(tmpdir(), 'ebb-launcher-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A Node that is too old for the store, if the machine has one: then the launcher has to stand in for another. */
const oldNode = ['/usr/bin/node', '/usr/local/bin/node', process.env['EBB_OLD_NODE'] ?? '']
  .filter((path) => path !== '' && existsSync(path))
  .find((path) => Number(/^v(\d+)/.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout)?.[1]) < 22);
if (oldNode === undefined) {
  process.stderr.write('skipped: relaunching from an old Node; name one with EBB_OLD_NODE to test it\n');
}
const withOldNode = oldNode === undefined ? it.skip : it;

/** A package whose program is `source`, with the launcher of this repository and, if `carriesNode`, its Node. */
function packaged(name: string, source: string | null, carriesNode = true): string {
  const root = join(scratch, name, 'node_modules', 'ebbtide');
  mkdirSync(join(root, 'bin'), { recursive: true });
  for (const file of ['ebb.mjs', 'runtime.mjs', 'compile.mjs'])
    cpSync(join(ROOT, 'bin', file), join(root, 'bin', file));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  if (source !== null) writeFileSync(join(root, 'bin', 'ebb.ts'), source);
  if (carriesNode) {
    const nodePackage = `node-${process.platform}-${process.arch}`;
    const installed = join(ROOT, 'node_modules', nodePackage);
    if (existsSync(installed)) symlinkSync(installed, join(scratch, name, 'node_modules', nodePackage));
  }
  return join(root, 'bin', 'ebb.mjs');
}

const run = (node: string, launcher: string, ...args: string[]) =>
  spawnSync(node, [launcher, ...args], { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '' } });

const isCheckout = spawnSync('git', ['rev-parse', '--git-dir'], { cwd: ROOT }).status === 0;
if (!isCheckout) process.stderr.write('skipped: modes of committed files; this is no git checkout\n');

describe('committed modes', () => {
  (isCheckout ? it : it.skip)('every program that names its interpreter is executable', () => {
    const listed = spawnSync('git', ['ls-files', '--stage', '-z'], { cwd: ROOT, encoding: 'utf8' }).stdout;
    const programs = listed
      .split('\0')
      .map((entry) => /^(\d+) \S+ \d\t(.+)$/s.exec(entry))
      .flatMap((found) => (found === null ? [] : [{ mode: found[1], path: found[2] ?? '' }]))
      .filter(({ path }) => existsSync(join(ROOT, path)) && readFileSync(join(ROOT, path), 'latin1').startsWith('#!'));
    expect(programs).toContainEqual({ mode: '100755', path: 'bin/ebb.mjs' });
    expect(programs.filter(({ mode }) => mode !== '100755')).toEqual([]);
  });
});

describe('the launcher', () => {
  it('runs the sources of a checkout', () => {
    const { status, stdout } = run(process.execPath, join(ROOT, 'bin', 'ebb.mjs'), '--version');
    expect(status).toBe(0);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(stdout.trim()).toBe(version);
  });

  it('compiles a package that was packed without being built, once, and keeps the exit code', () => {
    const source = 'const code: number = 7;\nprocess.exitCode = code;\nconsole.log(import.meta.url);\n';
    const launcher = packaged('unbuilt', source);
    const first = run(process.execPath, launcher);
    expect(first.stderr).toBe('');
    expect(first.status).toBe(7);
    expect(first.stdout).toContain('/dist/bin/ebb.js');
    expect(run(process.execPath, launcher).status).toBe(7);
  });

  it('says what to do when there is neither a build nor anything to build', () => {
    const { status, stderr } = run(process.execPath, packaged('empty', null));
    expect(status).toBe(1);
    expect(stderr).toContain('npm run package');
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  withOldNode('runs the packaged Node where its own is too old, with arguments and exit code', () => {
    const source = 'console.log(process.versions.node, process.argv.slice(2).join()); process.exitCode = 5;';
    const { status, stdout } = run(oldNode ?? '', packaged('relaunch', source), 'a', '--b');
    expect(stdout).toMatch(/^2[4-9]\.\S+ a,--b\n$/);
    expect(status).toBe(5);
  });

  withOldNode('explains what is missing where there is no packaged Node', () => {
    const { status, stderr } = run(oldNode ?? '', packaged('alone', 'export {};', false));
    expect(status).toBe(9);
    expect(stderr).toContain('(node-version)');
    expect(stderr).toContain('install Node 24');
  });

  withOldNode('ends by the signal that ended the program', () => {
    const { status, signal } = run(oldNode ?? '', packaged('killed', "process.kill(process.pid, 'SIGKILL');"));
    expect([status, signal]).toEqual([null, 'SIGKILL']);
  });
});

/** Counts stop requests into its output and ends at the second. */
const COUNTER = `
import { onStopRequest } from ${JSON.stringify(join(ROOT, 'lib', 'cli', 'signals.ts'))};
const idle = setInterval(() => undefined, 1000);
onStopRequest((count: number, signal: string) => {
  console.log('stop', count, signal);
  if (count === 2) { clearInterval(idle); process.exitCode = 130; }
});
console.log('ready', process.pid);
`;

describe('signals through the launcher', () => {
  const pids: number[] = [];
  afterEach(() => {
    for (const pid of pids.splice(0)) if (lives(pid)) process.kill(pid, 'SIGKILL');
  });
  async function started(name: string): Promise<{ launcher: ChildProcess; output: () => string; pid: number }> {
    const launcher = spawn(oldNode ?? '', [packaged(name, COUNTER)], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    launcher.stdout.on('data', (chunk) => (output += String(chunk)));
    await until(() => output.includes('ready'));
    const pid = Number(/ready (\d+)/.exec(output)?.[1]);
    pids.push(pid);
    return { launcher, output: () => output, pid };
  }
  async function until(holds: () => boolean): Promise<void> {
    for (let i = 0; i < 200 && !holds(); i++) await delay(50);
    expect(holds()).toBe(true);
  }
  const lives = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  };

  withOldNode(
    'a Ctrl-C, which reaches the whole group, counts once; a kill of the launcher alone counts too',
    async () => {
      const { launcher, output } = await started('ctrl-c');
      const ended = new Promise<number | null>((resolve) => launcher.on('exit', resolve));
      process.kill(-(launcher.pid ?? 0), 'SIGINT');
      await until(() => output().includes('stop 1 SIGINT'));
      await delay(ONE_REQUEST_MS);
      expect(output()).not.toContain('stop 2');
      process.kill(launcher.pid ?? 0, 'SIGINT');
      expect(await ended).toBe(130);
      expect(output()).toContain('stop 2 SIGINT');
    },
  );

  withOldNode('a killed launcher asks the program to stop', async () => {
    const { launcher, pid, output } = await started('orphan');
    process.kill(launcher.pid ?? 0, 'SIGKILL');
    // Its output pipe outlives the launcher, so what it prints on the way is seen.
    await until(() => output().includes('stop 1 SIGTERM'));
    await delay(ONE_REQUEST_MS);
    process.kill(pid, 'SIGTERM');
    await until(() => !lives(pid));
  });
});
