import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JournalReader, JournalWriter } from '../../../../../lib/drivers/local/fleet/journal.ts';
import { KeptWork, newestFileMs } from '../../../../../lib/drivers/local/fleet/kept-work.ts';
import { fileName } from '../../../../../lib/drivers/local/fleet/layout.ts';
import { lockState, takeLock } from '../../../../../lib/drivers/local/fleet/lock.ts';
import { LogFile } from '../../../../../lib/drivers/local/fleet/log-file.ts';
import { leaderOf, processStart } from '../../../../../lib/drivers/local/fleet/processes.ts';
import { sampleProc, sampleTree, sharedOutBytes } from '../../../../../lib/drivers/local/fleet/usage.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-parts-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('file names', () => {
  it('are names, not paths, short enough, and distinct for distinct ids', () => {
    const id = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.string({ unit: fc.constantFrom('.', '/', '*', 'a'), maxLength: 300 }),
    );
    fc.assert(
      fc.property(id, id, (a, b) => {
        const name = fileName(a);
        expect(name).toMatch(/^[^/\\\0*]+$/);
        expect(['.', '..']).not.toContain(name);
        expect(name.length).toBeLessThanOrEqual(160);
        expect(fileName(b) === name).toBe(a === b);
      }),
      { seed: 7 },
    );
  });
});

describe('journal', () => {
  it('is read as far as its lines are complete', () => {
    const path = join(dir, 'journal');
    const reader = new JournalReader(path);
    expect(reader.read()).toEqual([]);
    const writer = new JournalWriter(path, 0, () => undefined);
    writer.observe({ kind: 'instance-ready', atMs: 1 });
    writer.taken('key', null, null);
    expect(reader.read()).toEqual([
      { sequence: 1, kind: 'instance-ready', atMs: 1 },
      { taken: 'key', attempt: null, checkpointDir: null },
    ]);
    appendFileSync(path, '{"sequence":2,"kind":"inst');
    expect(reader.read()).toEqual([]);
    reader.dropTornLine();
    writer.observe({ kind: 'instance-rebalance', atMs: 2 });
    expect(reader.read()).toEqual([{ sequence: 2, kind: 'instance-rebalance', atMs: 2 }]);
    writer.close();
  });

  it('keeps what a full disk refuses, and says so', () => {
    const writer = new JournalWriter('/dev/full', 0, () => undefined);
    writer.observe({ kind: 'instance-ready', atMs: 1 });
    expect(writer.flush()).toBe(false);
    writer.close();
  });
});

describe('kept work', () => {
  const write = (name: string, atMs: number): void => {
    writeFileSync(join(dir, name), '');
    utimesSync(join(dir, name), atMs / 1000, atMs / 1000);
  };

  it('counts from the newest finished file of this attempt, within the times it was looked at', () => {
    const wallMs = Date.now();
    write('old', wallMs - 60_000);
    // Engine time is 10 times the wall; the attempt starts at 1,000,000 ms.
    const kept = new KeptWork(dir, 1_000_000, 10);
    expect(kept.update(1_010_000)).toBe(0);
    write('half.tmp', wallMs);
    write('.hidden', wallMs);
    expect(kept.update(1_020_000)).toBe(0);
    mkdirSync(join(dir, 'deep'));
    // Its age says a day before; it was not there at the last look.
    write(join('deep', 'jumped-back'), wallMs - 86_400_000);
    write('state', wallMs - 50_000);
    expect(kept.update(1_030_000)).toBe(20);
    expect(kept.update(1_040_000)).toBe(20);
    // The system's clock jumped ahead: no more than now.
    write('state', wallMs + 86_400_000);
    expect(kept.update(1_050_000)).toBe(50);
  });

  it('has no newest file where there is no directory', () => {
    expect(newestFileMs(join(dir, 'absent'))).toBeNull();
  });
});

describe('log file', () => {
  it('keeps what fits, then says that it ends', () => {
    const log = new LogFile(join(dir, 'deep', 'log'), 10);
    for (const text of ['12345', '67890abc', 'more']) log.write(Buffer.from(text));
    log.close();
    expect(readFileSync(join(dir, 'deep', 'log'), 'utf8')).toBe(
      '1234567890\n[ebb: log ends here, its limit is 10 bytes]\n',
    );
  });

  it('survives a disk with no room and a file that cannot be made', () => {
    for (const path of ['/dev/full', join('/dev/null', 'log')]) {
      const log = new LogFile(path, 100);
      log.write(Buffer.from('lost'));
      expect(() => log.close()).not.toThrow();
    }
  });
});

describe('lock', () => {
  it('is taken once, held while its owner lives and dead after it', () => {
    const path = join(dir, 'lock');
    expect(lockState(path)).toBe('free');
    expect(takeLock(path)).toBe(true);
    expect(takeLock(path)).toBe(false);
    expect(lockState(path)).toBe('held');
    // The same pid, started at another time, is another process.
    writeFileSync(path, JSON.stringify({ pid: process.pid, started: 'before' }));
    expect(lockState(path)).toBe('dead');
  });
});

describe('processes', () => {
  it('are told from later ones with the same pid', async () => {
    const child = spawn('sleep', ['900'], { detached: true });
    await once(child, 'spawn');
    const pid = child.pid ?? 0;
    expect(processStart(pid)).not.toBeNull();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    expect(leaderOf(`${pid}\n${stat}`, Date.now())).toBe(pid);
    const older = stat.replace(/^((?:\S+ ){21})\S+/, '$11');
    expect(leaderOf(`${pid}\n${older}`, Date.now())).toBeNull();
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(processStart(pid)).toBeNull();
    expect(leaderOf(`${pid}\n${stat}`, Date.now())).toBeNull();
  });

  it('are measured alike from /proc and by the portable packages', async () => {
    const child = spawn('sh', ['-c', 'sleep 900 & sleep 901 & wait'], { detached: true });
    await once(child, 'spawn');
    const pid = child.pid ?? 0;
    try {
      // All three sleep: once two readings agree on two running `sleep`s, memory changes no more.
      const programs = (): string =>
        readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
          .trim()
          .split(' ')
          .map((c) => (c === '' ? '' : readFileSync(`/proc/${c}/comm`, 'utf8').trim()))
          .join(' ');
      const settled = async (): Promise<boolean> => {
        const [before] = sampleProc([pid]);
        await new Promise((resolve) => setTimeout(resolve, 50));
        return programs() === 'sleep sleep' && sampleProc([pid])[0]?.rssBytes === before?.rssBytes;
      };
      while (!(await settled()));
      const [own] = sampleProc([pid]);
      const other = await sampleTree(pid, import.meta.url);
      expect(own!.rssBytes).toBeGreaterThan(0);
      expect(Math.abs(own!.rssBytes - other!.rssBytes)).toBeLessThan(own!.rssBytes / 2);
      expect(sampleProc([2 ** 22 + 1])).toEqual([null]);
    } finally {
      process.kill(-pid, 'SIGKILL');
      await once(child, 'exit');
    }
  });

  (process.platform === 'linux' ? it : it.skip)(
    'of a child that has ended, but was not waited for, is none',
    async () => {
      const forks = 'import os, time\nif os.fork() == 0: os._exit(0)\nprint("forked", flush=True)\ntime.sleep(60)';
      const child = spawn('python3', ['-c', forks], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
      const pid = child.pid!;
      try {
        await once(child.stdout, 'data');
        const children = (): string => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
        const isZombie = (): boolean => readFileSync(`/proc/${children()}/stat`, 'utf8').includes(') Z ');
        while (!isZombie()) await new Promise((resolve) => setTimeout(resolve, 20));
        const bytes = sharedOutBytes(pid);
        expect(bytes).toBeGreaterThan(0);
        expect(bytes).toBeLessThanOrEqual(sampleProc([pid])[0]!.rssBytes);
      } finally {
        process.kill(-pid, 'SIGKILL');
        await once(child, 'exit');
      }
    },
  );
});
