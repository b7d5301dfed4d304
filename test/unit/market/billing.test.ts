import { describe, expect, it } from '@jest/globals';
import { certain, distribution } from '../../../lib/domain/distribution.ts';
import { chargedAloneS, chargedS, furtherChargedS, paidForS } from '../../../lib/market/billing.ts';
import { seconds } from '../../../lib/kernel/units.ts';

const HOUR = { billing: 'per-hour' } as const;
const SECOND = { billing: 'per-second' } as const;

describe('charged time', () => {
  it('is whole hours, or seconds with a minute at least', () => {
    expect([1, 3600, 3601].map((s) => chargedS(s, HOUR))).toEqual([3600, 3600, 7200]);
    expect([1, 60, 61].map((s) => chargedS(s, SECOND))).toEqual([60, 60, 61]);
  });

  it('after paid time is whole hours, or the seconds themselves', () => {
    expect([0, 1, 3601].map((s) => furtherChargedS(s, HOUR))).toEqual([0, 3600, 7200]);
    expect([0, 1, 3601].map((s) => furtherChargedS(s, SECOND))).toEqual([0, 1, 3601]);
  });

  it('is paid until the end of the started hour, or of the first minute', () => {
    expect([0, 600, 3599, 3600].map((s) => paidForS(s, HOUR))).toEqual([3600, 3000, 1, 3600]);
    expect([0, 45, 60, 600].map((s) => paidForS(s, SECOND))).toEqual([60, 15, 0, 0]);
  });

  it('of a task alone counts the start-up in hours, and only the rest of the first minute in seconds', () => {
    const even = distribution([
      [10, 0.5],
      [3550, 0.5],
    ]);
    expect(chargedAloneS(even, { ...HOUR, startDelayMeanS: 95 })).toBe(0.5 * 3600 + 0.5 * 7200);
    expect(chargedAloneS(even, { ...SECOND, startDelayMeanS: 95 })).toBe(0.5 * 10 + 0.5 * 3550);
    // A quick start leaves twenty seconds of the minute to a task of ten.
    expect(chargedAloneS(even, { ...SECOND, startDelayMeanS: 40 })).toBe(0.5 * 20 + 0.5 * 3550);
    expect(chargedAloneS(certain(seconds(1)), { ...SECOND, startDelayMeanS: 0 })).toBe(60);
  });
});
