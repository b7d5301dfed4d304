import { describe, expect, it } from '@jest/globals';
import {
  RequestQueue,
  TRIBUTARY_REQUESTS,
  type Served,
} from '../../../../../lib/drivers/sim/services/request-queue.ts';
import { randomStream } from '../../../../../lib/kernel/random.ts';
import { requestByRequest } from '../../../../support/request-model.ts';

const REPLICAS = [2, 4, 8];
const VCPUS = 14;

type Load = readonly (readonly [seconds: number, rps: number])[];

function inSteps(load: Load, seed: number): Served {
  const queue = new RequestQueue(TRIBUTARY_REQUESTS, randomStream(seed, 'steps'));
  const total = { arrived: 0, slow: 0, rejected: 0 };
  for (const [seconds, rps] of load) {
    const { arrived, slow, rejected } = queue.serve(seconds, rps, VCPUS);
    total.arrived += arrived;
    total.slow += slow;
    total.rejected += rejected;
  }
  return total;
}

const shares = ({ arrived, slow, rejected }: Served) => ({ slow: slow / arrived, rejected: rejected / arrived });

describe('requests in steps', () => {
  const loads: readonly (readonly [name: string, load: Load])[] = [
    ['half of what the service can do', [[600, 70]]],
    ['nearly all of it', [[600, 133]]],
    ['a fifth too much', [[600, 168]]],
    ['three times too much', [[120, 420]]],
    [
      'a burst',
      [
        [300, 100],
        [30, 300],
        [300, 100],
      ],
    ],
    ['waves', new Array<readonly [number, number]>(20).fill([30, 60]).flatMap((low) => [low, [30, 190] as const])],
  ];

  it.each(loads)('are slow and rejected as often as one by one: %s', (_, load) => {
    for (const seed of [1, 2, 3]) {
      const steps = shares(inSteps(load, seed));
      const exact = shares(
        requestByRequest(TRIBUTARY_REQUESTS, randomStream(seed, 'exact'), { load, replicas: REPLICAS }),
      );
      expect(Math.abs(steps.slow - exact.slow)).toBeLessThan(0.02);
      expect(Math.abs(steps.rejected - exact.rejected)).toBeLessThan(0.02);
    }
  });

  it('without a vCPU are all rejected, and none come at rate 0', () => {
    const queue = new RequestQueue(TRIBUTARY_REQUESTS, randomStream(1, 'x'));
    const { arrived, slow, rejected } = queue.serve(60, 10, 0);
    expect(arrived).toBeGreaterThan(0);
    expect([slow, rejected]).toEqual([arrived, arrived]);
    expect(queue.serve(60, 0, 1)).toEqual({ arrived: 0, slow: 0, rejected: 0 });
  });

  it('that wait on lost vCPUs are lost', () => {
    const queue = new RequestQueue(TRIBUTARY_REQUESTS, randomStream(1, 'x'));
    queue.serve(60, 50, 4);
    const before = queue.waiting;
    expect(before).toBeGreaterThan(30);
    const lost = queue.lose(0.5);
    expect(lost).toBe(Math.round(before / 2));
    expect(queue.waiting).toBe(before - lost);
  });
});
