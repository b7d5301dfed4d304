import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { delegatedFolder, MemoryCage, type CgroupSystem } from '../../../../../lib/drivers/local/fleet/memory-limit.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-cgroup-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/**
 * A hierarchy in which the folders of `delegated` (below the mount point) give a new child the files of a memory
 * controller.
 */
function hierarchy(own: string, delegated: readonly string[], root = '/'): CgroupSystem {
  mkdirSync(join(dir, own), { recursive: true });
  return {
    own: `12:cpuset:/old\n0::${own}\n`,
    mounts: `24 1 0:22 / /proc rw - proc proc rw\n35 24 0:30 ${root} ${dir} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n`,
    makeFolder: (path) => {
      const parent = join(path, '..');
      if (!existsSync(parent)) throw new Error('ENOENT');
      if (!delegated.some((d) => resolve(dir, `.${d}`) === parent)) throw new Error('EACCES');
      mkdirSync(path);
      writeFileSync(join(path, 'memory.max'), 'max');
    },
  };
}

describe('the place for control groups of tasks', () => {
  it.each([
    ['below our own group, where that is given to us', '/user/own', ['/user/own', '/user'], '/user/own'],
    [
      'beside our own group, as in a session of systemd',
      '/user/app.slice/x.scope',
      ['/user/app.slice'],
      '/user/app.slice',
    ],
    ['nowhere, where nothing is given to us', '/user/own', [], null],
    ['at the top of a container', '/', ['/'], '/'],
  ])('is %s', (_, own, delegated, expected) => {
    const found = delegatedFolder(hierarchy(own, delegated));
    expect(found).toBe(expected === null ? null : resolve(dir, `.${expected}`));
  });

  it('is nowhere without cgroup v2, and where the mount shows another part of the hierarchy', () => {
    const system = hierarchy('/a', ['/a']);
    expect(delegatedFolder({ ...system, own: '3:memory:/a\n' })).toBeNull();
    expect(delegatedFolder({ ...system, mounts: '24 1 0:22 / /proc rw - proc proc rw\n' })).toBeNull();
    expect(delegatedFolder({ ...system, mounts: system.mounts.replace('0:30 /', '0:30 /elsewhere') })).toBeNull();
  });
});

describe('a control group of an attempt', () => {
  it('has the limit in bytes, and knows whether the kernel ended something in it', () => {
    const cage = MemoryCage.open('j-1.main.0.1', 150.5, dir)!;
    const folder = join(dir, 'ebb-j-1.main.0.1');
    expect(readFileSync(join(folder, 'memory.max'), 'utf8')).toBe(String(150.5 * 2 ** 20));
    expect(cage.procs).toBe(join(folder, 'cgroup.procs'));
    expect(cage.oomKilled).toBe(false);
    writeFileSync(join(folder, 'memory.events'), 'low 0\noom 1\noom_kill 1\noom_group_kill 1\n');
    expect(cage.oomKilled).toBe(true);
    expect(() => cage.close()).not.toThrow();
  });

  it('is none where it cannot be made', () => {
    expect(MemoryCage.open('a', 1, join(dir, 'absent'))).toBeNull();
    expect(MemoryCage.open('a', 1, null)).toBeNull();
  });
});
