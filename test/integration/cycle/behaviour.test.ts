import { describe, expect, it } from '@jest/globals';
import type { Job, JobSpec } from '../../../lib/domain/job.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, usd } from '../../../lib/kernel/units.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work, type Deed } from '../../support/engine-bench.ts';
import { after, mixedTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';

/** What becomes of jobs, by the events and records that a user sees. The market takes its cheapest pool from 720 s to 1800 s. */

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
    const budgetUsd = 0.004;
    const underrated = { tasks: 2, env: work(20_000), expectedRuntimeS: seconds(200), resources: resources(2) };
    const bench = await run([named('j-poor', { ...main(underrated), maxCostUsd: usd(budgetUsd) })]);
    const { state, stateReason } = await endOf(bench, 'j-poor');
    expect(state).toBe('failed');
    expect(stateReason).toContain('budget of 0.004 USD is used up');
    const spentUsd = await spentOn(bench, 'j-poor');
    expect(spentUsd).toBeGreaterThan(0.9 * budgetUsd);
    // A cycle's worth of the instance that both fill, and their time to stop.
    expect(spentUsd).toBeLessThan(budgetUsd + (70 * 0.04) / 3600);
  });

  it('that pays for no attempt lets the job wait, buys nothing, and is given as the reason', async () => {
    const poor = jobId('j-hopeless');
    let headline = '';
    const look: Deed = {
      atMs: after(600),
      act: async (store) => {
        headline = JSON.stringify(await store.explanation(poor));
      },
    };
    const give: Deed = { atMs: after(700), act: (store) => store.requestCancel(poor) };
    const bench = await run([named('j-hopeless', { ...main(), maxCostUsd: usd(0.0001) })], [look, give]);
    expect(headline).toContain('"why":"budget"');
    expect(await bench.fleet.list()).toEqual([]);
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

describe('a failed task', () => {
  it('is tried again as often as it may be, and then fails its job', async () => {
    const bench = await run([named('j-bad', main({ tasks: 3, env: work(60, 5), retries: 2 }))]);
    const { state, stateReason } = await endOf(bench, 'j-bad');
    expect(state).toBe('failed');
    expect(stateReason).toMatch(/stage main: \d task\(s\) failed with no retries left/);
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
        ...main({ env: work(3000), expectedRuntimeS: seconds(3000), checkpoint: SAVES }),
      },
      { deadlineMs: after(deadlineS) },
    );
  const poolsOf = async (bench: EngineBench): Promise<string[]> => {
    const known = new Map((await bench.store.instances(null, 100, null)).items.map((i) => [i.id, i.pool]));
    return (await attemptsOf(bench, 'j-guarded')).map((a) => known.get(a.instance) ?? '');
  };

  it('takes on-demand capacity when spot could cost the deadline', async () => {
    const bench = await run([guarded(3900)]);
    const done = await bench.job(jobId('j-guarded'));
    expect(done.state).toBe('succeeded');
    expect(raw(done.finishedMs ?? START_MS)).toBeLessThanOrEqual(raw(after(3900)));
    expect((await poolsOf(bench)).at(-1)).toMatch(/on-demand$/);
  });

  it('stays on spot when there is time enough, interruptions included', async () => {
    const bench = await run([guarded(6 * 3600)]);
    const pools = await poolsOf(bench);
    expect(pools.length).toBeGreaterThan(1);
    for (const pool of pools) expect(pool).toMatch(/spot$/);
  });
});

describe('draining', () => {
  it('saves, gives everything back, and a later engine goes on', async () => {
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS });
    await bench.submit([named('j-saved', main({ env: work(3000), checkpoint: SAVES }))]);
    const engine = bench.engine();
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
