import { describe, expect, it } from '@jest/globals';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, usd } from '../../../lib/kernel/units.ts';
import type { SchedulerConfig } from '../../../lib/domain/config.ts';
import type { DiskState } from '../../../lib/domain/disk-budget.ts';
import type { Attempt, Job } from '../../../lib/domain/job.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { Crashes, type CrashPoint } from '../../support/crashing.ts';
import { discrepancies, EngineBench, work, type Deed } from '../../support/engine-bench.ts';
import { after, MIXED_ENDS, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

const SHORT_S = 20;
const short = (name: string, tasks: number, more: Partial<Job> = {}): Job =>
  job({
    name,
    submittedMs: START_MS,
    ...more,
    spec: spec({
      name,
      ...more.spec,
      stages: [stage({ tasks, env: work(SHORT_S), expectedRuntimeS: seconds(SHORT_S) })],
    }),
  });

interface Given {
  readonly reusesSlots: boolean;
  readonly preset?: string;
  readonly vcpus?: number;
  readonly config?: Partial<SchedulerConfig>;
  readonly deeds?: readonly Deed[];
  readonly points?: readonly CrashPoint[];
  readonly disk?: () => DiskState;
  /** Is given the clock of the run. */
  readonly clock?: { now: () => number };
}

async function run(jobs: readonly Job[], { points = [], deeds = [], vcpus = 4, clock, ...options }: Given) {
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    vcpus,
    ...options,
    config: { refundRule: 'none', ...options.config },
  });
  if (clock !== undefined) clock.now = () => raw(bench.clock.now());
  const crashes = new Crashes(points, bench.clock);
  await bench.submit(jobs);
  await bench.drive({ deeds, through: () => crashes.between() });
  const attempts = (await Promise.all((await bench.jobs()).map((j) => bench.store.attempts(j.id)))).flat();
  return { bench, crashes, attempts, decided: bench.cycles.filter((c) => c.plan !== null).length };
}

/** Attempts that no plan has: they were given a place between two decisions. */
async function givenOn({ bench, attempts }: Awaited<ReturnType<typeof run>>): Promise<readonly Attempt[]> {
  const planned = new Set(
    bench.cycles.flatMap((c) => c.plan?.effects ?? []).flatMap((e) => (e.kind === 'start' ? [e.attempt] : [])),
  );
  return attempts.filter((a) => !planned.has(a.id));
}

/** Most milli-vCPUs that attempts held at once on an instance. */
function fullest(attempts: readonly Attempt[]): number {
  let most = 0;
  for (const a of attempts) {
    const there = attempts.filter(
      (b) =>
        b.instance === a.instance &&
        raw(b.placedMs) <= raw(a.placedMs) &&
        raw(b.endedMs ?? a.placedMs) > raw(a.placedMs),
    );
    most = Math.max(
      most,
      there.reduce((sum, b) => sum + raw(b.resources.cpu), 0),
    );
  }
  return most;
}

describe('places that short tasks leave', () => {
  it('are given on without a decision: fewer of these, no instance overfull, each task once', async () => {
    const jobs = (): Job[] => [short('j-many', 120)];
    const without = await run(jobs(), { reusesSlots: false });
    const reusing = await run(jobs(), { reusesSlots: true });
    expect(await discrepancies(reusing.bench)).toEqual([]);
    expect(await givenOn(without)).toEqual([]);
    expect((await givenOn(reusing)).length).toBeGreaterThan(80);
    expect(reusing.decided).toBeLessThan(without.decided / 2);
    expect(fullest(reusing.attempts)).toBe(4000);
    const done = reusing.bench.completions();
    expect([...done.values()].every((times) => times === 1)).toBe(true);
    expect(done.size).toBe(120);
    // Never-tried tasks begin in the order of their index, as their job remembers no more of them.
    const begun = reusing.attempts.toSorted((a, b) => raw(a.placedMs) - raw(b.placedMs) || a.index - b.index);
    expect(begun.map((a) => a.index)).toEqual(begun.map((_, i) => i));
  });

  it('go to other jobs as well', async () => {
    const jobs = Array.from({ length: 40 }, (_, i) => short(`j-${String(i).padStart(2, '0')}`, 1));
    const result = await run(jobs, { reusesSlots: true });
    expect(await discrepancies(result.bench)).toEqual([]);
    expect((await result.bench.jobs()).every((j) => j.state === 'succeeded')).toBe(true);
    expect((await givenOn(result)).length).toBeGreaterThan(20);
  });

  it('are left to decisions where money is limited: of the job, of the deployment', async () => {
    const limited = short('j-limited', 30);
    const budget: Job = { ...limited, spec: { ...limited.spec, maxCostUsd: usd(5) } };
    expect(await givenOn(await run([budget], { reusesSlots: true }))).toEqual([]);
    const config = { maxUsdPerDay: 50 };
    expect(await givenOn(await run([short('j-many', 30)], { reusesSlots: true, config }))).toEqual([]);
  });

  it.each([
    ['ebbtide', true],
    ['spot-greedy', true],
    ['fleet', false],
    ['spot-fleet', false],
  ])('are given on under %s: %s', async (preset, reuses) => {
    const result = await run([short('j-many', 30)], { reusesSlots: true, preset });
    expect((await result.bench.jobs()).every((j) => j.state === 'succeeded')).toBe(true);
    expect((await givenOn(result)).length > 0).toBe(reuses);
  });

  it('are given to nobody while the disk is full', async () => {
    const use = { usedBytes: 1, budgetBytes: 1, freeBytes: 1, reserveBytes: 0 };
    const [fromMs, toMs] = [raw(after(400)), raw(after(1000))];
    const clock: { now: () => number } = { now: () => 0 };
    const disk = (): DiskState => {
      const isFull = clock.now() >= fromMs && clock.now() < toMs;
      return { level: isFull ? 'used-up' : 'enough', use, text: 'the disk is full' };
    };
    const result = await run([short('j-many', 200)], { reusesSlots: true, disk, clock });
    expect(await discrepancies(result.bench)).toEqual([]);
    const placed = result.attempts.map((a) => raw(a.placedMs));
    expect(placed.filter((ms) => ms >= fromMs && ms < toMs)).toEqual([]);
    expect(placed.some((ms) => ms < fromMs) && placed.some((ms) => ms >= toMs)).toBe(true);
  });

  it('are left to decisions beside gangs', async () => {
    const gang = job({
      name: 'j-gang',
      submittedMs: START_MS,
      // Never placed: it needs more than there is.
      spec: spec({ name: 'gang', stages: [stage({ tasks: 8, gang: true, env: work(60), resources: resources(4) })] }),
    });
    const deeds: Deed[] = [{ atMs: after(3600), act: (store) => store.requestCancel(gang.id) }];
    expect(await givenOn(await run([short('j-many', 30), gang], { reusesSlots: true, deeds }))).toEqual([]);
  });

  it('go to nobody whose job is being stopped', async () => {
    const many = short('j-many', 400);
    const deeds: Deed[] = [{ atMs: after(400), act: (store) => store.requestCancel(many.id) }];
    const { bench, attempts } = await run([many], { reusesSlots: true, deeds });
    expect(await discrepancies(bench)).toEqual([]);
    const stopped = await bench.job(jobId('j-many'));
    expect(stopped.state).toBe('cancelled');
    expect(attempts.length).toBeGreaterThan(20);
    expect(attempts.length).toBeLessThan(400);
  });

  it('change nothing of how jobs end, beside all else that jobs do', async () => {
    const { bench } = await run([...mixedJobs(), short('j-many', 60)], {
      reusesSlots: true,
      vcpus: 12,
      deeds: mixedDeeds(),
    });
    expect(await discrepancies(bench)).toEqual([]);
    const ends = Object.fromEntries((await bench.jobs()).map((j) => [j.id, j.state]));
    expect(ends).toEqual({ ...MIXED_ENDS, 'j-many': 'succeeded' });
  });
});

describe('the engine dies while places are given on', () => {
  const jobs = (): Job[] => [short('j-a', 9), short('j-b', 1), short('j-c', 1)];

  it('once, before and after every call: nothing is lost, nothing is done twice', async () => {
    const { crashes } = await run(jobs(), { reusesSlots: true, vcpus: 4 });
    const wrong: string[] = [];
    let given = 0;
    for (let call = 1; call <= crashes.calls.length; call++) {
      for (const when of ['before', 'after'] as const) {
        const result = await run(jobs(), { reusesSlots: true, points: [{ call, when }] });
        const found = await discrepancies(result.bench);
        const done = [...result.bench.completions().values()];
        if (done.length !== 11 || done.some((times) => times !== 1))
          found.push(`${done.length} tasks completed: ${done.join()}`);
        for (const w of found) wrong.push(`${when} call ${call}, ${result.crashes.at.join()}: ${w}`);
        given += (await givenOn(result)).length;
      }
    }
    expect(wrong).toEqual([]);
    expect(crashes.calls.length).toBeGreaterThan(30);
    expect(given).toBeGreaterThan(crashes.calls.length);
  }, 120_000);
});
