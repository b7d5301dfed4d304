import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { seconds } from '../../../../lib/kernel/units.ts';
import { distribution, quantileS } from '../../../../lib/domain/distribution.ts';
import { withTime, type RunningTimes } from '../../../../lib/domain/running-times.ts';
import { fusedRuntime } from '../../../../lib/stages/estimate/fused.ts';
import { utilityEqual } from '../../../../lib/stages/estimate/points.ts';
import { runs } from '../../../support/properties.ts';

const timesOf = (...s: readonly number[]): RunningTimes =>
  s.reduce<RunningTimes | undefined>((sum, x) => withTime(sum, seconds(x)), undefined) as RunningTimes;
const median = (history: Parameters<typeof fusedRuntime>[0], ended: RunningTimes, tasks: number): number =>
  quantileS(fusedRuntime(history, ended, tasks), 0.5);

describe('history and own tasks, fused', () => {
  const twoKinds = distribution([
    [100, 1],
    [1000, 1],
  ]);

  it('tells which of two kinds of earlier jobs this one is', () => {
    expect(median(twoKinds, timesOf(110), 50)).toBeGreaterThan(95);
    expect(median(twoKinds, timesOf(110), 50)).toBeLessThan(115);
    expect(median(twoKinds, timesOf(950), 50)).toBeGreaterThan(900);
  });

  it('believes the tasks where no earlier job was like it', () => {
    expect(median(twoKinds, timesOf(9, 10, 11), 50) / 10).toBeCloseTo(1, 1);
    expect(median(twoKinds, timesOf(99_000, 100_000), 50) / 100_000).toBeCloseTo(1, 1);
  });

  it('is what the tasks took once all have ended', () => {
    expect(median(twoKinds, timesOf(200, 400), 2) / 300).toBeCloseTo(1, 1);
  });

  it('has positive times and finite weights whatever there is: tasks of 0 s beside tasks of a month', () => {
    const time = fc.double({ min: 0, max: 2.6e6, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(time, fc.double({ min: 1e-6, max: 1, noNaN: true })), { minLength: 1, maxLength: 30 }),
        fc.array(time, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 100_000 }),
        (history, ended, tasks) => {
          const { atS, weight } = fusedRuntime(distribution(history), timesOf(...ended), tasks);
          expect([...atS].every((s) => s > 0 && Number.isFinite(s))).toBe(true);
          expect([...weight].every((w) => w >= 0 && w <= 1 + 1e-9)).toBe(true);
          expect([...weight].reduce((a, b) => a + b, 0)).toBeCloseTo(1, 6);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

describe('3Sigma’s number', () => {
  it('is that of the mean utility of 1 / runtime^2, which favours short times', () => {
    const half = distribution([
      [10, 1],
      [1000, 1],
    ]);
    expect(utilityEqual(half) as unknown as number).toBeCloseTo(1 / Math.sqrt((1 / 100 + 1 / 1e6) / 2), 6);
    expect(utilityEqual(distribution([[50, 1]])) as unknown as number).toBeCloseTo(50, 9);
  });
});
