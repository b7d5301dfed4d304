import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { targetsOf, unwritten, writeWhole } from '../../../../lib/cli/simulation/targets.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-targets-')));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);
writeFileSync(at('plain.html'), 'old');
symlinkSync(at('plain.html'), at('link.html'));
symlinkSync(at('gone.html'), at('dangling.html'));
mkdirSync(at('sub'));

describe('files that a simulation writes', () => {
  it('may be new, or there already; a link leads to its file', () => {
    expect(targetsOf({ report: at('new.html'), log: at('plain.html') })).toEqual({
      report: at('new.html'),
      log: at('plain.html'),
    });
    expect(targetsOf({ report: at('link.html'), log: null }).report).toBe(at('plain.html'));
  });

  it('may be a device for the log, which is written to and not replaced', () => {
    expect(targetsOf({ report: null, log: '/dev/null' }).log).toBe('/dev/null');
  });

  it.each([
    ['a device', '/dev/null', 'no plain file'],
    ['a link to nothing', at('dangling.html'), 'a link to nothing'],
    ['a folder', at('sub'), 'it is a folder'],
    ['a file in no folder', at('no/r.html'), 'its folder does not exist'],
  ])('are refused for a report: %s', (_what, report, says) => {
    expect(() => targetsOf({ report, log: null })).toThrow(says);
  });

  it('are not one and the same, whatever they are called', () => {
    expect(() => targetsOf({ report: at('x'), log: at('sub/../x') })).toThrow('name the same file');
    expect(() => targetsOf({ report: at('link.html'), log: at('plain.html') })).toThrow('name the same file');
  });

  it('are written whole or not at all, and what can no longer be written is said', () => {
    writeWhole(at('whole.html'), 'new');
    expect(readFileSync(at('whole.html'), 'utf8')).toBe('new');
    mkdirSync(at('meanwhile'));
    // A folder stands where the page was to go, and one that was there is gone.
    expect(() => writeWhole(at('meanwhile'), 'new')).toThrow(/--report could not be written.*meanwhile/);
    expect(() => writeWhole(at('gone/r.html'), 'new')).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(unwritten('--log', at('l'), Object.assign(new Error('no space'), { code: 'ENOSPC' })).code).toBe(
      'store.full',
    );
  });
});
