import { describe, expect, it } from '@jest/globals';
import { lowerBoundUsd } from '../../../../../lib/drivers/sim/reference/lower-bound.ts';
import { needsOf } from '../../../../../lib/drivers/sim/reference/needs.ts';
import { epochMs } from '../../../../../lib/kernel/units.ts';
import { traceOf, type SpotMarket } from '../../../../../lib/market/price-steps.ts';
import type { WorkloadJob } from '../../../../../lib/workload/workload.ts';
import { pool, resources } from '../../../../support/builders.ts';
import { simulatedJob } from '../../../../support/simulated.ts';

const HOUR_S = 3600;
const HOUR_MS = HOUR_S * 1000;
const saves = { checkpoint: { signal: 'SIGTERM', graceS: 30, everyS: null } } as unknown as NonNullable<
  Parameters<typeof simulatedJob>[3]
>['stage'];

interface Market {
  /** Spot price from each hour on. */
  readonly prices?: readonly (readonly [hour: number, usdPerHour: number])[];
  /** Capacity (1 or 0) from each hour on; absent: always. */
  readonly capacity?: readonly (readonly [hour: number, available: number])[];
  readonly cpus?: number;
  readonly memoryMiB?: number;
}

const market = (of: Market): SpotMarket => ({
  type: pool({ cpus: of.cpus ?? 4, memoryMiB: of.memoryMiB ?? 8192 }).type,
  zone: 'test-1a',
  onDemandUsdPerHour: 1,
  prices: {
    atMs: Float64Array.from(of.prices ?? [[0, 0.3]], ([h]) => h * HOUR_MS),
    usdPerHour: Float64Array.from(of.prices ?? [[0, 0.3]], ([, usd]) => usd),
  },
  availability:
    of.capacity === undefined
      ? null
      : {
          atMs: Float64Array.from(of.capacity, ([h]) => h * HOUR_MS),
          available: Uint8Array.from(of.capacity, ([, a]) => a),
        },
});

const boundOf = (
  jobs: readonly WorkloadJob[],
  of: Market = {},
  over: { readonly billing?: 'per-second' | 'per-hour'; readonly setupS?: number } = {},
): number | null =>
  lowerBoundUsd({
    needs: needsOf(jobs, { fromMs: epochMs(0), setupS: over.setupS ?? 0 }),
    trace: traceOf({ name: 'made by hand', startMs: epochMs(0), endMs: epochMs(48 * HOUR_MS) }, [market(of)]),
    rules: { billing: over.billing ?? 'per-second', refundRule: 'none' },
    toMs: 48 * HOUR_MS,
  });

/** Needs of a task that fills the machine. */
const WHOLE = { resources: resources(4, 8192) };

describe('the lower bound of a cost', () => {
  it('of a task alone is a whole instance with the shortest start-up', () => {
    expect(boundOf([simulatedJob('one', 0, [HOUR_S])])).toBeCloseTo(0.3 * (1 + 30 / HOUR_S), 9);
  });

  it('divides an instance by what fits on it, not by what is asked for', () => {
    const three = simulatedJob('three', 0, [HOUR_S, HOUR_S, HOUR_S], { stage: { resources: resources(3, 512) } });
    expect(boundOf([three])).toBeCloseTo(3 * 0.3, 9);
    const memory = simulatedJob('memory', 0, [HOUR_S, HOUR_S, HOUR_S, HOUR_S], {
      stage: { resources: resources(1, 4096) },
    });
    expect(boundOf([memory])).toBeCloseTo(2 * 0.3, 9);
  });

  it('takes the cheapest time before the deadline, in one piece for work that cannot be kept', () => {
    const prices = [
      [0, 0.5],
      [2, 0.1],
      [3, 0.4],
      [5, 0.2],
      [6, 0.9],
    ] as const;
    const two = (stage: Parameters<typeof simulatedJob>[3]): WorkloadJob[] => [
      simulatedJob('a', 0, [2 * HOUR_S], stage),
      simulatedJob('b', 0, [2 * HOUR_S], stage),
    ];
    // The last price holds for the notice longer than it was in force.
    const kept = boundOf(two({ deadlineS: 8 * HOUR_S, stage: { ...WHOLE, ...saves } }), { prices });
    expect(kept).toBeCloseTo(2 * (0.1 * (1 + 1 / 30) + 0.2 * (1 - 1 / 30)), 6);
    const once = boundOf(two({ deadlineS: 8 * HOUR_S, stage: WHOLE }), { prices });
    expect(once).toBeCloseTo(2 * (0.1 * (1 + 1 / 30) + 0.4 * (1 - 1 / 30)), 6);
    const soon = boundOf(two({ deadlineS: 2 * HOUR_S, stage: { ...WHOLE, ...saves } }), { prices });
    expect(soon).toBeCloseTo(2 * 0.5 * 2, 6);
  });

  it('counts changeovers: many short stays are no way to do long work', () => {
    const capacity = [
      [0, 1],
      [1, 0],
      [2, 1],
      [3, 0],
      [4, 1],
      [5, 0],
    ] as const;
    const long = [simulatedJob('long', 0, [3 * HOUR_S], { deadlineS: 12 * HOUR_S, stage: { ...WHOLE, ...saves } })];
    // On-demand is the cheapest: a stay of an hour on spot does half an hour of work for 0.6 USD. The cheapest moments
    // would be 3.1 hours of spot and 0.4 of on-demand.
    const usd = boundOf(long, { capacity, prices: [[0, 0.6]] }, { setupS: 1800 }) ?? 0;
    expect(usd).toBeGreaterThan(3.1);
    expect(usd).toBeLessThanOrEqual(3.5 + 1 / 120);
  });

  it('divides a billed hour by the work that can be in it', () => {
    expect(boundOf([simulatedJob('short', 0, [600])], {}, { billing: 'per-hour' })).toBeCloseTo(0.3, 9);
    expect(
      boundOf([simulatedJob('a', 0, [600]), simulatedJob('b', 0, [600])], {}, { billing: 'per-hour' }),
    ).toBeCloseTo(0.3, 9);
  });

  it('counts started hours of a task that is alone', () => {
    const alone = (runtimeS: number): number | null =>
      boundOf([simulatedJob('alone', 0, [runtimeS])], {}, { billing: 'per-hour' });
    expect(alone(1.5 * HOUR_S)).toBeCloseTo(0.6, 9);
    expect(alone(HOUR_S - 30)).toBeCloseTo(0.3, 9);
    expect(alone(2 * HOUR_S - 20)).toBeCloseTo(0.9, 9);
  });

  it('gives work that cannot be in time all the time there is, and is 0 for work without a pool', () => {
    expect(boundOf([simulatedJob('late', 0, [HOUR_S], { deadlineS: 60 })])).toBeCloseTo(0.3 * (1 + 30 / HOUR_S), 9);
    expect(boundOf([simulatedJob('huge', 0, [HOUR_S], { stage: { resources: resources(64) } })])).toBe(0);
    expect(boundOf([])).toBe(0);
  });

  it('leaves later stages their time', () => {
    const prices = [
      [0, 0.5],
      [3, 0.1],
    ] as const;
    const staged = simulatedJob('staged', 0, [HOUR_S], { deadlineS: 4 * HOUR_S, stage: WHOLE });
    const [first] = staged.spec.stages;
    if (first === undefined) throw new Error('a job has a stage');
    const two: WorkloadJob = {
      ...staged,
      spec: { ...staged.spec, stages: [first, { ...first, name: 'later', dependsOn: ['main'] }] },
      truth: new Map([...staged.truth, ['later', { runtimeS: Float64Array.of(HOUR_S) }]]),
    };
    // The first must be done by the third hour, when the low price begins.
    expect(boundOf([two], { prices })).toBeCloseTo(0.5 + 0.1, 9);
  });
});
