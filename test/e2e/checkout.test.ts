import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-checkout-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const word = (text: string): string => `export const word: string = '${text}';\n`;

/** A checkout with two sources: the program prints where it runs and the word of the other file. */
function checkout(): string {
  const root = mkdtempSync(join(scratch, 'c-'));
  cpSync(join(process.cwd(), 'bin'), join(root, 'bin'), { recursive: true });
  mkdirSync(join(root, 'lib'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(join(root, 'lib', 'word.ts'), word('one'));
  const main = "import { word } from '../lib/word.ts';\nconst at: string = import.meta.url;\nconsole.log(at, word);\n";
  writeFileSync(join(root, 'bin', 'ebb.ts'), main);
  return root;
}
const run = (root: string) => spawnSync(process.execPath, [join(root, 'bin', 'ebb.mjs')], { encoding: 'utf8' });
const copies = (root: string): string[] => readdirSync(join(root, '.cache', 'checkout'));
const longAgo = new Date(Date.now() - 2 * 3_600_000);

describe('a checkout', () => {
  it('runs from a compiled copy, which is made once', () => {
    const root = checkout();
    for (let i = 0; i < 2; i++) {
      const { stdout, stderr } = run(root);
      expect(stderr).toBe('');
      expect(stdout).toMatch(/\.cache\/checkout\/[0-9a-f]+\/bin\/ebb\.js one\n$/);
    }
    expect(copies(root)).toHaveLength(1);
  });

  it('never runs what was there before an edit, even one that keeps size and modification time', () => {
    const root = checkout();
    const file = join(root, 'lib', 'word.ts');
    const { atime, mtime } = statSync(file);
    expect(run(root).stdout).toContain(' one');
    writeFileSync(file, word('two'));
    utimesSync(file, atime, mtime);
    expect(run(root).stdout).toContain(' two');
    writeFileSync(file, word('three'));
    expect(run(root).stdout).toContain(' three');
  });

  it('does not see a source that is gone', () => {
    const root = checkout();
    run(root);
    rmSync(join(root, 'lib', 'word.ts'));
    const { status, stderr } = run(root);
    expect(status).toBe(1);
    expect(stderr).toContain('ERR_MODULE_NOT_FOUND');
  });

  it('runs its sources as they are where no copy can be made', () => {
    const root = checkout();
    writeFileSync(join(root, '.cache'), 'in the way');
    expect(run(root).stdout).toMatch(/bin\/ebb\.ts one\n$/);
  });

  it('shows the syntax error of a source that cannot be compiled', () => {
    const root = checkout();
    writeFileSync(join(root, 'lib', 'word.ts'), 'export const word: = 1;\n');
    const { status, stderr } = run(root);
    expect(status).toBe(1);
    expect(stderr).toContain('word.ts');
  });

  it('clears copies that nobody has used for a while, and keeps one that a living process uses', () => {
    const root = checkout();
    run(root);
    const [used = ''] = copies(root);
    writeFileSync(join(root, '.cache', 'checkout', used, `user.${process.pid}`), '');
    writeFileSync(join(root, 'lib', 'word.ts'), word('two'));
    run(root);
    const [unused = ''] = copies(root).filter((name) => name !== used);
    for (const name of [used, unused]) utimesSync(join(root, '.cache', 'checkout', name), longAgo, longAgo);
    writeFileSync(join(root, 'lib', 'word.ts'), word('three'));
    run(root);
    expect(copies(root)).toContain(used);
    expect(copies(root)).not.toContain(unused);
    expect(copies(root)).toHaveLength(2);
  });
});
