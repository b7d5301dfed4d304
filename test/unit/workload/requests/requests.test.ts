import { afterAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { openRequests } from '../../../../lib/workload/requests/open.ts';
import { firstMinutes, meanRps, scaledTo } from '../../../../lib/workload/requests/trace.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-requests-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let files = 0;
/** A file of these lines, opened. */
function opened(...lines: readonly string[]) {
  const path = join(scratch, `trace-${files++}.csv`);
  writeFileSync(path, lines.join('\n'));
  return openRequests(path);
}

describe('a request trace', () => {
  it('has requests by the minute, whatever the order of its rows', async () => {
    const { perMinute, notes } = await opened(
      'minute,requests',
      '1995-08-28 00:01:00,124',
      '1995-08-28 00:00:00,44',
      '1995-08-28 00:02:00,80',
    );
    expect([...perMinute]).toEqual([44, 124, 80]);
    expect(notes).toEqual([]);
  });

  it('does not know minutes without a row, and knows those without requests', async () => {
    const { perMinute, notes } = await opened(
      'month,minute_index,requests',
      '1995-07,44639,7',
      '1995-08,0,0',
      '1995-08,2,60',
    );
    expect([...perMinute]).toEqual([7, 0, NaN, 60]);
    expect(notes).toEqual(['1 minutes have no row: nothing is known of them.']);
    expect(meanRps({ perMinute })).toBeCloseTo(67 / 3 / 60, 12);
  });

  it('leaves out a last minute that was not over', async () => {
    const { perMinute, notes } = await opened('minute_index,tweets', '0,2786', '1,2711', '2,2');
    expect([...perMinute]).toEqual([2786, 2711]);
    expect(notes.join()).toContain('last minute');
  });

  it('adds up rows of one minute, and counts unusable ones', async () => {
    const { perMinute, notes } = await opened('minute_index,tweets', '0,5', '0,6', 'x,1', '1,-4', '1.5,3', '1,9');
    expect([...perMinute]).toEqual([11, 9]);
    expect(notes.join()).toContain('3 unusable rows, the first at line 4');
  });

  it('may be compressed, and in a folder with other files', async () => {
    const folder = join(scratch, 'folder');
    mkdirSync(folder);
    writeFileSync(join(folder, 'README.txt'), 'about');
    writeFileSync(join(folder, 'a.csv.gz'), gzipSync('minute_index,tweets\n0,3\n1,4\n'));
    const { name, perMinute } = await openRequests(folder);
    expect(name).toBe('folder');
    expect([...perMinute]).toEqual([3, 4]);
  });

  it.each([
    ['another table', ['a,b', '1,2'], /no request trace/],
    ['no rows', ['minute,requests'], /without a usable row/],
    ['no usable row', ['minute,requests', 'yesterday,4'], /line 2: a row has a minute and a count/],
    ['times far apart', ['minute,requests', '1970-01-01 00:00:00,4', '2020-01-01 00:00:00,4'], /more than ten years/],
  ])('is refused with %s', async (_, lines, message) => {
    await expect(opened(...lines)).rejects.toThrow(message);
  });

  it('is scaled to a mean over what is known, and cut', () => {
    const trace = { perMinute: Float64Array.of(60, NaN, 180) };
    expect([...scaledTo(trace, 4).perMinute]).toEqual([120, NaN, 360]);
    expect([...firstMinutes(trace, 1).perMinute]).toEqual([60]);
    expect(() => scaledTo({ perMinute: Float64Array.of(0) }, 4)).toThrow(/without requests/);
    expect(() => scaledTo(trace, 0)).toThrow(/above 0/);
  });
});
