import { describe, expect, it } from '@jest/globals';
import { onDemandReference } from '../../../../../lib/drivers/sim/reference/on-demand.ts';
import { needsOf } from '../../../../../lib/drivers/sim/reference/needs.ts';
import { epochMs, seconds } from '../../../../../lib/kernel/units.ts';
import type { WorkloadJob } from '../../../../../lib/workload/workload.ts';
import { pool, resources, spec, stage } from '../../../../support/builders.ts';
import { simulatedJob } from '../../../../support/simulated.ts';

const SMALL = pool({ type: 'c5.small', option: 'on-demand', cpus: 2, onDemand: 0.1 });
const LARGE = pool({ type: 'c5.large', option: 'on-demand', cpus: 4, onDemand: 0.18 });
/** Spot is no part of the reference, however cheap. */
const SPOT = pool({ type: 'c5.small', option: 'spot', cpus: 2, onDemand: 0.001 });
const START_S = 95;

const of = (jobs: readonly WorkloadJob[], billing: 'per-second' | 'per-hour' = 'per-second', setupS = 0) =>
  onDemandReference({
    needs: needsOf(jobs, { fromMs: epochMs(0), setupS }),
    pools: [LARGE, SPOT, SMALL],
    billing,
    startMs: START_S * 1000,
  });
const hours = (s: number): number => s / 3600;

describe('the on-demand reference', () => {
  it('gives a task alone the cheapest instance that holds it, both ways', () => {
    const one = of([simulatedJob('one', 0, [600])]);
    expect(one?.usd).toBeCloseTo(0.1 * hours(START_S + 600), 12);
    expect([one?.oneEachUsd, one?.packedUsd, one?.packedSmallUsd]).toEqual([one?.usd, one?.usd, one?.usd]);
    const wide = simulatedJob('wide', 0, [600], { stage: { resources: resources(3) } });
    expect(of([wide])?.usd).toBeCloseTo(0.18 * hours(START_S + 600), 12);
  });

  it('packs equal tasks on the type that is cheapest for all of them', () => {
    const four = of([simulatedJob('four', 0, [3600, 3600, 3600, 3600])]);
    expect(four?.oneEachUsd).toBeCloseTo(4 * 0.1 * hours(START_S + 3600), 12);
    expect(four?.packedUsd).toBeCloseTo(0.18 * hours(START_S + 3600), 12);
    expect(four?.packedSmallUsd).toBeCloseTo(2 * 0.1 * hours(START_S + 3600), 12);
    expect(four?.usd).toBe(four?.packedUsd);
  });

  it('is small instances where one long task would hold a large one', () => {
    const mixed = of([simulatedJob('mixed', 0, [36_000, 60, 60, 60])]);
    expect(mixed?.packedUsd).toBeCloseTo(0.18 * hours(START_S + 36_000), 12);
    expect(mixed?.oneEachUsd).toBeCloseTo(0.1 * hours(4 * START_S + 36_180), 12);
    // Two small ones: the long task shares one of them.
    expect(mixed?.packedSmallUsd).toBeCloseTo(0.1 * hours(START_S + 36_000 + START_S + 60), 12);
    expect(mixed?.usd).toBe(mixed?.packedSmallUsd);
  });

  it('pays started hours, and uses the rest of a paid one', () => {
    const two = [simulatedJob('first', 0, [600]), simulatedJob('second', 1800, [600])];
    expect(of(two, 'per-hour')).toMatchObject({ oneEachUsd: 0.2, packedUsd: 0.1 });
    // The second one comes when the hour of the first is over.
    const later = [simulatedJob('first', 0, [600]), simulatedJob('second', 3700, [600])];
    expect(of(later, 'per-hour')).toMatchObject({ oneEachUsd: 0.2, packedUsd: 0.2 });
  });

  it('pays a minute at least, set-up of each attempt, and tries that fail', () => {
    expect(onDemandMinimum()).toBeCloseTo(0.1 / 60, 12);
    expect(of([simulatedJob('one', 0, [600])], 'per-second', 100)?.usd).toBeCloseTo(0.1 * hours(START_S + 700), 12);
    const failing = simulatedJob('failing', 0, [600], { failures: [2] });
    expect(of([failing], 'per-second', 100)?.usd).toBeCloseTo(0.1 * hours(START_S + 3 * 700), 12);
  });

  const onDemandMinimum = () =>
    onDemandReference({
      needs: needsOf([simulatedJob('short', 0, [5])], { fromMs: epochMs(0), setupS: 0 }),
      pools: [SMALL],
      billing: 'per-second',
      startMs: 10_000,
    })?.usd;

  it('begins a stage when those before it are done', () => {
    const staged: WorkloadJob = {
      key: 'staged',
      submittedS: 0,
      truth: new Map([
        ['prepare', { runtimeS: Float64Array.of(600, 1200) }],
        ['work', { runtimeS: Float64Array.of(600) }],
      ]),
      spec: spec({
        stages: [
          stage({ name: 'prepare', tasks: 2, expectedRuntimeS: seconds(600) }),
          stage({ name: 'work', dependsOn: ['prepare'] }),
        ],
      }),
    };
    // Two on one instance until 1295 s; it is empty as the last task becomes ready, and goes.
    expect(of([staged])?.packedUsd).toBeCloseTo(0.1 * hours(START_S + 1200 + START_S + 600), 12);
    expect(of([staged])?.oneEachUsd).toBeCloseTo(0.1 * hours(3 * START_S + 2400), 12);
  });

  it('is unknown where no on-demand type holds a task', () => {
    expect(of([simulatedJob('huge', 0, [600], { stage: { resources: resources(64) } })])).toBeNull();
    const spotOnly = simulatedJob('spot', 0, [600], { stage: { constraints: { purchaseOptions: ['spot'] } } });
    expect(of([spotOnly])).toBeNull();
  });
});
