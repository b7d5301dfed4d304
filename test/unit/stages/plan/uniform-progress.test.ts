import { describe, expect, it } from '@jest/globals';
import { standing } from '../../../../lib/policy/even-progress.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { at } from '../../../support/handmade-plan.ts';

describe('uniform progress', () => {
  // Ten hours of window, six of work: the line rises 0.6 a second. Changeovers of 600 s.
  const line = (nowS: number, doneS: number) =>
    standing({
      submittedMs: at(0),
      nowMs: at(nowS),
      deadlineMs: at(36_000),
      workS: 21_600,
      doneS,
      leftS: 21_600 - doneS,
      changeoverS: Number(seconds(600)),
    });

  it('knows how far a task is ahead of its line now, and would be after two changeovers', () => {
    expect(line(10_000, 7000).aheadS).toBeCloseTo(1000);
    expect(line(10_000, 7000).aheadAfterTwoS).toBeCloseTo(280);
    expect(line(10_000, 5000).aheadS).toBeCloseTo(-1000);
  });

  it('has its safety net where the time left is the work left and two changeovers', () => {
    // 14,400 s of slack at first; all waited away but 1,200 s at 13,200 s.
    expect(line(13_200, 0).safetyS).toBeCloseTo(0);
    expect(line(13_300, 0).safetyS).toBeLessThan(0);
    expect(line(13_300, 200).safetyS).toBeGreaterThan(0);
  });

  it('asks for no more than the whole work', () => {
    expect(line(35_900, 21_600).aheadAfterTwoS).toBeCloseTo(0);
  });
});
