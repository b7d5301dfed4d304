import { describe, expect, it } from '@jest/globals';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { Job } from '../../../lib/domain/job.ts';
import type { SceneContext, Stages } from '../../../lib/policy/contracts.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work } from '../../support/engine-bench.ts';
import { after, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/** What a policy of these tests does when it meets a job of such an owner. */
type Poison = (jobs: readonly Job[]) => void;

const POISONOUS = 'mallory';
const throwsForOne: Poison = (jobs) => {
  for (const { spec: of } of jobs) if (of.owner === POISONOUS) throw new TypeError('cannot read property of undefined');
};
const throwsForTwo: Poison = (jobs) => {
  if (jobs.filter((j) => j.spec.owner === POISONOUS).length > 1) throw new RangeError('two of them are too many');
};

const jobOf = (name: string, owner = 'ana', over: Partial<Job> = {}): Job => {
  const stages = [stage({ tasks: 2, env: work(300), expectedRuntimeS: seconds(300) })];
  return job({ name, submittedMs: START_MS, spec: spec({ name, owner, stages }), ...over });
};
const stateIn = async (bench: EngineBench, id: string): Promise<string> => (await bench.job(jobId(id))).state;
const innocent = (n: number): Job[] => Array.from({ length: n }, (_, i) => jobOf(`j-${String(i).padStart(3, '0')}`));

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a job that keeps the cycle from deciding, %s', (_, stepped) => {
  const benchWith = (poison: () => Poison, stageName: 'value' | 'appraise' | 'estimate' = 'value'): EngineBench =>
    new EngineBench({
      trace: mixedTrace,
      startMs: START_MS,
      stepped,
      stages: (of): Stages<Solver> => {
        const policy = of[stageName] as (...args: readonly unknown[]) => unknown;
        return {
          ...of,
          [stageName]: (...args: readonly unknown[]) => {
            poison()([...(args[0] as SceneContext).snapshot.jobs.values()]);
            return policy(...args);
          },
        };
      },
    });

  it.each(['value', 'appraise', 'estimate'] as const)(
    'is held with the error, wherever it is met (%s), and all others are done',
    async (stageName) => {
      const bench = benchWith(() => throwsForOne, stageName);
      await bench.submit([...innocent(9), jobOf('j-bad', POISONOUS), ...innocent(12).slice(9)]);
      await bench.drive();
      const jobs = await bench.jobs();
      expect(jobs.filter((j) => j.state !== 'succeeded').map((j) => j.id)).toEqual(['j-bad']);
      const bad = await bench.job(jobId('j-bad'));
      expect(bad.held?.reason).toMatch(/a decision on it fails: cannot read property/);
      const events = await bench.store.events(0, 10_000);
      expect(events.filter((e) => e.type === 'job-held').map((e) => e.job)).toEqual(['j-bad']);
      const explanation = await bench.store.explanation(jobId('j-bad'));
      expect(explanation?.waiting).toMatchObject([{ why: 'held', tasks: 2 }]);
      expect(await discrepancies(bench)).toEqual([]);
    },
  );

  it('finds each of several', async () => {
    const bench = benchWith(() => throwsForOne);
    await bench.submit([...innocent(20), jobOf('j-bad-1', POISONOUS), jobOf('j-bad-2', POISONOUS)]);
    await bench.drive();
    expect([await stateIn(bench, 'j-bad-1'), await stateIn(bench, 'j-bad-2')]).toEqual(['held', 'held']);
    expect((await bench.jobs()).filter((j) => j.state === 'succeeded')).toHaveLength(20);
  });

  it('is the last one where the fault only comes of several together', async () => {
    const bench = benchWith(() => throwsForTwo);
    await bench.submit([jobOf('j-a', POISONOUS), ...innocent(5), jobOf('j-z', POISONOUS)]);
    await bench.drive();
    expect((await bench.job(jobId('j-z'))).held?.reason).toMatch(/only together with other jobs/);
    expect(await stateIn(bench, 'j-a')).toBe('succeeded');
  });

  it('has its running tasks run to their end, and none of the others start', async () => {
    let poison: Poison = () => undefined;
    const bench = benchWith(() => poison);
    const stages = [
      stage({ tasks: 2, env: work(420), expectedRuntimeS: seconds(420) }),
      stage({ name: 'sum', dependsOn: ['main'], env: work(60) }),
    ];
    await bench.submit([jobOf('j-bad', POISONOUS, { spec: spec({ name: 'j-bad', owner: POISONOUS, stages }) })]);
    await bench.drive({
      deeds: [
        { atMs: after(300), act: async () => void (poison = throwsForOne) },
        { atMs: after(301), act: (store) => store.submit(innocent(3).map((j) => ({ job: j, idempotency: null }))) },
      ],
    });
    const bad = await bench.job(jobId('j-bad'));
    expect(bad.state).toBe('held');
    expect(bad.stages.map((s) => [s.name, s.succeeded, s.nextFresh])).toEqual([
      ['main', 2, 2],
      ['sum', 0, 0],
    ]);
    expect((await bench.store.attempts(bad.id)).map((a) => a.outcome)).toEqual(['succeeded', 'succeeded']);
    expect((await bench.jobs()).filter((j) => j.state === 'succeeded')).toHaveLength(3);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('is decided on again when it is released, and held again where nothing has changed', async () => {
    let poison: Poison = throwsForOne;
    const bench = benchWith(() => poison);
    await bench.submit([jobOf('j-bad', POISONOUS), ...innocent(2)]);
    const again: boolean[] = [];
    await bench.drive({
      deeds: [
        { atMs: after(1200), act: async (store) => again.push(await store.requestRelease(jobId('j-bad'))) },
        { atMs: after(2400), act: async () => void (poison = () => undefined) },
        { atMs: after(2401), act: async (store) => again.push(await store.requestRelease(jobId('j-bad'))) },
        { atMs: after(2402), act: async (store) => again.push(await store.requestRelease(jobId('j-000'))) },
      ],
    });
    expect(again).toEqual([true, true, false]);
    expect(await stateIn(bench, 'j-bad')).toBe('succeeded');
    const types = (await bench.store.events(0, 10_000)).filter((e) => e.job === 'j-bad').map((e) => e.type);
    expect(types.filter((t) => /held|released/.test(t))).toEqual([
      'job-held',
      'job-released',
      'job-held',
      'job-released',
    ]);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('can be cancelled, its running tasks with it', async () => {
    let poison: Poison = () => undefined;
    const bench = benchWith(() => poison);
    const long = [stage({ tasks: 2, env: work(7200), expectedRuntimeS: seconds(7200) })];
    await bench.submit([jobOf('j-bad', POISONOUS, { spec: spec({ name: 'j-bad', owner: POISONOUS, stages: long }) })]);
    await bench.drive({
      deeds: [
        { atMs: after(300), act: async () => void (poison = throwsForOne) },
        { atMs: after(301), act: (store) => store.submit(innocent(1).map((j) => ({ job: j, idempotency: null }))) },
        { atMs: after(400), act: (store) => store.requestCancel(jobId('j-bad')) },
      ],
    });
    const bad = await bench.job(jobId('j-bad'));
    expect([bad.state, bad.held]).toEqual(['cancelled', undefined]);
    expect((await bench.store.attempts(bad.id)).map((a) => a.outcome)).toEqual(['cancelled', 'cancelled']);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('is held when none of its tasks can be asked for, and all others start', async () => {
    const bench = benchWith(() => () => undefined);
    // As an earlier version with a defect might have stored it: no policy reads the environment.
    const stages = [stage({ tasks: 2, env: { ...work(300), SHARDS: 5 as unknown as string } })];
    await bench.submit([...innocent(3), jobOf('j-bad', POISONOUS, { spec: spec({ name: 'j-bad', stages }) })]);
    await bench.drive({ deeds: [{ atMs: after(7200), act: (store) => store.requestCancel(jobId('j-bad')) }] });
    const jobs = new Map((await bench.jobs()).map((j) => [j.id, j.state]));
    expect([...jobs].sort()).toEqual([
      ['j-000', 'succeeded'],
      ['j-001', 'succeeded'],
      ['j-002', 'succeeded'],
      ['j-bad', 'cancelled'],
    ]);
    const held = (await bench.store.events(0, 10_000)).filter((e) => e.type === 'job-held');
    expect(held).toMatchObject([{ job: 'j-bad', text: expect.stringContaining('its start cannot be asked for') }]);
    expect(await discrepancies(bench)).toEqual([]);
  });

  it('is not looked for where the fault is nobody’s', async () => {
    const bench = benchWith(() => () => {
      throw new Error('the market is not there');
    });
    await bench.submit(innocent(3));
    await expect(bench.drive()).rejects.toThrow('the market is not there');
    expect((await bench.jobs()).map((j) => j.state)).toEqual(['pending', 'pending', 'pending']);
  });
});

describe('a job that loses records of tasks while they run', () => {
  it('is held when their end cannot be recorded, and can be cancelled; all others are done', async () => {
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped: true });
    const losing = (store: Store): Store =>
      new Proxy(store, {
        get: (target, method) => {
          if (method !== 'loadActive') return (Reflect.get(target, method) as () => unknown).bind(target);
          return async (...args: Parameters<Store['loadActive']>) => {
            const active = await target.loadActive(...args);
            if (raw(bench.clock.now()) < raw(after(300))) return active;
            return { ...active, tasks: active.tasks.filter((t) => t.job !== 'j-bad' || t.state !== 'running') };
          };
        },
      });
    await bench.submit([jobOf('j-bad'), ...innocent(3)]);
    await bench.drive({
      deeds: [{ atMs: after(7200), act: (store) => store.requestCancel(jobId('j-bad')) }],
      through: () => ({ store: losing, fleet: (fleet) => fleet }),
    });
    expect((await bench.job(jobId('j-bad'))).state).toBe('cancelled');
    expect((await bench.jobs()).filter((j) => j.state === 'succeeded')).toHaveLength(3);
    const held = (await bench.store.events(0, 10_000)).filter((e) => e.type === 'job-held');
    expect(held).toMatchObject([
      { job: 'j-bad', text: expect.stringMatching(/the end of its task main\[\d\] cannot be/) },
    ]);
  });
});

describe('an instance on which a task ran whose record is damaged', () => {
  it.each([
    ['in one process', false],
    ['in steps', true],
  ])('has its bill booked, whole and on no job, and stops no cycle, %s', async (_, stepped) => {
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped });
    const damaging = (store: Store): Store =>
      new Proxy(store, {
        get: (target, method) => {
          if (method !== 'attemptsOn') return (Reflect.get(target, method) as () => unknown).bind(target);
          return async (...args: Parameters<Store['attemptsOn']>) =>
            (await target.attemptsOn(...args)).map((a) => (a.job === 'j-bad' ? { ...a, resources: null } : a));
        },
      });
    // Two after one another on one instance: the first has left the active state by the time of the bill.
    const stages = [stage({ env: work(120) }), stage({ name: 'sum', dependsOn: ['main'], env: work(120) })];
    await bench.submit([jobOf('j-bad', 'ana', { spec: spec({ name: 'j-bad', stages }) })]);
    await bench.drive({ through: () => ({ store: damaging, fleet: (fleet) => fleet }) });
    expect(await stateIn(bench, 'j-bad')).toBe('succeeded');
    const events = await bench.store.events(0, 10_000);
    const unread = events.filter((e) => e.type === 'bill-of-nobody');
    expect(unread.length).toBeGreaterThan(0);
    const instances = (await bench.store.instances(null, 100, null)).items;
    const billed = instances.reduce((sum, i) => sum + Number(i.costUsd), 0);
    const rows = await bench.store.ledger('all');
    expect(billed).toBeGreaterThan(0);
    expect(rows.reduce((sum, r) => sum + r.usd, 0)).toBeCloseTo(billed, 9);
  });
});
