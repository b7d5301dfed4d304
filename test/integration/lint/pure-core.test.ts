/** The linter as it is configured, on a file of the pure core in a folder of its own. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LINTER = join(ROOT, 'node_modules', 'oxlint', 'bin', 'oxlint');

/** One a line: what it must be refused for, or null. */
const LINES: readonly (readonly [string, string | null])[] = [
  ['export const now = Date.now();', 'reads-no-world'],
  ['export const today = new Date();', 'reads-no-world'],
  ['export const at = new Date(0);', null],
  ['export const sinceStart = performance.now();', 'reads-no-world'],
  ['export const chance = Math.random();', 'reads-no-world'],
  ['export const id = crypto.randomUUID();', 'reads-no-world'],
  ['export const home = process.argv;', 'no-restricted-globals'],
  ['setTimeout(() => 1, 1);', 'no-restricted-globals'],
  ["export { readFileSync } from 'node:fs';", 'no-restricted-imports'],
  ["export { readFile } from 'node:fs/promises';", 'no-restricted-imports'],
  ["export { S3Client } from '@aws-sdk/client-s3';", 'no-restricted-imports'],
  ["export { posix } from 'pathe';", null],
  // Needs types: the compiler's part of the linter is there, too.
  ['Promise.resolve(1);', 'no-floating-promises'],
];

interface Found {
  readonly code: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

describe('the linter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-lint-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    ['lib/stages/plan', () => true],
    ['lib/drivers/aws', (rule: string) => rule === 'no-floating-promises'],
  ] as const)('knows in %s what the pure core may not', (where, applies) => {
    lay(folder, where);
    const { stdout } = spawnSync(process.execPath, [LINTER, '--format', 'json', where], {
      cwd: folder,
      encoding: 'utf8',
    });
    const found = (JSON.parse(stdout) as { diagnostics: Found[] }).diagnostics.map(
      ({ code, labels }) => [labels[0]?.span.line, /\((.*)\)/.exec(code)?.[1]] as const,
    );
    const wanted = LINES.flatMap(([, rule], i) => (rule !== null && applies(rule) ? [[i + 1, rule] as const] : []));
    expect(found.sort(([a = 0], [b = 0]) => a - b)).toEqual(wanted);
  });
});

function lay(folder: string, where: string): void {
  for (const part of ['.oxlintrc.json', 'scripts/lint', 'tsconfig.json']) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  rmSync(join(folder, 'node_modules'), { force: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, where), { recursive: true });
  writeFileSync(join(folder, where, 'all.ts'), `${LINES.map(([line]) => line).join('\n')}\n`);
}
