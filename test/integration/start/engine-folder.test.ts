import { afterAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const EBB = join(process.cwd(), 'bin', 'ebb.ts');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-folder-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** With a time limit that ends a spinning process for sure. */
const ebb = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', EBB, ...args], {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });

function place(): string {
  const cwd = mkdtempSync(join(scratch, 'cwd-'));
  writeFileSync(join(cwd, 'job.json'), JSON.stringify({ name: 'n', command: 'true' }));
  writeFileSync(join(cwd, 'file'), '');
  return cwd;
}

describe('--dir that can be no folder of an engine', () => {
  it.each([
    'file',
    'file/below',
    '',
    '/proc/x',
    '/proc/self',
    '/proc/1/root/../x/y',
    '/sys/x',
    '/dev/null',
    '/dev/null/x',
  ])('%j: a usage error at once, and nothing is littered', (dir) => {
    const cwd = place();
    for (const command of [
      ['run', 'job.json'],
      ['up', '--port', '0'],
    ]) {
      const { status, stderr, signal } = ebb(cwd, ...command, '--dir', dir);
      expect({ signal, status, stderr }).toMatchObject({ signal: null, status: 2 });
      expect(stderr).toMatch(/usage/);
      expect(stderr).toMatch(/--dir/);
    }
    expect(readdirSync(cwd).sort()).toEqual(['file', 'job.json']);
    expect(statSync(join(cwd, 'file')).isFile()).toBe(true);
  });

  it('a new folder whose engine cannot begin goes again; one that was there stays', () => {
    const cwd = place();
    mkdirSync(join(cwd, 'mine'));
    for (const dir of ['a/b/new', 'mine']) {
      expect(ebb(cwd, 'run', 'job.json', '--dir', dir, '--market', 'nothing-here').status).toBe(2);
    }
    expect(existsSync(join(cwd, 'a'))).toBe(false);
    expect(existsSync(join(cwd, 'mine'))).toBe(true);
  });
});
