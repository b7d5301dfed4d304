import { describe, expect, it } from '@jest/globals';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import { diskText, type DiskLevel, type DiskState } from '../../../lib/domain/disk-budget.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work, type BenchOptions } from '../../support/engine-bench.ts';
import { zones } from '../../support/observed-run.ts';
import { after, mixedTrace, SAVES_SLOWLY, START_MS } from '../../support/mixed-workload.ts';

const GB = 1e9;
const diskAt = (level: DiskLevel, percent: number): DiskState => {
  const use = { usedBytes: (percent * GB) / 100, budgetBytes: GB, freeBytes: 50 * GB, reserveBytes: 0.25 * GB };
  return { level, use, text: diskText(use, level, '/e') };
};
const ENOUGH = diskAt('enough', 10);
const LOW = diskAt('low', 85);
const USED_UP = diskAt('used-up', 101);

const jobOf = (name: string, tasks: number, runtimeS: number, over: Partial<Job> = {}): Job => {
  const stages = [stage({ tasks, env: work(runtimeS), expectedRuntimeS: seconds(runtimeS) })];
  return job({ name, submittedMs: START_MS, spec: spec({ name, stages }), ...over });
};

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a disk that is used up, %s', (_, stepped) => {
  let disk: DiskState | null = null;
  const benchOf = (over: Partial<BenchOptions> = {}): EngineBench =>
    new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped, vcpus: 4, disk: () => disk, ...over });
  const set = (at: number, state: DiskState) => ({ atMs: after(at), act: async () => void (disk = state) });
  const told = async (bench: EngineBench) =>
    (await bench.store.events(0, 10_000)).filter((e) => e.type === 'disk-budget').map((e) => e.data['level']);

  it('holds starts until there is room, lets run what runs, and is told once for each level', async () => {
    disk = ENOUGH;
    const bench = benchOf();
    await bench.submit([jobOf('j-a', 8, 600)]);
    const held: { started: number; waiting: unknown; live: number }[] = [];
    const look = async (): Promise<void> => {
      const { waiting } = (await bench.store.explanation(jobId('j-a'))) ?? { waiting: [] };
      const live = (await bench.fleet.list()).filter((i) => i.live).length;
      held.push({ started: (await bench.store.attempts(jobId('j-a'))).length, waiting, live });
    };
    await bench.drive({
      deeds: [
        set(400, LOW),
        set(500, USED_UP),
        { atMs: after(700), act: look },
        { atMs: after(4000), act: look },
        set(4001, LOW),
        set(6000, ENOUGH),
      ],
    });
    const [first, later] = held;
    expect(first?.started).toBeGreaterThan(0);
    expect(first?.started).toBeLessThan(8);
    // An hour later nothing more has begun, nothing is paid for, and it says why.
    expect(later?.started).toBe(first?.started);
    expect(later?.live).toBe(0);
    expect(later?.waiting).toMatchObject([
      { why: 'disk', tasks: 8 - (first?.started ?? 0), detail: expect.stringContaining('the disk budget is used up') },
    ]);
    expect((await bench.store.attempts(jobId('j-a'))).map((a) => a.outcome)).toEqual(Array(8).fill('succeeded'));
    expect(await told(bench)).toEqual(['low', 'used-up', 'low']);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('moves nothing of what runs, which could not start again elsewhere', async () => {
    // It takes twice as long as was said, so that it leaves spot for its deadline.
    const slow = stage({
      tasks: 4,
      env: work(21_600),
      expectedRuntimeS: seconds(10_800),
      checkpoint: SAVES_SLOWLY,
      resources: resources(4),
    });
    const of = { class: 'deadline', deadline: { atMs: after(28_800) }, stages: [slow] } as const;
    const run = async (state: DiskState): Promise<number> => {
      disk = ENOUGH;
      const bench = benchOf({
        preset: 'spot-greedy',
        vcpus: 64,
        trace: zones({}),
        config: { hazardPriorPerHour: 0.05 },
      });
      await bench.submit([
        job({ name: 'j-a', submittedMs: START_MS, deadlineMs: after(28_800), spec: spec({ name: 'j-a', ...of }) }),
      ]);
      await bench.drive({ deeds: [set(400, state), set(20_000, ENOUGH)], withinS: 48 * 3600 });
      const attempts = await bench.store.attempts(jobId('j-a'));
      return attempts.filter((a) => a.outcome === 'moved' && raw(a.endedMs ?? START_MS) < raw(after(20_000))).length;
    };
    expect(await run(LOW)).toBe(4);
    expect(await run(USED_UP)).toBe(0);
  });

  it('lets a job be cancelled meanwhile', async () => {
    disk = USED_UP;
    const bench = benchOf();
    await bench.submit([jobOf('j-a', 2, 600)]);
    await bench.drive({
      deeds: [
        {
          atMs: after(600),
          act: async (store) => {
            // Nothing of it has ever run: that it waits for the disk is said all the same.
            const told = await store.explanation(jobId('j-a'));
            expect(told).toMatchObject({ headline: expect.stringContaining('the disk budget is used up') });
            await store.requestCancel(jobId('j-a'));
          },
        },
      ],
    });
    expect((await bench.job(jobId('j-a'))).state).toBe('cancelled');
    expect(await bench.store.attempts(jobId('j-a'))).toEqual([]);
  });

  it('is not told again by the next engine', async () => {
    disk = USED_UP;
    const bench = benchOf();
    await bench.submit([jobOf('j-a', 1, 60)]);
    for (let n = 0; n < 3; n++) {
      const engine = bench.driven();
      await engine.start();
      await engine.cycle();
    }
    expect(await told(bench)).toEqual(['used-up']);
    disk = ENOUGH;
    await bench.drive();
    expect(await told(bench)).toEqual(['used-up', 'enough']);
    expect((await bench.job(jobId('j-a'))).state).toBe('succeeded');
  });
});

it('where no disk is measured nothing is held or told', async () => {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, disk: () => null });
  await bench.submit([jobOf('j-a', 2, 60)]);
  await bench.drive();
  expect((await bench.job(jobId('j-a'))).state).toBe('succeeded');
  expect((await bench.store.events(0, 10_000)).filter((e) => e.type === 'disk-budget')).toEqual([]);
});
