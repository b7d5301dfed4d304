import { describe, expect, it } from '@jest/globals';
import { checkedSettings } from '../../../lib/cli/engine-options.ts';
import { asEbbError, renderError } from '../../../lib/cli/failure.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { PLAIN } from '../../support/run-ebb.ts';

const shownOf = (set: Readonly<Record<string, unknown>>): string => {
  try {
    checkedSettings(set);
  } catch (error) {
    if (error instanceof EbbError) return renderError(error, PLAIN);
  }
  return 'no error';
};

describe('an error of the system', () => {
  const system = (code: string): Error => Object.assign(new Error(`${code}: refused, mkdir '/x/y'`), { code });

  it.each([
    ['ENOTDIR', 'usage'],
    ['EROFS', 'usage'],
    ['ENOSPC', 'store.full'],
    ['ENOENT', 'usage'],
    ['EIO', 'internal'],
  ])('%s is %s, with the path', (code, expected) => {
    const error = asEbbError(system(code));
    expect(error.code).toBe(expected);
    expect(renderError(error, PLAIN)).toContain(`${code}: refused, mkdir '/x/y'`);
  });
});

describe('an error on the terminal', () => {
  it('names a single setting that is none, and the nearest one', () => {
    expect(shownOf({ bilings: 'x' })).toMatch(/bilings: no such setting; did you mean billing\?/);
  });

  it('names what a setting may be', () => {
    expect(shownOf({ billing: 'weird' })).toMatch(/billing: .*"per-second"\|"per-hour"/);
    expect(shownOf({ slotS: -1 })).toMatch(/slotS: .*>/);
  });

  it('says once what the headline says already', () => {
    const error = new EbbError('usage', { what: 'cpu is above 0', issues: [{ at: 'cpu', message: 'cpu is above 0' }] });
    expect(renderError(error, PLAIN).match(/cpu is above 0/g)).toHaveLength(1);
  });
});
