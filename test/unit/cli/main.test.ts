import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ebb } from '../../support/run-ebb.ts';

describe('help', () => {
  it('is shown for --help and for no command at all, on standard output, as a success', async () => {
    for (const args of [['--help'], []]) {
      const { code, stdout, stderr } = await ebb(args);
      expect(code).toBe(0);
      expect(stderr).toBe('');
      for (const word of ['run', 'up', 'submit', 'explain', 'cost', 'market', 'completion']) {
        expect(stdout).toMatch(new RegExp(`^  ${word}\\b`, 'm'));
      }
    }
  });

  const COMMANDS = ['run', 'up', 'submit', 'jobs', 'status', 'watch', 'logs', 'cancel', 'release', 'explain'];
  it.each([...COMMANDS, 'cost', 'pools', 'instances', 'plans', 'config'])(
    '`%s --help` has an example, --json and the global options',
    async (command) => {
      const { code, stdout } = await ebb([command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toMatch(/Example:\n {2}\$ ebb /);
      expect(stdout).toContain('--json');
      expect(stdout).toContain('--url');
    },
  );

  it('prints the version of the package', async () => {
    const { stdout } = await ebb(['--version']);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(stdout).not.toBe('0.0.0\n');
  });
});

describe('mistakes on the command line', () => {
  it('suggests the command that was meant', async () => {
    const { code, stdout, stderr } = await ebb(['sumbit', 'x.yaml']);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain("unknown command 'sumbit'");
    expect(stderr).toContain('Did you mean submit?');
  });

  it('suggests the option that was meant', async () => {
    const { code, stderr } = await ebb(['jobs', '--ownr', 'me']);
    expect(code).toBe(2);
    expect(stderr).toContain('Did you mean --owner?');
  });

  it.each([
    [['run', '--speed', '0', 'x.yaml'], 'a number above 0'],
    [['run', '--speed', 'fast', 'x.yaml'], 'a number above 0'],
    [['run', '--seed', '-1', 'x.yaml'], 'a whole number from 0'],
    [['run', '--from', 'yesterday', 'x.yaml'], 'ISO 8601'],
    [['up', '--port', '70000'], '65535'],
    [['cost', '--by', 'week'], 'job, owner, caller, pool, template'],
    [['run', '--set', 'novalue', 'x.yaml'], 'KEY=VALUE'],
  ])('%j is refused with what is allowed', async (args, allowed) => {
    const { code, stderr } = await ebb(args);
    expect(code).toBe(2);
    expect(stderr).toContain(allowed);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it('run without a file says what to name', async () => {
    const { code, stderr } = await ebb(['run']);
    expect(code).toBe(2);
    expect(stderr).toContain('no job file was named');
    expect(stderr).toContain('ebb run --resume');
  });

  it('an address that anybody can reach needs a token', async () => {
    const { code, stderr } = await ebb(['up', '--bind', '0.0.0.0', '--no-token']);
    expect(code).toBe(2);
    expect(stderr).toContain('--bind 0.0.0.0 --no-token');
  });

  it.each([
    [['--token', 'secret-secret-secret', 'jobs']],
    [['jobs', '--token=secret-secret-secret']],
    [['up', '--token', 'secret-secret-secret']],
  ])('%j is refused: a token on the command line shows in ps', async (args) => {
    const { code, stderr } = await ebb(args);
    expect(code).toBe(2);
    expect(stderr).toContain('--token-file');
    expect(stderr).toContain('EBB_TOKEN');
    expect(stderr).not.toContain('secret-secret');
  });

  it('a token file that is missing, empty or no token is refused, and its text is not shown', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ebb-cli-token-'));
    writeFileSync(join(folder, 'empty'), '\n');
    writeFileSync(join(folder, 'prose'), 'two words');
    for (const name of ['absent', 'empty', 'prose']) {
      const { code, stderr } = await ebb(['jobs', '--token-file', name], { cwd: folder });
      expect([name, code]).toEqual([name, 2]);
      expect(stderr).toContain(join(folder, name));
      expect(stderr).not.toContain('two words');
    }
    const both = await ebb(['up', '--no-token'], { env: { EBB_TOKEN: 'x'.repeat(32) } });
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('contradicts')]);
  });

  it('an address of an engine that is no URL is refused', async () => {
    const { code, stderr } = await ebb(['jobs', '--url', '127.0.0.1:7788']);
    expect(code).toBe(2);
    expect(stderr).toContain('http(s) URL');
  });

  it('says it as JSON when JSON was asked for', async () => {
    const { code, stderr } = await ebb(['run', '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'usage', exit: 2, what: 'no job file was named' } });
  });
});

describe('without an engine', () => {
  it('names the address that does not answer and how to start one', async () => {
    const { code, stderr } = await ebb(['jobs'], { env: { EBB_URL: 'http://127.0.0.1:9' } });
    expect(code).toBe(10);
    expect(stderr).toContain('http://127.0.0.1:9');
    expect(stderr).toContain('ebb up');
  });
});

describe('job files that cannot be read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-cli-'));

  it('a missing file is named', async () => {
    const { code, stderr } = await ebb(['submit', 'nowhere.yaml'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('nowhere.yaml: no such file');
  });

  it('every syntax error has its line and column', async () => {
    writeFileSync(join(folder, 'bad.yaml'), 'name: x\nstages: [\n  - a: {\nlabels: "x\n');
    const { code, stderr } = await ebb(['submit', 'bad.yaml'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('job-file.syntax');
    expect(stderr).toMatch(/bad\.yaml:\d+:\d+: /);
  });

  it('a document that expands without end is refused', async () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x,x]',
      ...'bcdefg'.split('').map((c, i) => {
        const before = 'abcdefg'[i];
        return `${c}: &${c} [${Array<string>(10).fill(`*${before}`).join(',')}]`;
      }),
    ].join('\n');
    const { code, stderr } = await ebb(['submit', '-'], { input: bomb });
    expect(code).toBe(2);
    expect(stderr).toContain('Excessive alias count');
  });
});

describe('config', () => {
  it('lists every setting with default and meaning', async () => {
    const { code, stdout } = await ebb(['config']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^cyclePeriodS +60 +/m);
  });

  it('--json gives the defaults as data', async () => {
    const { stdout } = await ebb(['config', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ preset: 'ebbtide', cyclePeriodS: 60 });
  });
});
