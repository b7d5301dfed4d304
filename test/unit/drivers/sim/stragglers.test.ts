import { describe, expect, it } from '@jest/globals';
import { straggling, type Stragglers } from '../../../../lib/drivers/sim/stragglers.ts';
import type { RunConditions } from '../../../../lib/drivers/sim/truth.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';

const STAGE = Float64Array.of(10, 20, 30, 400);

function drawn(of: Stragglers, seed: number, { tasks, number }: { tasks: number; number: number }): number[] {
  const runtime = straggling(of, seed);
  return Array.from({ length: tasks }, (_, index) =>
    raw(
      runtime({
        task: { job: 'j', stage: 's', index, number },
        runtimeS: seconds(100),
        stageS: STAGE,
      } as unknown as RunConditions),
    ),
  );
}

describe('attempts that straggle', () => {
  it.each([1.3, 1.5, 1.9])('have a Pareto tail of index %d and the mean of the workload', (beta) => {
    const times = drawn({ beta }, 7, { tasks: 40_000, number: 1 }).toSorted((a, b) => a - b);
    const least = (100 * (beta - 1)) / beta;
    expect(times[0]).toBeGreaterThanOrEqual(least);
    // Quantiles, as the mean of a sample with so heavy a tail says little.
    for (const q of [0.1, 0.5, 0.9, 0.99])
      expect((times[Math.floor(q * times.length)] ?? 0) / (least * (1 - q) ** (-1 / beta))).toBeCloseTo(1, 0.8);
  });

  it('are drawn for each attempt, the same ones for the same seed', () => {
    const of = { tasks: 50, number: 1 };
    const first = drawn({ beta: 1.5 }, 1, of);
    expect(drawn({ beta: 1.5 }, 1, of)).toEqual(first);
    expect(new Set([...first, ...drawn({ beta: 1.5 }, 1, { ...of, number: 2 })]).size).toBe(100);
    expect(drawn({ beta: 1.5 }, 2, of)).not.toEqual(first);
  });

  it('take the measured time first, then the time of any task of the stage', () => {
    expect(new Set(drawn('siblings', 1, { tasks: 100, number: 1 }))).toEqual(new Set([100]));
    const later = drawn('siblings', 1, { tasks: 4000, number: 2 });
    for (const s of STAGE) expect(later.filter((t) => t === s).length / 1000).toBeCloseTo(1, 0.5);
  });
});
