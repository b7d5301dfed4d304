import { afterAll, describe } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeMissing } from './required.ts';

/**
 * A file system of a few KiB or MiB, which really runs full. Mounts need root, or a kernel that maps users (unshare).
 */
export interface SmallDisk {
  readonly path: string;
  unmount(): void;
}

export function mountSmallDisk(size: string): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'ebb-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'none', path], { stdio: 'pipe' });
  } catch (error) {
    rmSync(path, { recursive: true });
    throw error;
  }
  return {
    path,
    unmount: () => {
      // Lazy: a process that is still ending may hold a file.
      execFileSync('umount', ['-l', path]);
      rmSync(path, { recursive: true });
    },
  };
}

function canMount(): boolean {
  try {
    mountSmallDisk('4k').unmount();
    return true;
  } catch {
    return false;
  }
}

/**
 * `describe` for tests on small disks; skipped with a message where nothing can be mounted. Disks go away at the end.
 */
export function describeOnSmallDisks(name: string, tests: (mount: (size: string) => string) => void): void {
  if (!canMount()) {
    describeMissing(name, 'tmpfs cannot be mounted here: run as root, or in `unshare -rm`', () => tests(() => ''));
    return;
  }
  describe(name, () => {
    const disks: SmallDisk[] = [];
    afterAll(() => {
      for (const disk of disks) disk.unmount();
    });
    tests((size) => {
      const disk = mountSmallDisk(size);
      disks.push(disk);
      return disk.path;
    });
  });
}
