import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { Settled } from '../../../lib/drivers/sim/collector.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { resources } from '../../support/builders.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const HOUR_S = 3600;
const DAY_MS = 86_400_000;

/** A job of two machine-hours every two hours, for 30 hours. */
const jobs = (): WorkloadJob[] =>
  Array.from({ length: 15 }, (_, n) =>
    simulatedJob(`job-${n}`, 2 * n * HOUR_S, [1800, 1800, 1800, 1800], {
      stage: { resources: resources(4), expectedRuntimeS: seconds(1800) },
    }),
  );

async function run(settings: Record<string, unknown>, work: readonly WorkloadJob[] = jobs()) {
  const settled: Settled[] = [];
  const result = await simulated(work, {
    config: schedulerConfig.parse({ refundRule: 'none', ...settings }),
    onSettled: (one) => void settled.push(one),
  });
  const perDay = new Map<string, number>();
  const add = (ms: number, usd: number): void => {
    const day = new Date(ms).toISOString().slice(0, 10);
    perDay.set(day, (perDay.get(day) ?? 0) + usd);
  };
  for (const { fromMs, toMs, usd } of settled.flatMap((one) => one.rows)) {
    const [from, to] = [raw(fromMs), raw(toMs)];
    const midnight = Math.ceil(from / DAY_MS) * DAY_MS;
    const before = to > midnight && to > from ? (midnight - from) / (to - from) : 1;
    add(from, usd * before);
    if (before < 1) add(to, usd * (1 - before));
  }
  const told = result.events.flatMap((e) => (e.type === 'spending-limit' ? [e.data] : []));
  return { result, perDay, told };
}

/** What is bought is counted at the price of now, and what a row cost is told to its days by time. */
const PRICES_MOVE = 1.02;

describe('a limit of the deployment', () => {
  it('per day is not passed by what is bought, is told at 80 % and when reached, once each, and ends with the day', async () => {
    const { perDay, told, result } = await run({ maxUsdPerDay: 0.5 });
    expect(perDay.size).toBeGreaterThanOrEqual(2);
    for (const usd of perDay.values()) expect(usd).toBeLessThanOrEqual(0.5 * PRICES_MOVE);
    expect(Math.max(...perDay.values())).toBeGreaterThan(0.35);
    const days = told.filter((t) => t['period'] === 'day').map((t) => t['percent']);
    expect(days.slice(0, 2)).toEqual([80, 100]);
    expect(days.length).toBeLessThanOrEqual(2 * perDay.size);
    const reached = result.events.find((e) => e.type === 'spending-limit' && e.data['percent'] === 100);
    expect(reached?.text).toMatch(
      /^the limit of 0\.50 USD a day \(maxUsdPerDay\) could be passed: .* is bought before \d{4}-/,
    );
  }, 200_000);

  it('per month counts over days', async () => {
    const { perDay, told } = await run({ maxUsdPerMonth: 0.4 });
    expect([...perDay.values()].reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(0.4);
    expect(told.map((t) => [t['period'], t['percent']])).toEqual([
      ['month', 80],
      ['month', 100],
    ]);
  }, 200_000);

  it('counts started hours, where hours are charged', async () => {
    const work = Array.from({ length: 8 }, (_, n) =>
      simulatedJob(`job-${n}`, n * 300, [3900], {
        stage: { resources: resources(4), expectedRuntimeS: seconds(3900) },
      }),
    );
    const { perDay, told } = await run({ billing: 'per-hour', maxUsdPerMonth: 0.4 }, work);
    expect(told.map((t) => t['percent'])).toContain(100);
    expect([...perDay.values()].reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(0.4);
  }, 200_000);

  it('refuses a gang that it does not pay for, and the gang keeps no money from others', async () => {
    const whole = { resources: resources(4) };
    const gang = simulatedJob(
      'gang',
      0,
      Array.from({ length: 12 }, () => 7200),
      { stage: { ...whole, gang: true, command: ['other'], expectedRuntimeS: seconds(7200) } },
    );
    const small = simulatedJob('small', 0, [600], { stage: { ...whole, expectedRuntimeS: seconds(600) } });
    // Ten of the gang's twelve instances, and less than one for the small job beside them.
    const { result } = await run({ maxUsdPerMonth: 0.78 }, [gang, small]);
    // The only task that runs is that of the small job.
    const doneS = result.events.flatMap((e) =>
      e.type === 'attempt-succeeded' ? [(raw(e.atMs) - raw(START_MS)) / 1000] : [],
    );
    expect(doneS).toHaveLength(1);
    expect(doneS[0]).toBeGreaterThan(600);
    expect(doneS[0]).toBeLessThan(1200);
    expect(result.events.filter((e) => e.type === 'instance-requested')).toHaveLength(1);
  }, 200_000);
});
