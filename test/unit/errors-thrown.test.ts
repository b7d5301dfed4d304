import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ERROR_CODES } from '../../lib/kernel/errors.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Where the table is declared, and where codes are only read or documented. */
const NOT_THROWING = ['lib/kernel/errors.ts', 'lib/infra/'];

const sources = ['lib', 'lambdas', 'bin'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter((file) => /\.(ts|mjs)$/.test(file) && !NOT_THROWING.some((not) => file.startsWith(not)))
    .map((file) => readFileSync(join(ROOT, file), 'utf8')),
);

/**
 * A code is thrown where it is the code of a new error, the value of `code` in what becomes one, or an outcome of a
 * function or table that names codes. A code that stands only in comparisons (`=== 'x'`, `case 'x'`) or in comments is
 * not.
 */
function isThrown(code: string): boolean {
  const quoted = `'${code.replaceAll('.', '\\.')}'`;
  const thrown = new RegExp(
    [
      `new EbbError\\(\\s*${quoted}`,
      `\\bcode: ${quoted}`,
      `\\(${quoted}, `,
      `(?<![=!]=) ${quoted} (?=:)`,
      `[?:] ${quoted}`,
      `=> ${quoted}`,
      `return ${quoted}`,
      `, ${quoted}\\]`,
    ].join('|'),
  );
  return sources.some((text) => thrown.test(text.replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')));
}

describe('error codes', () => {
  it.each(Object.keys(ERROR_CODES))('%s is thrown somewhere', (code) => {
    expect(isThrown(code)).toBe(true);
  });

  it('that nobody throws are found', () => {
    expect(isThrown('no.such-code')).toBe(false);
  });
});
