import { describe, expect, it } from '@jest/globals';
import { movingAverage, reactive, linearRegressionPolicy } from '../../../../lib/stages/services/scaling.ts';

const load = (...rps: readonly number[]) => ({ periodS: 60, rps });

describe('the load to be ready for', () => {
  it('follows a rise at once, and a fall after three minutes (reactive)', () => {
    expect(reactive(load(10, 10, 50))).toBe(50);
    expect(reactive(load(50, 10, 10))).toBe(50);
    expect(reactive(load(50, 10, 10, 10))).toBe(10);
  });

  it('is the mean of the last ten minutes (moving average)', () => {
    expect(movingAverage(load(1000, ...new Array<number>(8).fill(10), 20, 30))).toBe(13);
    expect(movingAverage(load(10, 20))).toBe(15);
  });

  it('is on the line through the last ten minutes, never below 0 (linear regression)', () => {
    expect(linearRegressionPolicy(load(10, 20, 30))).toBeCloseTo(40, 9);
    expect(linearRegressionPolicy(load(30, 15, 0))).toBe(0);
    expect(linearRegressionPolicy(load(7))).toBe(7);
  });

  it('leaves out what was not measured, and is unknown without any measurement', () => {
    expect(reactive(load(20, NaN, 10))).toBe(20);
    expect(movingAverage(load(20, NaN, 10))).toBe(15);
    // The time between measurements counts: 20 at 0, 10 at 2, so 5 at 3.
    expect(linearRegressionPolicy(load(20, NaN, 10))).toBeCloseTo(5, 9);
    for (const policy of [reactive, movingAverage, linearRegressionPolicy]) {
      expect(policy(load())).toBeNull();
      expect(policy(load(NaN, NaN))).toBeNull();
    }
  });
});
