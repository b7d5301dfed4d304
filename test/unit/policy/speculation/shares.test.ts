import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sharesOf, slotsPerTask, type Demand } from '../../../../lib/policy/speculation/shares.ts';
import { runs } from '../../../support/properties.ts';

const tasks = (...slots: number[]): readonly Demand[] => slots.map((n) => ({ slots: n }));
const rounded = (shares: readonly number[]): readonly number[] => shares.map((s) => Math.round(s * 1e6) / 1e6);

describe('shares of slots', () => {
  it('are full virtual sizes, the smallest job first, where slots are short (Algorithm 1, step 1)', () => {
    // 2 / 1.6 = 1.25 slots per task: sizes 5, 10, 25.
    expect(rounded(sharesOf(tasks(20, 4, 8), { beta: 1.6, slots: 20, epsilon: 1 }))).toEqual([5, 5, 10]);
  });

  it('are in proportion to the tasks where slots abound (Algorithm 1, step 2)', () => {
    expect(rounded(sharesOf(tasks(1, 3), { beta: 1.6, slots: 100, epsilon: 1 }))).toEqual([25, 75]);
  });

  it('are an even share less epsilon at least (Algorithm 2)', () => {
    // 60 slots for three jobs: 18 of 20 for each, or all that it can use.
    expect(rounded(sharesOf(tasks(4, 40, 100), { beta: 2, slots: 60, epsilon: 0.1 }))).toEqual([4, 38, 18]);
    expect(rounded(sharesOf(tasks(4, 40, 100), { beta: 2, slots: 60, epsilon: 0 }))).toEqual([4, 36, 20]);
    expect(rounded(sharesOf(tasks(1, 9), { beta: 2, slots: 100, epsilon: 0.2 }))).toEqual([40, 60]);
  });

  it('favour jobs with more work to come (Algorithm 3)', () => {
    const demands = [
      { slots: 10, downstream: 40 },
      { slots: 10, downstream: 10 },
    ];
    expect(rounded(sharesOf(demands, { beta: 2, slots: 90, epsilon: 1 }))).toEqual([60, 30]);
    // By max(T, T') the second comes first where slots are short, with 1 / sqrt(alpha_min) of its size.
    expect(rounded(sharesOf(demands, { beta: 2, slots: 15, epsilon: 1 }))).toEqual([5, 10]);
  });

  it('take a tail of which nothing can be said for the nearest that can be', () => {
    expect([0.5, 1, 1.6, 2, 7].map(slotsPerTask)).toEqual([2, 2, 1.25, 1, 1]);
  });

  it('never exceed the slots, leave none over that can be used, and are fair', () => {
    const demand = fc.record({ slots: fc.nat(50), downstream: fc.nat(50) });
    const shared = fc.record({
      beta: fc.double({ min: 0.5, max: 3, noNaN: true }),
      slots: fc.integer({ min: 0, max: 400 }),
      epsilon: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(demand, { maxLength: 12 }), shared, (demands, of) => {
        const shares = sharesOf(demands, of);
        const sum = shares.reduce((a, b) => a + b, 0);
        const wanting = demands.filter((d) => d.slots > 0);
        expect(shares).toHaveLength(demands.length);
        const all = wanting.length === 0 ? 0 : of.slots;
        expect(sum).toBeLessThanOrEqual(all * (1 + 1e-9));
        expect(sum).toBeGreaterThanOrEqual(all * (1 - 1e-9));
        const even = (of.slots / wanting.length) * (1 - of.epsilon);
        demands.forEach(({ slots }, i) => {
          const least = Math.min(even, slots);
          expect(shares[i]).toBeGreaterThanOrEqual(slots > 0 ? least * (1 - 1e-9) : 0);
        });
      }),
      { numRuns: runs(500) },
    );
  });
});
