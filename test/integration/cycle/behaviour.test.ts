import { describe, expect, it } from '@jest/globals';
import type { Job, JobSpec } from '../../../lib/domain/job.ts';
import { jobId, poolId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, usd } from '../../../lib/kernel/units.ts';
import { poolParts } from '../../../lib/domain/pool.ts';
import { traceOf } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, pool, resources, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, NOTHING_BETWEEN, work, type Deed } from '../../support/engine-bench.ts';
import { after, mixedTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';

/**
 * What becomes of jobs, by the events and records that a user sees. The market takes its cheapest pool from 720 s to
 * 1800 s.
 */

const named = (name: string, over: Partial<JobSpec>, of: Partial<Job> = {}): Job =>
  job({ name, submittedMs: START_MS, ...of, spec: spec({ name, ...over }) });
const main = (over: Parameters<typeof stage>[0] = {}) => ({ stages: [stage(over)] });

async function run(jobs: readonly Job[], deeds: readonly Deed[] = []): Promise<EngineBench> {
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, config: { refundRule: 'none' } });
  await bench.submit(jobs);
  await bench.drive({ deeds });
  expect(await discrepancies(bench)).toEqual([]);
  return bench;
}
const endOf = async (bench: EngineBench, id: string) => {
  const { state, stateReason } = await bench.job(jobId(id));
  return { state, stateReason };
};
const attemptsOf = (bench: EngineBench, id: string) => bench.store.attempts(jobId(id));
const spentOn = async (bench: EngineBench, id: string): Promise<number> =>
  (await bench.store.ledger({ job: jobId(id) })).reduce((sum, row) => sum + row.usd, 0);

describe('a budget', () => {
  it('ends the job that has used it up, soon after', async () => {
    const budgetUsd = 0.04;
    const underrated = { tasks: 2, env: work(20_000), expectedRuntimeS: seconds(200), resources: resources(2) };
    const bench = await run([named('j-poor', { ...main(underrated), maxCostUsd: usd(budgetUsd) })]);
    const { state, stateReason } = await endOf(bench, 'j-poor');
    expect(state).toBe('failed');
    expect(stateReason).toContain('budget of 0.04 USD is used up');
    const spentUsd = await spentOn(bench, 'j-poor');
    expect(spentUsd).toBeGreaterThan(0.9 * budgetUsd);
    expect(spentUsd).toBeLessThanOrEqual(budgetUsd);
  });

  it('counts what is billed and what is not yet, and reads a job’s past once', async () => {
    const budgetUsd = 0.05;
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, config: { refundRule: 'none' } });
    const read: string[] = [];
    const listening = (store: Store): Store =>
      new Proxy(store, {
        get: (target, method) => {
          const original = (Reflect.get(target, method) as (...args: unknown[]) => unknown).bind(target);
          if (method !== 'ledger' && method !== 'attempts') return original;
          return (...args: unknown[]) => {
            read.push(method);
            return original(...args);
          };
        },
      });
    const underrated = { tasks: 2, env: work(20_000), resources: resources(2), checkpoint: SAVES };
    await bench.submit([named('j-moved', { ...main(underrated), maxCostUsd: usd(budgetUsd) })]);
    await bench.drive({ through: () => ({ ...NOTHING_BETWEEN, store: listening }) });
    expect(await discrepancies(bench)).toEqual([]);
    // Interrupted when a fair part of it was spent, and ended by the budget on another machine.
    const outcomes = (await attemptsOf(bench, 'j-moved')).map((a) => a.outcome);
    expect(outcomes).toEqual(['interrupted', 'interrupted', 'cancelled', 'cancelled']);
    expect((await endOf(bench, 'j-moved')).stateReason).toContain('budget of 0.05 USD is used up');
    const spentUsd = await spentOn(bench, 'j-moved');
    expect(spentUsd).toBeGreaterThan(0.85 * budgetUsd);
    expect(spentUsd).toBeLessThanOrEqual(budgetUsd);
    expect(read).toEqual(['ledger', 'attempts']);
  });

  it('is not used up by a price that rises after most of the work is done', async () => {
    // 25 minutes at 0.04 USD an hour, then 40 USD for the notice that this price gives and long after it.
    const spikeMs = raw(after(1500));
    const [calm] = mixedTrace.pools.filter((p) => p.option === 'spot');
    if (calm === undefined) throw new Error('the market has no spot pool');
    const spiking = traceOf({ name: 'spiking', startMs: mixedTrace.startMs, endMs: mixedTrace.endMs }, [
      {
        type: calm.type,
        zone: calm.zone,
        onDemandUsdPerHour: 0.17,
        prices: {
          atMs: Float64Array.of(raw(mixedTrace.startMs), spikeMs),
          usdPerHour: Float64Array.of(0.04, 40),
        },
        availability: null,
      },
    ]);
    const bench = new EngineBench({ trace: spiking, startMs: START_MS, config: { refundRule: 'none' } });
    const heavy = { env: work(2400), expectedRuntimeS: seconds(2400), resources: resources(4), checkpoint: SAVES };
    await bench.submit([named('j-spiked', { ...main(heavy), maxCostUsd: usd(0.2) })]);
    await bench.drive();
    expect(await discrepancies(bench)).toEqual([]);
    const outcomes = (await attemptsOf(bench, 'j-spiked')).map((a) => a.outcome);
    expect(outcomes).toEqual(['interrupted', 'succeeded']);
    expect((await endOf(bench, 'j-spiked')).state).toBe('succeeded');
    // At most the bid, which on-demand's price bounds, also while the notice ran.
    expect(await spentOn(bench, 'j-spiked')).toBeLessThan((0.17 * 2700) / 3600);
  });

  it('that pays for no attempt ends the job at once, buys nothing, and says what to do', async () => {
    const bench = await run([named('j-hopeless', { ...main(), maxCostUsd: usd(0.0001) })]);
    const { state, stateReason } = await endOf(bench, 'j-hopeless');
    expect(state).toBe('failed');
    // One of four vCPUs of the cheapest pool for ten minutes, 0.04 / 4 / 6 USD, and a little more for what is
    // uncertain.
    expect(stateReason).toMatch(
      /^its budget does not pay for it: 0.00 USD spent, at least 0.001[6-9]\d? USD needed for what waits, limit 0.0001 USD; raise maxCost and submit it again$/,
    );
    expect(await bench.fleet.list()).toEqual([]);
    const { finishedMs } = await bench.job(jobId('j-hopeless'));
    expect(raw(finishedMs ?? START_MS)).toBeLessThan(raw(after(60)));
    expect((await bench.store.events(0, 100)).map((e) => e.type)).toEqual(['job-submitted', 'job-failed']);
  });

  it('that does not pay for another attempt ends the job when its last one has ended', async () => {
    // Interrupted after some 11 min, all of it lost. It has the instance of 0.04 USD an hour to itself: 20 min with its
    // start-up are 0.015 USD, and what takes longer than 11 min takes longer than 20 in the mean.
    const underway = { env: work(1200), expectedRuntimeS: seconds(1200), resources: resources(4) };
    const bench = await run([named('j-once', { ...main(underway), maxCostUsd: usd(0.02) })]);
    const { state, stateReason } = await endOf(bench, 'j-once');
    expect((await attemptsOf(bench, 'j-once')).map((a) => a.outcome)).toEqual(['interrupted']);
    expect(state).toBe('failed');
    expect(stateReason).toMatch(/^its budget does not pay for it: 0\.0\d+ USD spent, at least 0\.0[12]\d* USD needed/);
  });

  describe('that pays at usual prices, but not at those of now,', () => {
    const HOUR_S = 3600;
    const oneHour = main({ env: work(HOUR_S), expectedRuntimeS: seconds(HOUR_S), resources: resources(4) });
    /** Usually 0.04 USD an hour, 0.12 from ten minutes before the start until `fallsAtS`. */
    const spike = (fallsAtS: number | null): MarketTrace => {
      const week = 7 * 24 * HOUR_S;
      const falls = fallsAtS === null ? [] : [raw(after(fallsAtS))];
      const prices = {
        atMs: Float64Array.of(raw(after(-week)), raw(after(-600)), ...falls),
        usdPerHour: Float64Array.of(0.04, 0.12, ...falls.map(() => 0.04)),
      };
      const market = { type: pool().type, zone: 'a', onDemandUsdPerHour: 0.17, prices, availability: null };
      return traceOf({ name: 'spike', startMs: after(-week), endMs: after(week) }, [market]);
    };
    const drive = async (fallsAtS: number | null, over: Partial<JobSpec>, of: Partial<Job> = {}) => {
      const bench = new EngineBench({ trace: spike(fallsAtS), startMs: START_MS });
      // A machine for an hour and its start: 0.125 USD now, 0.04 usually.
      await bench.submit([named('j-patient', { ...oneHour, maxCostUsd: usd(0.08), ...over }, of)]);
      const explained: string[] = [];
      const look: Deed = {
        atMs: after(HOUR_S),
        act: async (store) => explained.push(JSON.stringify(await store.explanation(jobId('j-patient')))),
      };
      await bench.drive({ deeds: [look], withinS: 40 * HOUR_S });
      expect(await discrepancies(bench)).toEqual([]);
      const { state, stateReason, finishedMs } = await bench.job(jobId('j-patient'));
      const afterS = (raw(finishedMs ?? START_MS) - raw(START_MS)) / 1000;
      return { bench, explained: explained.join(), state, stateReason, afterS };
    };

    it('lets the job wait for lower ones, and says so', async () => {
      const { bench, explained, state } = await drive(3 * HOUR_S, {});
      expect(explained).toContain('"why":"budget"');
      expect(explained).toContain('a lower price, for which it waits a day at most');
      expect(state).toBe('succeeded');
      const [first] = await attemptsOf(bench, 'j-patient');
      expect(raw(first?.placedMs ?? START_MS)).toBeGreaterThanOrEqual(raw(after(3 * HOUR_S)));
      expect(await spentOn(bench, 'j-patient')).toBeLessThan(0.08);
    });

    it('ends the job after a day', async () => {
      const { bench, state, stateReason, afterS } = await drive(null, {});
      expect(state).toBe('failed');
      expect(stateReason).toContain('prices did not fall enough within 24 h: 0.00 USD spent');
      expect(stateReason).toContain('raise maxCost and submit it again');
      expect(afterS).toBeGreaterThanOrEqual(24 * HOUR_S);
      expect(afterS).toBeLessThan(24 * HOUR_S + 120);
      expect(await attemptsOf(bench, 'j-patient')).toEqual([]);
    });

    it('ends the job at its deadline', async () => {
      const deadlineMs = after(6 * HOUR_S);
      const { state, stateReason, afterS } = await drive(
        null,
        { class: 'deadline', deadline: { atMs: deadlineMs } },
        { deadlineMs },
      );
      expect(state).toBe('failed');
      expect(stateReason).toContain('prices did not fall enough by its deadline');
      expect(afterS).toBeGreaterThanOrEqual(6 * HOUR_S);
      expect(afterS).toBeLessThan(6 * HOUR_S + 120);
    });
  });

  it('that suffices changes nothing', async () => {
    const bench = await run([named('j-rich', { ...main({ env: work(600) }), maxCostUsd: usd(1) })]);
    expect(await endOf(bench, 'j-rich')).toEqual({ state: 'succeeded', stateReason: null });
  });
});

describe('a cancelled job', () => {
  const cancel = (atS: number, id: string): Deed => ({
    atMs: after(atS),
    act: (store) => store.requestCancel(jobId(id)),
  });

  it('stops what runs and starts nothing more', async () => {
    const bench = await run([named('j-long', main({ tasks: 40, env: work(3000) }))], [cancel(400, 'j-long')]);
    expect(await endOf(bench, 'j-long')).toEqual({ state: 'cancelled', stateReason: 'cancelled on request' });
    const attempts = await attemptsOf(bench, 'j-long');
    expect(attempts.length).toBeGreaterThan(0);
    expect(new Set(attempts.map((a) => a.outcome))).toEqual(new Set(['cancelled']));
    expect(Math.max(...attempts.map((a) => raw(a.placedMs)))).toBeLessThanOrEqual(raw(after(400)));
  });

  it('that has not begun is over at once', async () => {
    const waits = named('j-waits', main(), { after: [jobId('j-first')] });
    const bench = await run([named('j-first', main({ env: work(900) })), waits], [cancel(100, 'j-waits')]);
    expect(await endOf(bench, 'j-waits')).toEqual({ state: 'cancelled', stateReason: 'cancelled on request' });
    expect(await attemptsOf(bench, 'j-waits')).toEqual([]);
    const { finishedMs } = await bench.job(jobId('j-waits'));
    expect(raw(finishedMs ?? START_MS)).toBeLessThan(raw(after(130)));
  });

  it('stays as it ended when the request comes too late', async () => {
    const asked: unknown[] = [];
    const late: Deed = {
      atMs: after(3000),
      act: async (store) => asked.push(await store.requestCancel(jobId('j-done'))),
    };
    const bench = await run([named('j-done', main({ env: work(60) }))], [late]);
    expect(asked).toEqual([false]);
    expect((await endOf(bench, 'j-done')).state).toBe('succeeded');
  });
});

describe('an explanation', () => {
  it('names what can be changed before what follows from it: the first stage waits for room, the second for the first', async () => {
    const explained: unknown[] = [];
    const stages = [
      stage({ name: 'last', dependsOn: ['first'], env: work(60) }),
      stage({ name: 'first', env: work(60), resources: resources(2), constraints: { zones: ['nowhere-1z'] } }),
    ];
    const look: Deed = {
      atMs: after(300),
      act: async (store) => explained.push(await store.explanation(jobId('j-stuck'))),
    };
    const stop: Deed = { atMs: after(400), act: async (store) => store.requestCancel(jobId('j-stuck')) };
    await run([named('j-stuck', { stages })], [look, stop]);
    const [e] = explained as { headline: string; waiting: { why: string; stage: string }[] }[];
    expect(e?.waiting.map((w) => [w.stage, w.why])).toEqual([
      ['first', 'constraint'],
      ['last', 'dependency'],
    ]);
    expect(e?.headline).not.toContain('waits for stage');
  });

  it('names the placement rule for which tasks wait, and how many', async () => {
    const explained: unknown[] = [];
    const near = { affinity: [{ over: 'instance', labels: { app: 'db' } }] } as const;
    const look: Deed = {
      atMs: after(900),
      act: async (store) => explained.push(await store.explanation(jobId('j-near'))),
    };
    const stop: Deed = { atMs: after(1000), act: async (store) => store.requestCancel(jobId('j-near')) };
    await run(
      [named('j-near', main({ tasks: 2, env: work(60), placement: near })), named('j-any', main())],
      [look, stop],
    );
    const [waits] = explained as { waiting: { why: string; tasks: number; detail: string }[] }[];
    expect(waits?.waiting).toMatchObject([
      { why: 'placement', tasks: 2, detail: 'affinity: no task with app=db runs, beside which it could' },
    ]);
  });
});

describe('a failed task', () => {
  it('is tried again as often as it may be, and then fails its job', async () => {
    const bench = await run([named('j-bad', main({ tasks: 3, env: work(60, 5), retries: 2 }))]);
    const { state, stateReason } = await endOf(bench, 'j-bad');
    expect(state).toBe('failed');
    expect(stateReason).toMatch(/^stage main: task \d failed with no retries left: exit code 1( \(and \d more\))?$/);
    const perTask = Map.groupBy(await attemptsOf(bench, 'j-bad'), (a) => a.index);
    for (const attempts of perTask.values()) expect(attempts.length).toBeLessThanOrEqual(3);
    expect([...perTask.values()].some((of) => of.filter((a) => a.outcome === 'failed').length === 3)).toBe(true);
  });

  it('pauses before each further try, longer each time', async () => {
    const bench = await run([named('j-flaky', main({ env: work(60, 2), retries: 2 }))]);
    const [first, second, third] = await attemptsOf(bench, 'j-flaky');
    const pauseS = (a: typeof first, b: typeof first): number =>
      (raw(b?.placedMs ?? START_MS) - raw(a?.endedMs ?? START_MS)) / 1000;
    expect(third?.outcome).toBe('succeeded');
    expect(pauseS(first, second)).toBeGreaterThanOrEqual(10);
    expect(pauseS(second, third)).toBeGreaterThanOrEqual(20);
  });

  it('fails every job that waits for its job, and they never start', async () => {
    const bench = await run([
      named('j-a', main({ env: work(60, 1) })),
      named('j-b', main(), { after: [jobId('j-a')] }),
      named('j-c', main(), { after: [jobId('j-b')] }),
      named('j-other', main({ env: work(60) })),
    ]);
    expect(await endOf(bench, 'j-b')).toEqual({ state: 'failed', stateReason: 'it depends on job j-a, which failed' });
    expect(await endOf(bench, 'j-c')).toEqual({ state: 'failed', stateReason: 'it depends on job j-b, which failed' });
    expect([...(await attemptsOf(bench, 'j-b')), ...(await attemptsOf(bench, 'j-c'))]).toEqual([]);
    expect((await endOf(bench, 'j-other')).state).toBe('succeeded');
  });

  it('that ran out of time counts as a failure', async () => {
    const bench = await run([named('j-slow', main({ env: work(5000), timeoutS: seconds(300) }))]);
    expect((await endOf(bench, 'j-slow')).state).toBe('failed');
    expect((await attemptsOf(bench, 'j-slow')).map((a) => a.outcome)).toEqual(['timed-out']);
  });
});

describe('an interruption', () => {
  it('is no failure, and costs no more than what came after the checkpoint', async () => {
    const bench = await run([named('j-kept', main({ tasks: 4, env: work(1200), checkpoint: SAVES, retries: 0 }))]);
    expect((await endOf(bench, 'j-kept')).state).toBe('succeeded');
    const perTask = Map.groupBy(await attemptsOf(bench, 'j-kept'), (a) => a.index);
    for (const [first, second, ...more] of perTask.values()) {
      expect([first?.outcome, second?.outcome]).toEqual(['interrupted', 'succeeded']);
      expect(more).toEqual([]);
      const ranS = [first, second].map((a) => (raw(a?.endedMs ?? START_MS) - raw(a?.startedMs ?? START_MS)) / 1000);
      // All of the work once, and for each interruption the time to stop.
      expect((ranS[0] ?? 0) + (ranS[1] ?? 0)).toBeLessThan(1200 + 10);
      expect(raw(second?.resumedFromS ?? seconds(0))).toBeCloseTo(raw(first?.keptS ?? seconds(0)), 6);
    }
  });

  it('does without a checkpoint: the work is done again', async () => {
    const bench = await run([named('j-lost', main({ env: work(1200), expectedRuntimeS: seconds(1200) }))]);
    const attempts = await attemptsOf(bench, 'j-lost');
    expect(attempts.map((a) => a.outcome)).toEqual(['interrupted', 'succeeded']);
    expect(attempts.map((a) => raw(a.resumedFromS))).toEqual([0, 0]);
    const wasted = (await bench.store.ledger({ job: jobId('j-lost') })).filter((row) => row.kind === 'wasted');
    expect(wasted.map((row) => row.attempt)).toEqual([attempts[0]?.id]);
  });
});

describe('a gang', () => {
  it('starts whole, also again after an interruption', async () => {
    const gang = { tasks: 5, gang: true, resources: resources(2), env: work(1500), checkpoint: SAVES };
    const bench = await run([named('j-gang', main(gang)), named('j-beside', main({ tasks: 3, env: work(400) }))]);
    expect((await endOf(bench, 'j-gang')).state).toBe('succeeded');
    const starts = Map.groupBy(await attemptsOf(bench, 'j-gang'), (a) => raw(a.placedMs));
    expect(starts.size).toBeGreaterThan(1);
    for (const [, together] of starts) expect(together.map((a) => a.index).sort()).toEqual([0, 1, 2, 3, 4]);
    expect(new Set((await attemptsOf(bench, 'j-gang')).map((a) => a.instance)).size).toBeGreaterThan(2);
  });
});

describe('stages', () => {
  it('begin when those they depend on are done, and not before', async () => {
    const stages = [
      stage({ name: 'late', dependsOn: ['left', 'right'], env: work(60) }),
      stage({ name: 'left', tasks: 3, env: work(100) }),
      stage({ name: 'right', env: work(700), checkpoint: SAVES }),
    ];
    const bench = await run([named('j-dag', { stages })]);
    const attempts = await attemptsOf(bench, 'j-dag');
    const before = attempts.filter((a) => a.stage !== 'late').map((a) => raw(a.endedMs ?? START_MS));
    const late = attempts.filter((a) => a.stage === 'late').map((a) => raw(a.placedMs));
    expect((await endOf(bench, 'j-dag')).state).toBe('succeeded');
    expect(Math.min(...late)).toBeGreaterThanOrEqual(Math.max(...before));
  });
});

describe('the deadline guard', () => {
  const guarded = (deadlineS: number): Job =>
    named(
      'j-guarded',
      {
        class: 'deadline',
        deadline: { atMs: after(deadlineS) },
        mustMeet: true,
        ...main({ env: work(3000), expectedRuntimeS: seconds(3000), checkpoint: SAVES }),
      },
      { deadlineMs: after(deadlineS) },
    );
  /** How the instances of its attempts were bought. */
  const optionsOf = async (bench: EngineBench): Promise<string[]> => {
    const known = new Map((await bench.store.instances(null, 100, null)).items.map((i) => [i.id, i.pool]));
    return (await attemptsOf(bench, 'j-guarded')).map((a) => poolParts(known.get(a.instance) ?? poolId('')).option);
  };

  it('takes on-demand capacity when spot could cost the deadline', async () => {
    const bench = await run([guarded(3900)]);
    const done = await bench.job(jobId('j-guarded'));
    expect(done.state).toBe('succeeded');
    expect(raw(done.finishedMs ?? START_MS)).toBeLessThanOrEqual(raw(after(3900)));
    expect((await optionsOf(bench)).at(-1)).toBe('on-demand');
  });

  it('stays on spot when there is time enough, interruptions included', async () => {
    const bench = await run([guarded(6 * 3600)]);
    const options = await optionsOf(bench);
    expect(options.length).toBeGreaterThan(1);
    expect(new Set(options)).toEqual(new Set(['spot']));
  });
});

describe('a deadline job that comes too late', () => {
  const DEADLINE_S = 1000;
  const WORTHLESS_S = 1300;
  const due = (id: string, over: Parameters<typeof stage>[0], of: Partial<Job> = {}): Job =>
    named(
      id,
      {
        class: 'deadline',
        deadline: { atMs: after(DEADLINE_S) },
        value: { onTimeUsd: null, worthlessAfterS: seconds(WORTHLESS_S - DEADLINE_S) },
        ...main(over),
      },
      { deadlineMs: after(DEADLINE_S), ...of },
    );
  const endedS = async (bench: EngineBench, id: string): Promise<number> => {
    const { finishedMs } = await bench.job(jobId(id));
    return (raw(finishedMs ?? START_MS) - raw(START_MS)) / 1000;
  };
  const longer = { env: work(1200), expectedRuntimeS: seconds(600), checkpoint: SAVES };

  it('fails as late once it is worth nothing and nothing of it runs', async () => {
    // Its only pool is taken back before the deadline, and has no capacity again until it is too late.
    const constraints = { zones: ['a'], purchaseOptions: ['spot' as const] };
    const bench = await run([due('j-late', { ...longer, constraints })]);
    expect((await attemptsOf(bench, 'j-late')).map((a) => a.outcome)).toEqual(['interrupted']);
    const { state, stateReason, endedLate } = await bench.job(jobId('j-late'));
    expect({ state, endedLate }).toEqual({ state: 'failed', endedLate: true });
    expect(stateReason).toBe(
      'deadline missed: it was 2026-01-05 12:16 UTC, and since 2026-01-05 12:21 UTC it is worth nothing (worthlessAfter)',
    );
    expect(await endedS(bench, 'j-late')).toBeGreaterThanOrEqual(WORTHLESS_S);
    expect(await endedS(bench, 'j-late')).toBeLessThan(WORTHLESS_S + 120);
  });

  it('fails so while it waits for another job, and takes those with it that wait for it', async () => {
    const waits = due('j-waits', { env: work(60) }, { after: [jobId('j-long')] });
    const behind = named('j-behind', main(), { after: [jobId('j-waits')] });
    const bench = await run([named('j-long', main({ env: work(3000), checkpoint: SAVES })), waits, behind]);
    expect((await bench.job(jobId('j-waits'))).endedLate).toBe(true);
    expect(await endedS(bench, 'j-waits')).toBeLessThan(WORTHLESS_S + 120);
    expect((await endOf(bench, 'j-behind')).stateReason).toContain('depends on job j-waits, which failed');
    expect((await endOf(bench, 'j-long')).state).toBe('succeeded');
  });

  it('is not given up before its deadline, though an inner stage comes too late', async () => {
    // From 1300 s on nothing is worth beginning `main`, which has no machine: `behind` would need all that is left.
    const constraints = { zones: ['a'], purchaseOptions: ['spot' as const] };
    const one = due('j-inner', { ...longer, constraints }, { deadlineMs: after(1700) });
    const behind = stage({ name: 'behind', dependsOn: ['main'], expectedRuntimeS: seconds(600) });
    const value = { onTimeUsd: null, worthlessAfterS: seconds(10) };
    const whole = { ...one.spec, deadline: { atMs: after(1700) }, value, stages: [...one.spec.stages, behind] };
    const bench = await run([job({ ...one, name: 'j-inner', stages: job({ spec: whole }).stages, spec: whole })]);
    expect((await bench.job(jobId('j-inner'))).endedLate).toBe(true);
    expect(await endedS(bench, 'j-inner')).toBeGreaterThanOrEqual(1700);
    expect(await endedS(bench, 'j-inner')).toBeLessThan(1700 + 120);
  });

  it('may finish what runs', async () => {
    const bench = await run([due('j-runs', { ...longer, env: work(1500), constraints: { zones: ['b'] } })]);
    const { state, endedLate } = await bench.job(jobId('j-runs'));
    expect({ state, endedLate }).toEqual({ state: 'succeeded', endedLate: undefined });
    expect(await endedS(bench, 'j-runs')).toBeGreaterThan(WORTHLESS_S);
  });

  it('goes on when nobody said that it is worth nothing some time', async () => {
    const constraints = { zones: ['a'], purchaseOptions: ['spot' as const] };
    const spoken = due('j-patient', { ...longer, constraints });
    const silent = { ...spoken, spec: { ...spoken.spec, value: { onTimeUsd: null, worthlessAfterS: null } } };
    const bench = await run([silent]);
    expect((await endOf(bench, 'j-patient')).state).toBe('succeeded');
    expect(await endedS(bench, 'j-patient')).toBeGreaterThan(1800);
  });
});

describe('draining', () => {
  it.each([
    ['local mode', false],
    ['AWS, in steps', true],
  ])('saves, gives everything back, and a later engine goes on: %s', async (_, stepped) => {
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, stepped });
    await bench.submit([named('j-saved', main({ env: work(3000), checkpoint: SAVES }))]);
    const engine = bench.driven();
    await engine.start();
    for (let cycle = 0; cycle < 10; cycle++) {
      await engine.cycle();
      await bench.clock.advanceTo(after(60 * (cycle + 1)));
    }
    expect((await bench.fleet.list()).filter((i) => i.live)).toHaveLength(1);
    engine.drain();
    for (let cycle = 0; cycle < 3; cycle++) {
      await engine.cycle();
      await bench.clock.advanceTo(after(600 + 30 * (cycle + 1)));
    }
    await engine.cycle();
    expect((await bench.fleet.list()).filter((i) => i.live)).toEqual([]);
    const [stopped] = await attemptsOf(bench, 'j-saved');
    expect(stopped?.outcome).toBe('preempted');
    await bench.drive();
    const resumed = (await attemptsOf(bench, 'j-saved')).at(-1);
    expect(resumed?.outcome).toBe('succeeded');
    expect(raw(resumed?.resumedFromS ?? seconds(0))).toBeGreaterThan(200);
    expect(await discrepancies(bench)).toEqual([]);
  });
});
