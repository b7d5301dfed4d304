import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENTRIES_AT_ONCE, folderSize } from '../../../../lib/drivers/local/disk/folder-size.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-size-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const file = (name: string, bytes: number): string => {
  const path = join(dir, name);
  writeFileSync(path, Buffer.alloc(bytes, 'x'));
  return path;
};
const NO_PAUSE = { pause: async () => undefined };
/** What the system's own tool says. */
const du = (): number => Number(execFileSync('du', ['-sk', dir], { encoding: 'utf8' }).split('\t')[0]) * 1024;

describe('the size of a folder', () => {
  it('is that of du: blocks, files with several names once, links not followed, folders counted', async () => {
    mkdirSync(join(dir, 'a', 'b', 'c'), { recursive: true });
    file('one', 1);
    file('a/b/c/large', 3_000_000);
    linkSync(file('a/linked', 500_000), join(dir, 'a', 'b', 'again'));
    file('a/sparse', 1);
    truncateSync(join(dir, 'a', 'sparse'), 1_000_000_000);
    symlinkSync('/', join(dir, 'a', 'everything'));
    const { bytes, entries } = await folderSize(dir, NO_PAUSE);
    expect(bytes).toBe(du());
    // The folder, its three folders, four files, one link.
    expect(entries).toBe(9);
    expect(bytes).toBeGreaterThan(3_500_000);
    expect(bytes).toBeLessThan(5_000_000);
  });

  it('is taken a few entries at a time, with a turn for everybody else after each', async () => {
    const count = 5 * ENTRIES_AT_ONCE + 7;
    for (let i = 0; i < count; i++) file(`f${i}`, 1);
    let pauses = 0;
    const { entries } = await folderSize(dir, { pause: async () => void pauses++ });
    expect(entries).toBe(count + 1);
    expect(pauses).toBe(6);
  });

  it('passes over what goes meanwhile, and what is not there', async () => {
    for (let i = 0; i < 3; i++) {
      mkdirSync(join(dir, `d${i}`));
      for (let n = 0; n < ENTRIES_AT_ONCE; n++) file(`d${i}/f${n}`, 1);
    }
    let pauses = 0;
    const { entries } = await folderSize(dir, {
      pause: async () => {
        if (++pauses === 1) for (let i = 0; i < 3; i++) rmSync(join(dir, `d${i}`), { recursive: true, force: true });
      },
    });
    expect(entries).toBeLessThan(3 * ENTRIES_AT_ONCE);
    expect(await folderSize(join(dir, 'nothing'), NO_PAUSE)).toEqual({ bytes: 0, entries: 0 });
  });

  it('ends when it is told to', async () => {
    const stop = new AbortController();
    for (let i = 0; i < 2 * ENTRIES_AT_ONCE; i++) file(`f${i}`, 1);
    const measuring = folderSize(dir, { pause: async () => stop.abort(), signal: stop.signal });
    await expect(measuring).rejects.toThrow(/abort/);
  });
});
