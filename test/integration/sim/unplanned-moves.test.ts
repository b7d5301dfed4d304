import { expect, it } from '@jest/globals';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import { epochMs, mib, milliCpu, raw, seconds } from '../../../lib/kernel/units.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { resources } from '../../support/builders.ts';
import { after, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const HOUR_S = 3600;
const DAY_MS = 86_400_000;

/** Spot at an eighth of the on-demand price, which can be had from the first hour on. */
const market = (): SpotMarket => ({
  type: {
    name: 'c5.xlarge',
    family: 'c5',
    generation: 5,
    arch: 'x86_64',
    capacity: { cpu: milliCpu(4000), memory: mib(8192), gpus: 0, disk: mib(100_000) },
  },
  zone: 'a',
  onDemandUsdPerHour: 0.17,
  prices: { atMs: Float64Array.of(raw(START_MS) - DAY_MS), usdPerHour: Float64Array.of(0.02) },
  availability: {
    atMs: Float64Array.of(raw(START_MS) - DAY_MS, raw(after(-60)), raw(after(HOUR_S))),
    available: Uint8Array.of(1, 0, 1),
  },
});

it('keeps no vCPUs from others for a move that would lose too much work to begin', async () => {
  const trace = traceOf(
    { name: 'no spot at first', startMs: epochMs(raw(START_MS) - DAY_MS), endMs: epochMs(raw(START_MS) + DAY_MS) },
    [market()],
  );
  const whole = { resources: resources(4) };
  const long = simulatedJob('long', 0, [5 * HOUR_S], {
    deadlineS: 14 * HOUR_S,
    stage: { ...whole, expectedRuntimeS: seconds(5 * HOUR_S), constraints: {} },
  });
  const short = simulatedJob('short', 1.5 * HOUR_S, [600], { stage: { ...whole, command: ['other'] } });
  const { events, collected } = await simulated([long, short], {
    trace,
    market: (now) => replayMarket(trace, now),
    namesJobs: true,
    vcpus: 8,
  });
  const { submittedMs, finishedMs } = collected.rows.columns();
  // Going to spot would pay, and lose an hour of work: the long task stays where it is.
  expect(events.filter((e) => e.type === 'attempt-preempted')).toEqual([]);
  const waitedS = [...finishedMs].map((ms, i) => (ms - (submittedMs[i] ?? 0)) / 1000).toSorted((a, b) => a - b);
  expect(waitedS[0]).toBeLessThan(1200);
}, 120_000);
