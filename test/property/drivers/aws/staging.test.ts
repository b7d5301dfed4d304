import { matchesGlob } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inputScript, outputScript, unusablePattern } from '../../../../lib/drivers/aws/fleet/staging.ts';
import { fnmatch } from '../../../support/aws-cli.ts';

/** Patterns as local mode understands them (Node's own globs), and as the AWS CLI is told them. */

const WORKDIR = 's3://bucket/work';
const words = (line: string): string[] => [...line.matchAll(/'((?:[^']|'\\'')*)'/g)].map(([, w]) => w ?? '');

/**
 * Whether the CLI would take a file, by its rule: of the filters that match, the last one decides; `--exclude '*'` came
 * first.
 */
function taken(pattern: string, path: string): boolean {
  const script = inputScript(WORKDIR, [pattern]);
  const [uri = '', folder = '', said, ...filters] = words(script);
  if (script.startsWith('ebb_get_path')) return path === folder || path.startsWith(`${folder}/`);
  expect(said).toBe(pattern);
  const fixed = folder === '.' ? '' : folder;
  expect(uri).toBe(`${WORKDIR}/${fixed}`);
  if (!path.startsWith(fixed)) return false;
  let is = false;
  for (let i = 0; i < filters.length; i += 2) {
    if (fnmatch(filters[i + 1] ?? '').test(path.slice(fixed.length))) is = filters[i] === '--include';
  }
  return is;
}

const name = fc.constantFrom('a', 'b', 'ab', 'a.txt', 'b.txt');
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const wild = fc.constantFrom('*', 'a*', '*.txt', '?', '[ab]', '[!a]', 'a', 'b', 'ab');
const oneDepth = fc
  .array(wild, { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('/'))
  .filter((p) => /[*?[]/.test(p));
const braces = fc.tuple(name, name, fc.constantFrom('', '/*', '.txt')).map(([a, b, end]) => `{${a},${b}}${end}`);
const anyDepth = fc
  .tuple(fc.constantFrom('', 'a/', 'a/b/'), fc.constantFrom('**', '**/*.txt', '**/a', '**/b/*'))
  .map(([a, b]) => a + b);

describe('patterns for the AWS CLI', () => {
  it('write out ranges', () => {
    expect(words(inputScript(WORKDIR, ['f-{08..10}.exr']))).toEqual([
      `${WORKDIR}/`,
      '.',
      'f-{08..10}.exr',
      ...['f-08.exr', 'f-09.exr', 'f-10.exr'].flatMap((each) => ['--include', each]),
      ...['--exclude', '*/*'],
    ]);
  });

  it('over the limits stand for themselves, whoever let them through', () => {
    expect(words(inputScript(WORKDIR, ['{a,b}'.repeat(800)])).filter((w) => w === '--include')).toHaveLength(1);
  });

  it('of one depth take what local mode takes', () => {
    const seen = { taken: 0, left: 0 };
    fc.assert(
      fc.property(fc.oneof(oneDepth, braces), path, (pattern, file) => {
        const is = matchesGlob(file, pattern);
        seen[is ? 'taken' : 'left']++;
        expect(taken(pattern, file)).toBe(is);
      }),
      { seed: 7, numRuns: 2000 },
    );
    expect(Math.min(seen.taken, seen.left)).toBeGreaterThan(100);
  });

  it('of any depth take at least that', () => {
    let matches = 0;
    fc.assert(
      fc.property(anyDepth, path, (pattern, file) => {
        if (!matchesGlob(file, pattern)) return;
        matches++;
        expect(taken(pattern, file)).toBe(true);
      }),
      { seed: 7, numRuns: 2000 },
    );
    expect(matches).toBeGreaterThan(100);
  });

  it('end in one word of the shell each, whatever is in them', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        const pattern = `x${text.replaceAll(/[*?[\]{}!/\0]/g, '')}`;
        const line = inputScript(WORKDIR, [pattern]);
        expect(line.replaceAll("'\\''", '').split("'")).toHaveLength(5);
        expect(line.replaceAll("'\\''", "'")).toBe(`ebb_get_path '${WORKDIR}/${pattern}' '${pattern}'`);
      }),
      { seed: 7 },
    );
  });

  it('name files here and there', () => {
    expect(
      inputScript(WORKDIR, ['a/b.txt', 's3://other/data/x.csv', 's3://other/d/*/y', 's3://other/z']).split('\n'),
    ).toEqual([
      "ebb_get_path 's3://bucket/work/a/b.txt' 'a/b.txt'",
      "ebb_get_path 's3://other/data/x.csv' 'x.csv'",
      "ebb_get_glob 's3://other/d/' '.' 's3://other/d/*/y' '--include' '*/y' '--exclude' '*/*/*'",
      "ebb_get_path 's3://other/z' 'z'",
    ]);
    expect(outputScript(WORKDIR, ['out/0.json', 'tiles/**', 's3://other/res/0.json']).split('\n')).toEqual([
      "ebb_put_path 'out/0.json' 's3://bucket/work/out/0.json'",
      "ebb_put_glob 'tiles/' 's3://bucket/work/tiles/' 'tiles/**' '--include' '*'",
      "ebb_put_path '0.json' 's3://other/res/0.json'",
    ]);
    expect(inputScript(WORKDIR, [])).toBe('');
  });

  it('are refused where the CLI has nothing like them', () => {
    expect(unusablePattern('!(a)')).toContain('extended pattern');
    expect(unusablePattern('s3://bucket')).toContain('whole bucket');
    expect(unusablePattern('s3:bucket/a')).toContain('is no URI');
    expect(unusablePattern('{a,b}'.repeat(9))).toContain('becomes 512 patterns');
    expect(unusablePattern('**/'.repeat(9) + 'a')).toContain('becomes 512 patterns');
    expect(unusablePattern('**/'.repeat(1300) + 'a')).toContain('more than 10^15');
    expect(unusablePattern('{a,b}'.repeat(800))).toContain('fewer braces');
    for (const fine of ['report (1).txt', 'a/**/b', '{a,b}{a,b}', 's3://bucket/a/**'])
      expect(unusablePattern(fine)).toBeNull();
  });
});
