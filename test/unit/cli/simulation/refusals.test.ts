import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { ebb } from '../../../support/run-ebb.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-refused-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('ebb simulate, before anything is simulated,', () => {
  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['a preset that is none', ['--preset', 'best'], /no such preset[^]*got: +best[^]*ebbtide, /],
    ['two ways to name what decides', ['--preset', 'ebbtide', '--compare', 'ebbtide'], /both name what decides/],
    ['a workload that is not there', ['--workload', 'none.csv'], /no such file/],
    ['a folder without a workload', ['--workload', 'empty'], /the workload is empty/],
    ['a folder without prices', ['--market', 'empty'], /there is no market data: it is empty/],
    ['an empty file', ['--workload', 'empty.csv'], /empty\.csv/],
    ['a setting of the generator that is none', ['--workload', 'synthetic:jbos=3'], /jbos[^]*allowed:[^]*jobs/],
    ['times outside the market', ['--from', '2031-01-01T00:00:00Z'], /do not overlap in time/],
    [
      'an end before the beginning',
      ['--from', '2026-01-15T00:00:00Z', '--to', '2026-01-14T00:00:00Z'],
      /ends before it begins/,
    ],
    ['a report that cannot be written', ['--report', 'no/such/folder/r.html'], /its folder does not exist[^]*mkdir -p/],
    ['a log of several runs', ['--seeds', '2', '--log', 'l.jsonl'], /--log is the log of one simulation/],
    ['a log over its report', ['--report', 'r.html', '--log', 'r.html'], /name the same file/],
    ['a report in place of a device', ['--report', '/dev/null'], /no plain file/],
    ['no capacity at all', ['--vcpus', '0'], /--vcpus/],
    ['no seed', ['--seeds', '0'], /--seeds[^]*from 1 to/],
    ['no window', ['--windows', '0'], /--windows[^]*from 1 to/],
    ['a million windows', ['--windows', '1000000'], /--windows[^]*to 10000/],
    ['decisions ages apart', ['--gap', '1e300'], /--gap[^]*to 86400/],
    ['a setting that is none', ['--set', 'bilings=1'], /bilings: no such setting; did you mean billing/],
  ];
  it.each(wrong)('refuses %s', async (_what, args, says) => {
    const cwd = mkdtempSync(join(scratch, 'wrong-'));
    mkdirSync(join(cwd, 'empty'));
    writeFileSync(join(cwd, 'empty.csv'), '');
    const { code, stdout, stderr } = await ebb(['simulate', ...args], { cwd });
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/internal|^ +at /m);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });
});
