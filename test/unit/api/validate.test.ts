import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { EbbError, type Issue } from '../../../lib/kernel/errors.ts';
import { nearestName } from '../../../lib/domain/nearest-name.ts';
import { check, queryValues, quoted, refuse, repeatable } from '../../../lib/api/validate.ts';

const schema = z.strictObject({
  limit: z.string().regex(/^\d+$/, 'must be a whole number').optional(),
  state: z.array(z.enum(['open', 'over'])).optional(),
});

describe('other words', () => {
  it('stand for keys where these are allowed', () => {
    expect(nearestName('ram', ['cpu', 'memory', 'gpus', 'disk'])).toBe('memory');
    expect(nearestName('cores', ['cpu', 'memory'])).toBe('cpu');
    expect(nearestName('constructor', ['cpu', 'memory'])).toBeNull();
  });
});

describe('nearest names', () => {
  it.each([
    ['limt', 'limit'],
    ['LIMIT', 'limit'],
    ['sate', 'state'],
  ])('%s is a misspelling of %s', (given, meant) => {
    expect(nearestName(given, ['limit', 'state', 'cursor'])).toBe(meant);
  });

  it('offers nothing for a name that is like none', () => {
    expect(nearestName('zebra', ['limit', 'state'])).toBeNull();
    expect(nearestName('xy', ['limit'])).toBeNull();
    // Three letters of three are another word.
    expect(nearestName('ram', ['cpu', 'gpus', 'disk'])).toBeNull();
    expect(nearestName('b', ['a'])).toBeNull();
  });
});

describe('checking', () => {
  it('reports all findings at once, with a hint for each unknown name', () => {
    const issues: Issue[] = [];
    const values = queryValues({ limit: ['ten'], state: ['open', 'shut'], stat: ['open'] }, repeatable(schema), issues);
    check(schema, values, 'query', issues);
    expect(issues).toEqual([
      { at: 'query.limit', message: 'must be a whole number' },
      { at: 'query.state.1', message: expect.stringContaining('open') },
      { at: 'query.stat', message: 'unknown; did you mean "state"?' },
    ]);
  });

  it('takes a repeatable name as a list and refuses another one that comes twice', () => {
    const issues: Issue[] = [];
    expect(queryValues({ state: ['open'], limit: ['1', '2'] }, repeatable(schema), issues)).toEqual({
      state: ['open'],
    });
    expect(issues).toEqual([{ at: 'query.limit', message: 'given more than once' }]);
  });

  it('throws one usage error that holds every finding', () => {
    const refused = (): void =>
      refuse(
        [
          { at: 'query.a', message: 'x' },
          { at: 'query.b', message: 'y' },
        ],
        'bad',
      );
    expect(refused).toThrow(EbbError);
    expect(refused).toThrow('bad: 2 findings');
    expect(() => refuse([], 'bad')).not.toThrow();
  });

  it('escapes what it shows', () => {
    expect(quoted('a\u0000b\ud800')).toBe('"a\\u0000b\ufffd"');
    expect(quoted('x'.repeat(100)).length).toBeLessThan(70);
  });
});
