import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { resources } from '../../support/builders.ts';
import { START_MS, calmTrace } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** Hours of the cheapest pool, 4 vCPUs for 0.06 USD. */
async function hoursOf(jobs: readonly WorkloadJob[], billing: 'per-hour' | 'per-second' = 'per-hour') {
  const result = await simulated(jobs, {
    trace: calmTrace,
    market: (now) => replayMarket(calmTrace, now),
    config: schedulerConfig.parse({ billing }),
    deciders: decidersNamed('ebbtide'),
  });
  const { totals } = outcomeOf(result, { preset: 'ebbtide', seed: 1, fromMs: START_MS });
  return { hours: totals.billedUsd / 0.06, unfinished: totals.unfinished, missed: totals.missed };
}

const whole = { resources: resources(4) };
const minutes = (n: number, of: number): number[] => Array.from({ length: n }, () => of * 60);

describe('billing by the hour', () => {
  it('runs a minute of work, though an hour is charged for it', async () => {
    const { hours, unfinished } = await hoursOf([simulatedJob('minute', 0, [60], { stage: whole })]);
    expect([hours, unfinished]).toEqual([1, 0]);
  });

  it('fills the hour that is paid with work that can wait', async () => {
    const { hours, unfinished } = await hoursOf([simulatedJob('five', 0, minutes(5, 9), { stage: whole })]);
    expect(unfinished).toBe(0);
    expect(hours).toBeLessThanOrEqual(2);
  });

  it('begins new work in the rest of an hour that another job has paid', async () => {
    const jobs = [0, 12, 24, 36].map((at) => simulatedJob(`at-${at}`, at * 60, minutes(1, 8), { stage: whole }));
    const { hours, unfinished } = await hoursOf(jobs);
    expect([hours, unfinished]).toEqual([1, 0]);
  });

  it('does not keep work with a deadline waiting for it', async () => {
    const job = simulatedJob('dated', 0, minutes(5, 9), { stage: whole, deadlineS: 1500 });
    expect(await hoursOf([job])).toMatchObject({ unfinished: 0, missed: 0 });
  });
});
