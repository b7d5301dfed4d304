import { expect, it } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../../lib/drivers/local/fleet/files.ts';
import { JournalReader, JournalWriter } from '../../../lib/drivers/local/fleet/journal.ts';
import { NpyWriter } from '../../../lib/drivers/local/datasets/npy-file.ts';
import { describeOnSmallDisks } from '../../support/small-disk.ts';

/** Leaves `pages` pages of 4 KiB free. */
function fillBut(folder: string, pages: number): string {
  const path = join(folder, 'filler');
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(path, Buffer.alloc((bavail - pages) * bsize));
  return path;
}

describeOnSmallDisks('on a full disk', (mount) => {
  it('a file is replaced whole or not at all, and nothing is left over', () => {
    const disk = mount('256k');
    const path = join(disk, 'order.json');
    replaceFile(path, 'old');
    fillBut(disk, 4);
    // 20 KB where 16 KiB are free: the kernel takes the first part and says so only by the count.
    expect(() => replaceFile(path, 'n'.repeat(20_000), true)).toThrow(/ENOSPC/);
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(disk).sort()).toEqual(['filler', 'order.json']);
  });

  // Characters of three bytes, moved by one each time: the last free byte falls into the middle of one.
  it.each([1, 10, 100])('a journal goes on where it stopped, in the middle of a character too (%d)', (atMs) => {
    const disk = mount('256k');
    const path = join(disk, 'journal');
    const writer = new JournalWriter(path, 0, () => undefined);
    writer.observe({ kind: 'instance-ready', atMs });
    const filler = fillBut(disk, 0);
    const key = '\u20ac'.repeat(3000);
    writer.taken(key, 'a', 'c');
    expect(writer.flush()).toBe(false);
    truncateSync(filler, 0);
    expect(writer.flush()).toBe(true);
    writer.close();
    expect(new JournalReader(path).read()).toEqual([
      { sequence: 1, kind: 'instance-ready', atMs },
      { taken: key, attempt: 'a', checkpointDir: 'c' },
    ]);
  });

  it('a column of numbers fails instead of being cut', () => {
    const disk = mount('256k');
    mkdirSync(join(disk, 'columns'));
    fillBut(disk, 1);
    const column = new NpyWriter(join(disk, 'columns', 'x.npy'), 'float64');
    for (let i = 0; i < 1000; i++) column.push(i);
    expect(() => column.close()).toThrow(/ENOSPC/);
  });
});
