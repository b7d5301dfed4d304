import { expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processesOf } from '../../support/local-fleet.ts';
import { describeOnSmallDisks } from '../../support/small-disk.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.ts');
const ebb = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', EBB, ...args], {
    cwd,
    encoding: 'utf8',
    timeout: 120_000,
    killSignal: 'SIGKILL',
  });

describeOnSmallDisks('ebb run on a disk that runs full', (mount) => {
  const FAST = ['--speed', '120', '--seed', '3'];

  // From no room for the folder to room for most of the run.
  it.each([0, 4, 40, 200, 400, 700])('with %d KiB free it ends with store.full, and can be gone on with', (freeKib) => {
    const disk = mount('4m');
    const cwd = mkdtempSync(join(tmpdir(), 'ebb-full-'));
    const job = {
      name: 'n',
      tasks: 12,
      command: 'head -c 150000 /dev/zero | tr "\\0" x; sleep 0.2',
      resources: { cpu: 1, memory: '64MiB' },
      expectedRuntime: '1m',
    };
    writeFileSync(join(cwd, 'job.json'), JSON.stringify(job));
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(join(disk, 'filler'), Buffer.alloc(bavail * bsize - freeKib * 1024));
    const dir = ['--dir', join(disk, 'ebb')];
    const { status, stderr } = ebb(cwd, 'run', 'job.json', ...FAST, ...dir, '--no-color');
    expect({ status, stderr }).toMatchObject({ status: 9 });
    const [said, ...more] = stderr.split('\n').filter((line) => line.startsWith('error:'));
    expect(said).toContain('(store.full)');
    expect(more).toEqual([]);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(processesOf(disk)).toEqual([]);

    execFileSync('mount', ['-o', 'remount,size=64m', disk]);
    const isKept = stderr.includes('ebb run --resume');
    const again = isKept ? ebb(cwd, 'run', '--resume', ...dir) : ebb(cwd, 'run', 'job.json', ...FAST, ...dir);
    expect({ status: again.status, stderr: again.stderr }).toMatchObject({ status: 0 });
    expect(again.stdout).toContain('12 tasks');
    rmSync(cwd, { recursive: true });
  });
});
