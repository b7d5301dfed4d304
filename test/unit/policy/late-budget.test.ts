import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { certain } from '../../../lib/domain/distribution.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { seconds, usd } from '../../../lib/kernel/units.ts';
import type { Beliefs } from '../../../lib/policy/learner.ts';
import { latePrice, lateUsd, spent } from '../../../lib/policy/late-budget.ts';
import type { Lateness } from '../../../lib/policy/lateness-learner.ts';
import * as build from '../../support/builders.ts';

/** Jobs that ended, true: late. */
const after = (ends: readonly boolean[]): Lateness => ({
  ofLast: (most) => {
    const last = ends.slice(-most);
    return { ended: last.length, late: last.filter(Boolean).length };
  },
});

/** Ten tasks of two hours: 20 hours of on-demand. */
const job = (over: Partial<Job['spec']> = {}): Job =>
  build.job({ id: jobId('j'), spec: build.spec({ stages: [build.stage({ name: 'main', tasks: 10 })], ...over }) });

function priceOf(lateBudget: number, lateness?: Lateness, of: Job = job()): number {
  const runtime = new Map([
    ['j/main', { runtime: certain(seconds(7200)), basis: 'history' as const, reason: 'given' }],
  ]);
  const { market } = { market: {} as never };
  const beliefs = { of: () => lateness ?? after([]) } as unknown as Beliefs;
  const config = schedulerConfig.parse({ lateBudget });
  return lateUsd(latePrice(of, { forecasts: { runtime, market }, config, beliefs }), 0.5);
}

describe('the price of a late job', () => {
  it('is a sixteenth of its on-demand cost over the budget', () => {
    // 20 hours at 0.5 USD: 10 USD. A risk of 16 % may save all of them.
    expect(priceOf(0.01)).toBeCloseTo(10 / 0.16, 6);
    expect(priceOf(0.1)).toBeCloseTo(10 / 1.6, 6);
  });

  it('has no limit without a budget, for work that must be met, and for a job that is gone', () => {
    expect(priceOf(0)).toBe(Infinity);
    expect(priceOf(0.01, undefined, job({ mustMeet: true }))).toBe(Infinity);
    expect(latePrice(undefined, {} as never).hours).toBe(Infinity);
  });

  it('is at least what the user says that the job is worth', () => {
    const worth = { value: { onTimeUsd: usd(5000), worthlessAfterS: null } };
    expect(priceOf(0.01, undefined, job(worth))).toBe(5000);
  });

  it('rises as the budget is used up, and then nothing is put at risk', () => {
    const prices = [0, 1, 2].map((late) => priceOf(0.01, after(new Array<boolean>(late).fill(true))));
    expect(prices[1]).toBeCloseTo(4 * (prices[0] ?? 0), 6);
    expect(prices[2]).toBe(Infinity);
  });
});

describe('the controller', () => {
  it('counts a first late job as half of the budget, until enough others were on time', () => {
    const onTime = (count: number): boolean[] => new Array<boolean>(count).fill(false);
    expect(spent(0.01, after([true]))).toBe(0.5);
    expect(spent(0.01, after([true, ...onTime(199)]))).toBe(0.5);
    expect(spent(0.01, after([true, true, ...onTime(198)]))).toBe(1);
    expect(spent(0.01, after([true, ...onTime(200)]))).toBe(0);
  });

  it('keeps the share of late jobs within the budget, however risky the jobs are', () => {
    // A job risks all that the price allows: it is late with p = 2/3 of 3 budgets, or not at all.
    for (const budget of [0.01, 0.05]) {
      const ends: boolean[] = [];
      let luck = 12345;
      const random = (): number => (luck = (luck * 1103515245 + 12345) % 2147483648) / 2147483648;
      for (let n = 0; n < 20_000; n++) {
        const isRisky = spent(budget, after(ends)) < 1;
        ends.push(isRisky && random() < 0.3);
      }
      const share = ends.filter(Boolean).length / ends.length;
      expect(share).toBeLessThanOrEqual(budget * 1.01);
      expect(share).toBeGreaterThan(budget / 2);
    }
  });
});
