import { matchesGlob } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { expandBraces, GLOB_LIMITS, globFault, globSize, isPlainPath, segmentsOf } from '../../../lib/domain/globs.ts';
import { matchesWildcard } from '../../../lib/domain/wildcard.ts';

/** Dynamic programming over prefixes: shares no idea with the greedy matcher. */
function matchesByTable(pattern: string, text: string): boolean {
  let row = Array.from({ length: text.length + 1 }, (_, t) => t === 0);
  for (const c of pattern) {
    const next: boolean[] = [];
    for (let t = 0; t <= text.length; t++) {
      next.push(
        c === '*' ? (row[t] ?? false) || (next[t - 1] ?? false) : t > 0 && row[t - 1] === true && text[t - 1] === c,
      );
    }
    row = next;
  }
  return row[text.length] ?? false;
}

describe('wildcards', () => {
  it('match as a table of all prefixes says', () => {
    const seen = { yes: 0, no: 0 };
    const letters = (unit: string): fc.Arbitrary<string> =>
      fc.string({ unit: fc.constantFrom(...unit), maxLength: 10 });
    fc.assert(
      fc.property(letters('ab*'), letters('ab'), (pattern, text) => {
        const is = matchesByTable(pattern, text);
        seen[is ? 'yes' : 'no']++;
        expect(matchesWildcard(pattern, text)).toBe(is);
      }),
      { seed: 1, numRuns: 5000 },
    );
    expect(Math.min(seen.yes, seen.no)).toBeGreaterThan(500);
  });

  it.each(['*'.repeat(63) + 'x', '*a'.repeat(32), '*-*1*'.repeat(12), 'a*'.repeat(32) + 'x'])(
    'end at once where a regular expression would backtrack for ever: %s',
    (pattern) => {
      expect(matchesWildcard(pattern, 'us-east-1a'.repeat(6))).toBe(matchesByTable(pattern, 'us-east-1a'.repeat(6)));
    },
  );
});

/** Whether one of the patterns that the braces stand for matches a path, name by name. */
function matches(pattern: string, path: string): boolean {
  const from = (segments: ReturnType<typeof segmentsOf>, names: readonly string[]): boolean => {
    const [segment, ...rest] = segments;
    const [name, ...deeper] = names;
    if (segment === undefined) return name === undefined;
    if (segment.is === 'folders' && rest.length === 0) {
      return names.length > 0 && names.every((each) => !each.startsWith('.'));
    }
    if (segment.is === 'folders') {
      return from(rest, names) || (name !== undefined && !name.startsWith('.') && from(segments, deeper));
    }
    if (name === undefined) return false;
    return (segment.is === 'name' ? segment.name === name : segment.matches(name)) && from(rest, deeper);
  };
  return (expandBraces(pattern) ?? []).some((each) => from(segmentsOf(each), path.split('/')));
}

describe('patterns of files', () => {
  const name = fc.constantFrom('a', 'b', 'ab', 'a.txt', '.b', 'c]', '7', '10', '-');
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
  const piece = fc.constantFrom(
    ...['a', 'b', '*', '?', '[ab]', '[!a]', '[^b.]', '[]c]', '[a-c]', '.', '.*', '*.txt', '{a,b}', '{a,.}*'],
    ...['{7..12..3}', '{a..c}', 'a{,b}', '{a,{b,ab}}', 'c]', '{7,1{0,1}}', '[-x]', '[*]'],
  );
  const segment = fc.oneof(
    { weight: 5, arbitrary: fc.array(piece, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('')) },
    { weight: 1, arbitrary: fc.constant('**') },
  );
  // `.` and `..` are folders, not names: Node takes them for names here, and resolves them where it walks.
  const glob = fc
    .array(segment, { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join('/'))
    .filter(
      (pattern) =>
        globFault(pattern) === null && !(expandBraces(pattern) ?? []).some((each) => /(^|\/)\.{1,2}(\/|$)/.test(each)),
    );

  it("match what Node's own patterns match", () => {
    const seen = { yes: 0, no: 0 };
    fc.assert(
      fc.property(glob, path, (pattern, file) => {
        const is = matchesGlob(file, pattern);
        seen[is ? 'yes' : 'no']++;
        expect([pattern, file, matches(pattern, file)]).toEqual([pattern, file, is]);
      }),
      { seed: 2, numRuns: 5000 },
    );
    expect(Math.min(seen.yes, seen.no)).toBeGreaterThan(300);
  });

  it('are counted exactly, and no shorter than they are', () => {
    const braces = fc.string({ unit: fc.constantFrom('{', '}', ',', 'a', '{1..3}', '.'), maxLength: 14 });
    let many = 0;
    fc.assert(
      fc.property(braces, (pattern) => {
        const all = expandBraces(pattern) ?? [];
        const size = globSize(pattern);
        expect(all).toHaveLength(size.alternatives);
        expect(size.characters).toBeGreaterThanOrEqual(all.join('').length);
        if (all.length > 1) many++;
      }),
      { seed: 3, numRuns: 3000 },
    );
    expect(many).toBeGreaterThan(100);
  });

  it.each([
    ['{a,b}'.repeat(22), 'stands for 4194304 patterns'],
    ['{a,b}'.repeat(800), 'stands for more than 10^15 patterns'],
    ['{,}'.repeat(1365), 'stands for more than 10^15 patterns'],
    ['{0..999999999999999}', 'stands for 1000000000000000 patterns'.replace('1000000000000000', 'more than 10^15')],
    ['{1..999}' + 'x'.repeat(4000), 'characters together'],
    ['{a,..}/x', 'leads out'],
    ['.{.,a}/x', 'leads out'],
    ['data\\\\*.csv', 'has a backslash'],
    ['{a,/etc/passwd}', 'leads out'],
    ['a!(b)', 'extended pattern'],
    ['[[:alpha:]]', 'class by name'],
  ])('are refused before they are written out: %.40s', (pattern, why) => {
    expect(globFault(pattern)).toContain(why);
  });

  it.each([
    '{'.repeat(4096),
    '}'.repeat(4096),
    '{a,'.repeat(1365),
    '{a,{b,'.repeat(600),
    '['.repeat(4096),
    '*'.repeat(4096),
  ])('are read in time however odd they are: %.12s...', (pattern) => {
    expect(globSize(pattern).alternatives).toBe(1);
    expect(globFault(pattern)).toBeNull();
    expect(matches(pattern.slice(0, 300), 'ab'.repeat(100))).toBe(pattern.startsWith('*'));
  });

  it('take what people write', () => {
    for (const fine of ['a/**/*.csv', '{a,b}/[0-9]?.txt', 'out/{index}.json', '{0..999}.exr', 'a[(]1).txt', 'x{y']) {
      expect(globFault(fine)).toBeNull();
    }
    expect(['a/b.txt', 'x{y}', 'a*', '{a,b}', '**'].map(isPlainPath)).toEqual([true, true, false, false, false]);
    expect(expandBraces('{08..10}-{a,b}')).toEqual(['08-a', '08-b', '09-a', '09-b', '10-a', '10-b']);
    expect(expandBraces('{3..-1..2}')).toEqual(['3', '1', '-1']);
    expect(expandBraces('a{1..2', GLOB_LIMITS.alternatives)).toEqual(['a{1..2']);
  });
});
