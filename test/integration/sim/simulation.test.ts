import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { epochMs, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import type { Settled } from '../../../lib/drivers/sim/collector.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { resources } from '../../support/builders.ts';
import { mixedTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';
import { COUNTED_PAST_END, TEXTS_KEPT } from '../../../lib/report/outcome.ts';

const outcome = (result: Awaited<ReturnType<typeof simulated>>) =>
  outcomeOf(result, { preset: 'greedy', seed: 1, fromMs: START_MS });

describe('a simulation', () => {
  it('runs each task for as long as the truth says and no policy was told', async () => {
    const result = await simulated([simulatedJob('a', 0, [400]), simulatedJob('b', 7200, [50, 300])]);
    expect(result.ended).toBe('done');
    const { jobs, totals } = outcome(result);
    expect(jobs.key).toEqual(['a', 'b']);
    expect(jobs.state).toEqual(['succeeded', 'succeeded']);
    const started = result.events.filter((e) => e.type === 'attempt-starting').map((e) => raw(e.atMs));
    // From the decision that begins it, within a cycle of its trigger, to its end.
    expect((jobs.finishedMs[0] ?? 0) - (started[0] ?? 0)).toBeGreaterThanOrEqual(400_000);
    expect((jobs.finishedMs[0] ?? 0) - (started[0] ?? 0)).toBeLessThanOrEqual(410_000);
    expect((jobs.finishedMs[1] ?? 0) - Math.max(started[1] ?? 0, started[2] ?? 0)).toBeGreaterThanOrEqual(300_000);
    expect(totals).toMatchObject({ jobs: 2, tasks: 3, succeeded: 2, unfinished: 0, missed: 0, attempts: 3 });
  });

  it('submits before it decides at one instant', async () => {
    // A decision is due a minute after the first one, at the very instant of the second submission: the next would be
    // at two minutes.
    const minGapS = seconds(60);
    const many = new Array<number>(40).fill(400);
    const result = await simulated([simulatedJob('a', 0, [400]), simulatedJob('b', 60, many)], { minGapS });
    const at = (type: string) => result.events.filter((e) => e.type === type).map((e) => raw(e.atMs) - raw(START_MS));
    expect(at('job-submitted')).toEqual([0, 60_000]);
    expect(at('instance-requested')).toContain(60_000);
  });

  it('loses work to an interruption that no checkpoint kept, and none that one kept', async () => {
    const config = schedulerConfig.parse({ refundRule: 'none' });
    const lost = outcome(await simulated([simulatedJob('a', 0, [1500])], { config }));
    const kept = outcome(await simulated([simulatedJob('a', 0, [1500], { stage: { checkpoint: SAVES } })], { config }));
    // The cheapest pool is taken twelve minutes in.
    expect(lost.totals.interruptions).toBe(1);
    expect(kept.totals.interruptions).toBe(1);
    expect(lost.jobs.interruptions[0]).toBe(1);
    expect(lost.totals.lostHours).toBeGreaterThan(0.1);
    expect(kept.totals.lostHours).toBeLessThan(0.01);
    expect(kept.jobs.finishedMs[0]).toBeLessThan((lost.jobs.finishedMs[0] ?? 0) - 400_000);
    expect(kept.jobs.wastedUsd[0]).toBeLessThan(lost.jobs.wastedUsd[0] ?? 0);
  });

  it('tries failures again as often as the truth has them fail', async () => {
    const result = await simulated([simulatedJob('a', 0, [60, 60], { failures: [2, 0], stage: { retries: 2 } })]);
    const { jobs, totals } = outcome(result);
    expect(jobs.state).toEqual(['succeeded']);
    expect(totals.attempts).toBe(4);
    const refused = outcome(await simulated([simulatedJob('a', 0, [60], { failures: [2], stage: { retries: 1 } })]));
    expect(refused.jobs.state).toEqual(['failed']);
    expect(refused.totals.failed).toBe(1);
  });

  it('pays for setting up at each attempt, and counts none of it as progress', async () => {
    const job = simulatedJob('a', 0, [1500], { stage: { checkpoint: SAVES } });
    const plain = outcome(await simulated([job]));
    const slow = outcome(await simulated([job], { setupS: seconds(300) }));
    expect(slow.totals.interruptions).toBeGreaterThan(0);
    // Two attempts, five minutes each.
    const moreMs = (slow.jobs.finishedMs[0] ?? 0) - (plain.jobs.finishedMs[0] ?? 0);
    expect(moreMs).toBeGreaterThanOrEqual(590_000);
  });

  it('charges all that the fleet bills, to jobs or to nobody, and each pool its own', async () => {
    const jobs = Array.from({ length: 30 }, (_, i) => simulatedJob(`j${i}`, i * 240, [100 + 37 * i, 900 - 11 * i]));
    const told: Settled[] = [];
    const {
      totals,
      pools,
      jobs: rows,
    } = outcome(await simulated(jobs, { onSettled: (settled) => told.push(settled) }));
    const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);
    expect(sum(told.flatMap((t) => t.rows.map((row) => row.usd)))).toBeCloseTo(totals.billedUsd, 9);
    expect(new Set(told.map((t) => t.instance.id)).size).toBe(told.length);
    expect(sum(told.map((t) => t.attempts.length))).toBe(totals.attempts);
    expect(totals.billedUsd).toBeGreaterThan(0.1);
    expect(sum(pools.map((p) => p.billedUsd))).toBeCloseTo(totals.billedUsd, 9);
    expect(sum(rows.workUsd)).toBeCloseTo(totals.workUsd, 9);
    expect(sum(rows.wastedUsd)).toBeCloseTo(totals.wastedUsd, 9);
    expect(sum(pools.map((p) => p.hours))).toBeCloseTo(totals.instanceHours, 6);
    expect(sum(pools.map((p) => p.launches))).toBe(totals.launches);
  });

  it('charges what still lives at the end of the window until then', async () => {
    const toMs = plus(START_MS, seconds(1800));
    const late = simulatedJob('late', 0, [2000], { deadlineS: 1700, stage: { expectedRuntimeS: seconds(600) } });
    const inTime = simulatedJob('in time', 0, [2000], { deadlineS: 7200 });
    const result = await simulated([simulatedJob('a', 0, [20_000]), late, inTime], { toMs });
    expect(result.ended).toBe('time-over');
    const { totals, jobs, instances } = outcome(result);
    expect(totals).toMatchObject({ unfinished: 3, succeeded: 0, deadlines: 2, missed: 1 });
    expect(totals.billedUsd).toBeGreaterThan(0);
    expect(Number.isNaN(jobs.finishedMs[0])).toBe(true);
    expect(Math.max(...instances.counts.spot, ...instances.counts['on-demand'])).toBeGreaterThan(0);
  });

  it('tells of the jobs that come after the end of the window, however far', async () => {
    const late = [49 * 3600, 1e18, 1e306].map((s, i) => simulatedJob(`late-${i}`, s, [60]));
    const result = await simulated([simulatedJob('a', 0, [60]), ...late]);
    expect(result.ended).toBe('time-over');
    expect(outcome(result).totals).toMatchObject({ jobs: 1, succeeded: 1, notSubmitted: 3 });
    expect(outcome(await simulated([simulatedJob('a', 0, [60])])).totals.notSubmitted).toBe(0);
  });

  it('gives up counting them in a workload without end', async () => {
    const endless = (function* () {
      for (let i = 0; ; i++) yield simulatedJob(`${i}`, i * 1e9, [60]);
    })();
    const result = await simulated([], { jobs: endless });
    expect(outcome(result).totals.notSubmitted).toBe(COUNTED_PAST_END);
  });

  it('stops where it stands when told to, with what has happened until then', async () => {
    const abort = new AbortController();
    const jobs = Array.from({ length: 400 }, (_, i) => simulatedJob(`j${i}`, i * 60, [120]));
    const result = await simulated(jobs, { signal: abort.signal, onProgress: () => abort.abort() });
    expect(result.ended).toBe('aborted');
    const { totals } = outcome(result);
    expect(totals.jobs).toBeGreaterThan(0);
    expect(totals.jobs).toBeLessThan(400);
  });

  it('counts what submission refuses, and goes on', async () => {
    const huge = simulatedJob('huge', 0, [60], { stage: { resources: resources(1000) } });
    const impossible = simulatedJob('late', 10, [60], { deadlineS: 30 });
    const orphan = simulatedJob('orphan', 20, [60], { after: ['nobody'] });
    const result = await simulated([huge, impossible, orphan, simulatedJob('ok', 30, [60])]);
    expect(result.refused.map((r) => [r.key, r.code])).toEqual([
      ['huge', 'job.unplaceable'],
      ['late', 'job.deadline-impossible'],
      ['orphan', 'job-file.dependency'],
    ]);
    expect(outcome(result).totals).toMatchObject({ jobs: 1, succeeded: 1, refused: 3 });
  });

  it('keeps the reasons of so many refusals, and the names of all', async () => {
    const late = Array.from({ length: TEXTS_KEPT + 5 }, (_, i) =>
      simulatedJob(`late-${i}`, i, [60], { deadlineS: 30 }),
    );
    const { refused } = await simulated(late);
    expect(refused).toHaveLength(TEXTS_KEPT + 5);
    expect(refused.filter((r) => r.what !== '')).toHaveLength(TEXTS_KEPT);
    expect(refused.at(-1)).toEqual({
      key: `late-${TEXTS_KEPT + 4}`,
      code: 'job.deadline-impossible',
      what: '',
      next: refused[0]?.next,
    });
  });

  it('forgets what checkpoints held of jobs that failed', async () => {
    const jobs = Array.from({ length: 20 }, (_, i) =>
      simulatedJob(`j${i}`, i * 600, [60], { failures: [9], stage: { retries: 1, checkpoint: SAVES } }),
    );
    const { fleet, store } = await simulated(jobs);
    expect(fleet.jobsWithCheckpoints).toBeLessThan(5);
    expect((await store.jobs({}, 100, null)).items.length).toBeLessThan(5);
  });

  it('lets jobs wait for others by name where jobs are named', async () => {
    const jobs = [simulatedJob('first', 0, [600]), simulatedJob('second', 1, [60], { after: ['first'] })];
    const { jobs: rows } = outcome(await simulated(jobs, { namesJobs: true }));
    expect(rows.state).toEqual(['succeeded', 'succeeded']);
    expect(rows.startedMs[1]).toBeGreaterThanOrEqual(rows.finishedMs[0] ?? Infinity);
  });

  it.each([
    ['before the market', epochMs(raw(mixedTrace.startMs) - 1000), mixedTrace.endMs, 'do not overlap in time'],
    ['after the market', mixedTrace.endMs, plus(mixedTrace.endMs, seconds(60)), 'do not overlap in time'],
    ['empty', START_MS, START_MS, 'ends before it begins'],
    ['beyond all time', START_MS, epochMs(9e15), 'do not overlap in time'],
  ])('refuses a window %s', async (_, fromMs, toMs, what) => {
    await expect(simulated([simulatedJob('a', 0, [60])], { fromMs, toMs })).rejects.toMatchObject({
      code: 'usage',
      facts: { what: expect.stringContaining(what) },
    });
  });

  it('forgets what is over: of finished jobs and ended instances nothing is held', async () => {
    const jobs = Array.from({ length: 50 }, (_, i) => simulatedJob(`j${i}`, i * 120, [100, 200]));
    const result = await simulated(jobs);
    expect(outcome(result).totals.succeeded).toBe(50);
    // The last ones are forgotten a cycle after their end, which does not come any more.
    expect((await result.store.jobs({}, 100, null)).items.length).toBeLessThan(5);
    expect((await result.store.instances(null, 100, null)).items.length).toBeLessThan(5);
    expect((await result.fleet.list()).length).toBeLessThan(5);
  });
});
