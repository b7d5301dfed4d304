import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { orderOf, placeOf, randomOrder, taskAt } from '../../../lib/domain/task-order.ts';
import { jobId } from '../../../lib/kernel/ids.ts';

const stageOf = (tasks: number) => ({ name: 'main', tasks });
const all = (n: number) => Array.from({ length: n }, (_, i) => i);

it('a random order has each task once, and tells the place of each', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 700 }), fc.nat(), (tasks, of) => {
      const order = randomOrder(jobId(`j-${of}`), stageOf(tasks));
      const indices = all(tasks).map((nth) => taskAt(order, nth));
      expect(indices.toSorted((a, b) => a - b)).toEqual(all(tasks));
      expect(indices.map((index) => placeOf(order, index))).toEqual(all(tasks));
    }),
  );
});

it('so do orders of very many tasks', () => {
  const tasks = 10_000_000;
  const order = randomOrder(jobId('j-wide'), stageOf(tasks));
  const indices = all(2000).map((nth) => taskAt(order, nth * 4999));
  expect(new Set(indices).size).toBe(2000);
  expect(indices.every((index) => index >= 0 && index < tasks)).toBe(true);
  expect(indices.map((index) => placeOf(order, index))).toEqual(all(2000).map((nth) => nth * 4999));
});

it.each([2, 3, 5, 16, 60])('of %i tasks each is as often the first and the second one', (tasks) => {
  const JOBS = 400 * tasks;
  for (const nth of [0, 1]) {
    const counts = all(tasks).map(() => 0);
    for (let job = 0; job < JOBS; job++) {
      const index = taskAt(randomOrder(jobId(`j-${job}`), stageOf(tasks)), nth);
      counts[index] = (counts[index] ?? 0) + 1;
    }
    const chiSquare = counts.reduce((sum, n) => sum + (n - 400) ** 2 / 400, 0);
    // Its mean is tasks - 1, with a deviation of the root of twice that: five deviations above it.
    expect(chiSquare).toBeLessThan(tasks - 1 + 5 * Math.sqrt(2 * tasks));
  }
});

it('without pilots the order is that of the indices', () => {
  const counts = { nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  expect(orderOf(jobId('j-1'), { ...stageOf(5), ...counts })).toBeNull();
  expect(all(5).map((nth) => taskAt(null, nth))).toEqual(all(5));
});
