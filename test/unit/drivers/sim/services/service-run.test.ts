import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../../lib/domain/config.ts';
import { NEVER_INTERRUPTED } from '../../../../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../../../../lib/domain/forecasts.ts';
import { replayMarket } from '../../../../../lib/drivers/local/market/replay.ts';
import { TRIBUTARY_REQUESTS } from '../../../../../lib/drivers/sim/services/request-queue.ts';
import { runService, type ServiceRunInput } from '../../../../../lib/drivers/sim/services/service-run.ts';
import { capacityOf } from '../../../../../lib/market/capacity-truth.ts';
import type { FootprintContext, FootprintPolicy } from '../../../../../lib/policy/services/contracts.ts';
import { autoscaleLowest, onDemandAutoscale } from '../../../../../lib/stages/services/autoscale.ts';
import { reactive } from '../../../../../lib/stages/services/scaling.ts';
import { tributary } from '../../../../../lib/stages/services/tributary.ts';
import { START_MS } from '../../../../support/mixed-workload.ts';
import { zones } from '../../../../support/observed-run.ts';

const config = schedulerConfig.parse({});
/** Nothing is ever lost, as far as anybody can tell. */
const calm: MarketForecast = {
  interruption: () => NEVER_INTERRUPTED,
  expectedPrice: () => null,
  correlation: () => 0,
};
const steady = (minutes: number, rps: number): Float64Array => new Float64Array(minutes).fill(rps * 60);

function inputOf(
  footprint: FootprintPolicy,
  {
    trace = zones({ name: 'a' }),
    ...over
  }: Partial<ServiceRunInput> & { readonly trace?: ReturnType<typeof zones> } = {},
): ServiceRunInput {
  return {
    world: { market: replayMarket(trace), truth: capacityOf(trace, config), forecast: () => calm, hourlyUsd: () => [] },
    plan: { scaling: reactive, footprint, target: 0.95 },
    rules: TRIBUTARY_REQUESTS,
    config,
    startS: 200,
    fromMs: START_MS,
    perMinute: steady(60, 60),
    seed: 1,
    ...over,
  };
}

describe('a simulated service', () => {
  it('of constant load has what it needs after its start, and pays for that', async () => {
    const { billedUsd, minutes, launched, requests, slow, rejected } = await runService(inputOf(onDemandAutoscale));
    // 6 vCPUs: two machines of 4, for an hour.
    expect(launched).toBe(2);
    expect(billedUsd).toBeCloseTo(2 * 0.17, 9);
    expect(requests).toBeGreaterThan(0.97 * 60 * 3600);
    expect(requests).toBeLessThan(1.03 * 60 * 3600);
    // Nothing serves for 200 s; after that there is room.
    expect(rejected).toBeGreaterThan(0.9 * 60 * 200);
    expect(slow).toBeGreaterThanOrEqual(rejected);
    expect(minutes).toHaveLength(60);
    expect(minutes.slice(5).map((m) => [m.vcpus, m.slow])).toEqual(new Array(55).fill([8, 0]));
  });

  it('loses what the market takes, is not charged within the first hour, and replaces it at the notice', async () => {
    const trace = zones({ name: 'a', outages: [[1800, 2400]] }, { name: 'b', usdPerHour: 0.06 });
    const { interrupted, refundedUsd, billedUsd, launched, minutes } = await runService(
      inputOf(autoscaleLowest, { trace }),
    );
    expect(interrupted).toBe(2);
    expect(launched).toBe(4);
    expect(refundedUsd).toBeGreaterThan(0);
    // The first two are free; two of zone b run from the notice on.
    expect(billedUsd).toBeLessThan(2 * 0.06 * 0.6);
    // Two minutes of notice, and 200 s until the replacements serve.
    const without = minutes.filter((m) => m.vcpus === 0).length;
    expect(without).toBeGreaterThanOrEqual(3 + 1);
    expect(without).toBeLessThanOrEqual(3 + 3);
    expect(minutes.slice(-20).every((m) => m.slow === 0)).toBe(true);
  });

  it('gives back what less load does not need, after three minutes', async () => {
    const perMinute = Float64Array.from([...steady(20, 100), ...steady(20, 30)]);
    const { minutes } = await runService(inputOf(autoscaleLowest, { perMinute }));
    expect([10, 19, 22, 24, 39].map((m) => minutes[m]?.vcpus)).toEqual([12, 12, 12, 4, 4]);
  });

  it('keeps its capacity through minutes of which nothing is known', async () => {
    const perMinute = Float64Array.from([...steady(10, 60), ...new Float64Array(10).fill(NaN), ...steady(10, 60)]);
    const { minutes, requests } = await runService(inputOf(autoscaleLowest, { perMinute }));
    expect(minutes.slice(5).every((m) => m.vcpus === 8)).toBe(true);
    expect(requests).toBeLessThan(1.05 * 60 * 1200);
    const unknown = await runService(inputOf(autoscaleLowest, { perMinute: new Float64Array(5).fill(NaN) }));
    expect(unknown).toMatchObject({ requests: 0, launched: 0, billedUsd: 0 });
  });

  it('is the same twice, and for Tributary too', async () => {
    const trace = zones({ name: 'a', outages: [[900, 1000]] }, { name: 'b' }, { name: 'c' });
    const once = await runService(inputOf(tributary(), { trace }));
    expect(await runService(inputOf(tributary(), { trace }))).toEqual(once);
    expect(once.minutes.slice(-10).every((m) => m.slow === 0)).toBe(true);
  });

  it('shows a policy no instance that the market is taking', async () => {
    const trace = zones({ name: 'a', outages: [[600, 3600]] });
    const seen: number[] = [];
    const watched = (context: FootprintContext) => {
      seen.push(context.held.length);
      return autoscaleLowest(context);
    };
    const { refused } = await runService(inputOf(watched, { trace, perMinute: steady(15, 30) }));
    expect(seen[0]).toBe(0);
    expect(seen[1]).toBe(1);
    expect(seen.at(-1)).toBe(0);
    // Nothing can be bought in the outage, and a refused pool is left alone for five minutes.
    expect(refused).toBe(1);
  });
});
