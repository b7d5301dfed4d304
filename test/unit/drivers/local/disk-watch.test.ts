import { describe, expect, it } from '@jest/globals';
import {
  defaultBudget,
  diskLevel,
  diskText,
  diskWayOut,
  reserveOf,
  type DiskLevel,
  type DiskUse,
} from '../../../../lib/domain/disk-budget.ts';
import { DiskWatch } from '../../../../lib/drivers/local/disk/disk-watch.ts';

const GB = 1e9;
const MIB = 1024 ** 2;
const use = (of: Partial<DiskUse>): DiskUse => ({
  usedBytes: 0,
  budgetBytes: GB,
  freeBytes: 100 * GB,
  reserveBytes: 256 * MIB,
  ...of,
});

describe('the level of a disk budget', () => {
  const levels = (percents: readonly number[]): DiskLevel[] => {
    let level: DiskLevel = 'enough';
    return percents.map((percent) => (level = diskLevel(use({ usedBytes: (percent * GB) / 100 }), level)));
  };

  it('begins at 80 and 100 %, and ends below 75 and 95 %, so that it is told once for each crossing', () => {
    expect(levels([79.9, 80, 79, 76, 75, 79, 80])).toEqual(['enough', 'low', 'low', 'low', 'enough', 'enough', 'low']);
    expect(levels([99.9, 100, 99, 95.1, 95, 99])).toEqual(['low', 'used-up', 'used-up', 'used-up', 'low', 'low']);
    expect(levels([150, 10])).toEqual(['used-up', 'enough']);
  });

  it('is used up as well where the file system itself has nothing but the reserve left', () => {
    const at = (freeMib: number, before: DiskLevel): DiskLevel => diskLevel(use({ freeBytes: freeMib * MIB }), before);
    expect([at(513, 'enough'), at(512, 'enough'), at(257, 'low'), at(256, 'low')]).toEqual([
      'enough',
      'low',
      'low',
      'used-up',
    ]);
    expect([at(300, 'used-up'), at(320, 'used-up'), at(600, 'low'), at(640, 'low')]).toEqual([
      'used-up',
      'low',
      'low',
      'enough',
    ]);
  });

  it('keeps 256 MiB in reserve, or 10 % of a small file system', () => {
    expect(reserveOf(500 * GB)).toBe(256 * MIB);
    expect(reserveOf(100 * MIB)).toBe(10 * MIB);
  });

  it('lets the folder grow by half of what is free unless told otherwise', () => {
    expect(defaultBudget({ usedBytes: 3 * GB, freeBytes: 10 * GB })).toBe(8 * GB);
  });

  it('is said with what is used, what is allowed and what to do, of what is short', () => {
    const full = use({ usedBytes: 1.02 * GB });
    expect(diskText(full, 'used-up', '/e')).toBe(
      'the disk budget is used up: /e uses 1.02 GB of 1 GB (102 %); tasks start again below 95 %',
    );
    expect(diskWayOut(full, '/e')).toMatch(/delete .* below \/e .*--disk.*historyDays/);
    const shared = use({ usedBytes: 0.9 * GB, freeBytes: 200 * MIB });
    expect(diskText(shared, 'used-up', '/e')).toMatch(
      /^the disk is nearly full: 210 MB are free on the file system of \/e/,
    );
    expect(diskText(shared, 'low', '/e')).toMatch(/^the disk runs low: /);
    expect(diskWayOut(shared, '/e')).toBe('free some space on the file system of /e');
  });
});

/** A watch on a folder that grows as the test says, on a clock of its own. */
class Bench {
  nowMs = 0;
  usedBytes = 0;
  freeBytes = 100 * GB;
  tookMs = 100;
  measurements = 0;
  readonly told: (readonly [DiskLevel | null, DiskLevel])[] = [];
  readonly watch: DiskWatch;

  constructor(limitBytes: number | null) {
    this.watch = new DiskWatch({
      dir: '/e',
      limitBytes,
      space: async () => ({ freeBytes: this.freeBytes, reserveBytes: 256 * MIB }),
      measure: async () => {
        this.measurements++;
        this.nowMs += this.tookMs;
        return this.usedBytes;
      },
      nowMs: () => this.nowMs,
    });
    this.watch.onLevel(({ level }, before) => this.told.push([before, level]));
  }

  /** Somebody writes there, or deletes. */
  write(bytes: number): void {
    this.usedBytes += bytes;
    this.freeBytes -= bytes;
  }

  async check(seconds = 1): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      this.nowMs += 1000;
      await this.watch.check();
      await this.watch.measured;
    }
  }
}

describe('a watch on the disk', () => {
  it('measures a folder at rest once in ten minutes, whatever its size', async () => {
    const bench = new Bench(10 * GB);
    bench.write(5 * GB);
    await bench.check(599);
    expect(bench.measurements).toBe(1);
    await bench.check(3);
    expect(bench.measurements).toBe(2);
  });

  it('measures again when what is free has moved, but for no more than a tenth of the time', async () => {
    const bench = new Bench(10 * GB);
    await bench.check();
    bench.write(0.04 * GB);
    await bench.check(30);
    expect(bench.measurements).toBe(1);
    bench.write(0.02 * GB);
    await bench.check(2);
    expect(bench.measurements).toBe(2);
    bench.tookMs = 20_000;
    for (let i = 0; i < 1000; i++) {
      bench.write(0.001 * GB);
      await bench.check();
    }
    // Each takes 20 s, and 200 s go by before the next one: five of them within 1000 s, and the one at first.
    expect(bench.measurements).toBeLessThanOrEqual(8);
    expect(bench.measurements).toBeGreaterThanOrEqual(4);
  });

  it('tells of each level once, and of the first one', async () => {
    const bench = new Bench(GB);
    await bench.check(3);
    for (const percent of [50, 31, 1, 20, -1, -10, -60, 85]) {
      bench.write((percent * GB) / 100);
      await bench.check(3);
    }
    expect(bench.told).toEqual([
      [null, 'enough'],
      ['enough', 'low'],
      ['low', 'used-up'],
      ['used-up', 'low'],
      ['low', 'enough'],
      ['enough', 'used-up'],
    ]);
    expect(bench.watch.state?.use).toMatchObject({ usedBytes: 1.16 * GB, budgetBytes: GB });
  });

  it('sees a file system that others fill without measuring anything', async () => {
    const bench = new Bench(null);
    bench.usedBytes = 2 * GB;
    bench.freeBytes = 8 * GB;
    await bench.check();
    expect(bench.watch.state?.use.budgetBytes).toBe(6 * GB);
    bench.freeBytes = 100 * MIB;
    bench.nowMs += 1;
    await bench.watch.check();
    expect(bench.watch.state?.level).toBe('used-up');
    expect(bench.measurements).toBe(1);
  });

  it('knows nothing where the file system does not answer, and says nothing after its end', async () => {
    const mute = new DiskWatch({
      dir: '/e',
      limitBytes: GB,
      space: async () => null,
      measure: async () => 1,
      nowMs: () => 0,
    });
    await mute.check();
    expect(mute.state).toBeNull();
    const bench = new Bench(GB);
    await bench.check();
    bench.watch.close();
    bench.write(2 * GB);
    await bench.check(3);
    expect(bench.told).toHaveLength(1);
  });
});
