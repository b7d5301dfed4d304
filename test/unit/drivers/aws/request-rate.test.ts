import { expect, it } from '@jest/globals';
import { TokenBucket } from '../../../../lib/drivers/aws/fleet/request-rate.ts';

/** Time passes by sleeping alone. */
function waits(): {
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  pass(ms: number): void;
} {
  let nowMs = 1000;
  return {
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

it('lets a burst pass at once, and then two a second', async () => {
  const clock = waits();
  const bucket = new TokenBucket({ burst: 5, perS: 2 }, clock);
  const passed: number[] = [];
  for (let n = 0; n < 9; n++) {
    await bucket.take();
    passed.push(clock.nowMs() - 1000);
  }
  expect(passed).toEqual([0, 0, 0, 0, 0, 500, 1000, 1500, 2000]);
  clock.pass(60_000);
  for (let n = 0; n < 6; n++) await bucket.take();
  // Never more than the burst, however long nobody asked.
  expect(clock.nowMs() - 1000).toBe(62_500);
});

it('makes those that wait at once wait one after the other', async () => {
  const slept: number[] = [];
  const bucket = new TokenBucket({ burst: 1, perS: 2 }, { nowMs: () => 0, sleep: async (ms) => void slept.push(ms) });
  await Promise.all([1, 2, 3, 4].map(() => bucket.take()));
  expect(slept).toEqual([500, 1000, 1500]);
});
