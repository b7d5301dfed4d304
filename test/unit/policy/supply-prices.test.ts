import { describe, expect, it } from '@jest/globals';
import { supplyPrices, type SuppliedWork } from '../../../lib/policy/supply-prices.ts';

/** Machines of 10 vCPUs and 10 GiB. */
const capacities = Float64Array.of(10, 10, 0, 0, 10, 10, 0, 0);
const work = (amount: number, need: readonly number[], pools: readonly number[]): SuppliedWork => ({
  amount,
  need: [...need, 0, 0],
  pools,
});

describe('work on given machines', () => {
  it('goes where the work that may use no other pool leaves room', () => {
    const bound = work(80, [1, 1], [0]);
    const free = work(80, [1, 1], [0, 1]);
    const { loads, dearer } = supplyPrices([bound, free], { capacities, machines: [10, 10] });
    // Each pool is used to four fifths.
    expect(loads[0]).toBeCloseTo(0.8, 1);
    expect(loads[4]).toBeCloseTo(0.8, 1);
    expect(dearer(bound, 0)).toBe(1);
    expect(dearer(free, 0)).toBeGreaterThan(dearer(free, 1));
  });

  it('keeps to the resource that is not used up', () => {
    const memory = work(50, [0.1, 1.9], [0]);
    const either = work(40, [1, 0.1], [0, 1]);
    const { loads } = supplyPrices([memory, either], { capacities, machines: [10, 1] });
    // The second pool alone would be full of it; the first has all of its vCPUs free.
    expect(loads[4]).toBeLessThan(1);
    expect(loads[0]).toBeGreaterThan(0.2);
  });

  it('has nothing to say of work without a pool', () => {
    const { loads } = supplyPrices([work(5, [1, 1], [])], { capacities, machines: [1, 1] });
    expect([...loads]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });
});
