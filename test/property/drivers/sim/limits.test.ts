/**
 * What jobs pay: rows of the ledger against bills, and bills against limits, over generated work, markets and billing
 * rules.
 */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { presetNamed } from '../../../../lib/stages/registry.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { epochMs, raw, seconds, usd } from '../../../../lib/kernel/units.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { traceOf } from '../../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../../lib/market/trace.ts';
import type { Settled } from '../../../../lib/drivers/sim/collector.ts';
import type { WorkloadJob } from '../../../../lib/workload/workload.ts';
import { pool, resources, spec, stage } from '../../../support/builders.ts';
import { simulated } from '../../../support/simulated.ts';

const START = Date.UTC(2021, 5, 7);
const HOUR_S = 3600;
const DAYS = 3;

interface Scenario {
  readonly jobs: readonly {
    readonly atS: number;
    readonly tasks: number;
    readonly cpus: number;
    readonly runtimeS: number;
    /** What the user says of it, as a factor. */
    readonly guess: number;
    readonly limitUsd: number | null;
    readonly deadline: boolean;
    readonly saves: boolean;
    readonly gang: boolean;
  }[];
  /** Spot prices as parts of on-demand, every half hour, per zone. */
  readonly prices: readonly (readonly number[])[];
  /** Hours between losses of capacity, per zone. */
  readonly losses: readonly (readonly number[])[];
  readonly billing: 'per-second' | 'per-hour';
  readonly preset: 'ebbtide' | 'greedy' | 'fleet' | 'on-demand' | 'spot-greedy';
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  jobs: fc.array(
    fc.record({
      atS: fc.integer({ min: 0, max: 2 * HOUR_S }),
      tasks: fc.integer({ min: 1, max: 8 }),
      cpus: fc.constantFrom(1, 2, 4),
      runtimeS: fc.integer({ min: 5, max: 3 * HOUR_S }),
      guess: fc.constantFrom(0.1, 0.5, 1, 2),
      limitUsd: fc.oneof(
        { weight: 3, arbitrary: fc.double({ min: 0.002, max: 2, noNaN: true }) },
        { weight: 1, arbitrary: fc.constant(null) },
      ),
      deadline: fc.boolean(),
      saves: fc.boolean(),
      gang: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  prices: fc.array(fc.array(fc.double({ min: 0.1, max: 1.6, noNaN: true }), { minLength: 3, maxLength: 40 }), {
    minLength: 2,
    maxLength: 2,
  }),
  losses: fc.array(fc.array(fc.double({ min: 0.2, max: 12, noNaN: true }), { maxLength: 8 }), {
    minLength: 2,
    maxLength: 2,
  }),
  billing: fc.constantFrom('per-second' as const, 'per-second' as const, 'per-hour' as const),
  preset: fc.constantFrom(
    'ebbtide' as const,
    'greedy' as const,
    'fleet' as const,
    'on-demand' as const,
    'spot-greedy' as const,
  ),
});

function marketOf({ prices, losses }: Scenario): MarketTrace {
  const { type } = pool();
  const large = { ...type, name: 'c5.4xlarge', capacity: resources(16, 32_768) };
  const end = START + DAYS * 24 * HOUR_S * 1000;
  return traceOf(
    { name: 'generated', startMs: epochMs(START), endMs: epochMs(end) },
    ['a', 'b'].flatMap((zone, z) =>
      [type, large].map((t, i) => {
        const list = i === 0 ? 0.17 : 0.68;
        const parts = prices[z] ?? [0.3];
        let lossMs = START;
        const atMs = [START];
        const available = [1];
        for (const h of losses[z] ?? []) {
          lossMs += h * HOUR_S * 1000;
          atMs.push(lossMs, lossMs + 900_000);
          available.push(0, 1);
          lossMs += 900_000;
        }
        return {
          type: t,
          zone,
          onDemandUsdPerHour: list,
          prices: {
            atMs: Float64Array.from(parts, (_, k) => START + k * 1_800_000 + z * 700_000 * Math.min(k, 1)),
            usdPerHour: Float64Array.from(parts, (p) => p * list),
          },
          availability: { atMs: Float64Array.from(atMs), available: Uint8Array.from(available) },
        };
      }),
    ),
  );
}

const jobsOf = ({ jobs }: Scenario): WorkloadJob[] =>
  jobs
    .map(({ atS, tasks, cpus, runtimeS, guess, limitUsd, deadline, saves, gang }, n): WorkloadJob => ({
      key: `job-${n}`,
      submittedS: atS,
      truth: new Map([['main', { runtimeS: Float64Array.from({ length: tasks }, (_, i) => runtimeS * (1 + i / 10)) }]]),
      spec: spec({
        name: `job-${n}`,
        ...(deadline ? { class: 'deadline', deadline: { afterS: seconds(6 * HOUR_S) } } : {}),
        maxCostUsd: limitUsd === null ? null : usd(limitUsd),
        stages: [
          stage({
            tasks,
            gang,
            resources: resources(cpus, 1024),
            expectedRuntimeS: seconds(runtimeS * guess),
            checkpoint: saves ? { signal: 'SIGTERM', graceS: seconds(30), everyS: seconds(300) } : null,
          }),
        ],
      }),
    }))
    .sort((a, b) => a.submittedS - b.submittedS);

async function run(of: Scenario) {
  const trace = marketOf(of);
  const settled: Settled[] = [];
  const result = await simulated(jobsOf(of), {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: epochMs(START),
    toMs: trace.endMs,
    deciders: () => ({ name: of.preset, stages: presetNamed(of.preset).stages }),
    config: schedulerConfig.parse({ billing: of.billing }),
    onSettled: (one) => void settled.push(one),
  });
  return { result, settled };
}

describe('generated work on generated markets', () => {
  it('every bill is the sum of its rows, none of them without a job, and no job passes its limit', async () => {
    const seen = { limited: 0, stopped: 0, done: 0, shared: 0, idleUsd: 0, usedUp: 0 };
    await fc.assert(
      fc.asyncProperty(scenario, async (of) => {
        const { result, settled } = await run(of);
        for (const { instance, rows } of settled) {
          const sum = rows.reduce((s, r) => s + r.usd, 0);
          if (instance.costUsd !== null) expect(Math.abs(sum - raw(instance.costUsd))).toBeLessThan(1e-9);
          expect(rows.filter((r) => r.job === null)).toEqual([]);
          if (new Set(rows.map((r) => r.job)).size > 1) seen.shared += 1;
          seen.idleUsd += rows.reduce((s, r) => s + (r.kind === 'idle' ? r.usd : 0), 0);
        }
        const jobs = result.collected.rows.columns();
        const total = jobs.key.reduce(
          (s, _, i) => s + (jobs.workUsd[i] ?? 0) + (jobs.wastedUsd[i] ?? 0) + (jobs.idleUsd[i] ?? 0),
          0,
        );
        const { usd: all } = result.collected;
        expect(total).toBeCloseTo(all.work + all.wasted + all.idle, 9);
        jobs.key.forEach((key, i) => {
          const limitUsd = of.jobs[Number(key.slice(4))]?.limitUsd ?? null;
          if (limitUsd === null) return;
          const billUsd = (jobs.workUsd[i] ?? 0) + (jobs.wastedUsd[i] ?? 0) + (jobs.idleUsd[i] ?? 0);
          seen.limited += 1;
          if (jobs.state[i] === 'succeeded') seen.done += 1;
          else if (billUsd > 0) seen.stopped += 1;
          expect({ key, over: Math.max(0, billUsd - limitUsd) }).toEqual({ key, over: 0 });
        });
        seen.usedUp += result.events.filter((e) => e.type === 'job-failed' && e.text.includes('is used up')).length;
      }),
      { seed: Number(process.env['EBB_SEED'] ?? 19), numRuns: Number(process.env['EBB_RUNS'] ?? 60) },
    );
    expect(seen.done).toBeGreaterThan(15);
    expect(seen.stopped).toBeGreaterThan(10);
    expect(seen.shared).toBeGreaterThan(15);
  }, 900_000);

  it('a limit that is ample changes no outcome', async () => {
    let done = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (of) => {
        const free = { ...of, jobs: of.jobs.map((j) => ({ ...j, limitUsd: null })) };
        const ample = { ...of, jobs: of.jobs.map((j) => ({ ...j, limitUsd: 1000 })) };
        const outcomes = await Promise.all(
          [free, ample].map(async (one) => (await run(one)).result.collected.rows.columns()),
        );
        const [without, within] = outcomes;
        expect(within?.state).toEqual(without?.state);
        done += within?.state.filter((s) => s === 'succeeded').length ?? 0;
      }),
      { seed: 23, numRuns: 15 },
    );
    expect(done).toBeGreaterThan(10);
  }, 900_000);
});
