import { expect, it } from '@jest/globals';
import middy from '@middy/core';
import { EXECUTION_S, inTime, isLate } from '../../../../lib/drivers/aws/cycle/late.ts';
import { factsOf } from '../../../../lib/infra/functions.ts';
import { CYCLE_STEPS } from '../../../../lib/infra/cycle.ts';

const BEGAN = '2026-01-05T12:00:00.000Z';
/** The call-back of older functions. */
const UNUSED = (() => undefined) as never;
const at = (s: number): number => Date.parse(BEGAN) + s * 1000;

it('begins no step that could last until the execution is cut off, and each in the first half of its time', () => {
  for (const step of CYCLE_STEPS) {
    const { timeoutS } = factsOf(step);
    const latestS = Array.from({ length: EXECUTION_S }, (_, s) => s).findLast(
      (s) => !isLate(BEGAN, at(s), timeoutS * 1000),
    );
    // Its own time-out, the wait for its answer, and another function that frees the place.
    expect(latestS! + timeoutS + 15 + 15).toBeLessThan(EXECUTION_S);
    expect(latestS).toBeGreaterThan(EXECUTION_S / 2);
  }
  expect(isLate(undefined, at(1000), 60_000)).toBe(false);
});

it('fails such a step under a name of its own, and lets others pass', async () => {
  const step = (s: number) =>
    middy<{ began?: string }, string>()
      .use(inTime(() => at(s)))
      .handler(async () => 'done');
  const context = { getRemainingTimeInMillis: () => 60_000 } as never;
  await expect(step(100)({ began: BEGAN }, context, UNUSED)).resolves.toBe('done');
  await expect(step(200)({ began: BEGAN }, context, UNUSED)).rejects.toMatchObject({ code: 'late' });
  await expect(step(200)({}, context, UNUSED)).resolves.toBe('done');
});
