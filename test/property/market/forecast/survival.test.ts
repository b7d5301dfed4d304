import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { HORIZONS_S, PriceSurvival } from '../../../../lib/market/forecast/survival.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = 1_700_000_000_000 - (1_700_000_000_000 % HOUR);

interface History {
  readonly atMs: Float64Array;
  readonly usdPerHour: Float64Array;
}

/** Changes at full minutes over a few days, in cents, so that ties and repeated prices happen. */
const histories = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 4 * 24 * 60 }), fc.integer({ min: 1, max: 12 })), {
    minLength: 1,
    maxLength: 120,
  })
  .map((list): History => {
    const byMinute = new Map(list.map(([m, cents]) => [m, cents / 100]));
    const sorted = [...byMinute].sort((a, b) => a[0] - b[0]);
    return {
      atMs: Float64Array.from(sorted, ([m]) => START + m * MINUTE),
      usdPerHour: Float64Array.from(sorted, ([, usd]) => usd),
    };
  });

/** Looks at every minute by itself and scans forward: shares nothing with the code but the definition. */
function naive(h: History, now: number, delta: number, windowMs: number): number[] {
  const first = Math.max(h.atMs[0] ?? Infinity, now - windowMs);
  const lostAfter: number[] = [];
  const priceAt = (t: number): number => {
    let price = NaN;
    for (let i = 0; i < h.atMs.length; i++) if ((h.atMs[i] ?? Infinity) <= t) price = h.usdPerHour[i] ?? NaN;
    return price;
  };
  const firstHour = Math.ceil(first / HOUR);
  const lastHour = Math.floor(now / HOUR) - 1;
  for (let m = firstHour * 60; m < (lastHour + 1) * 60; m++) {
    const t = (m + 0.5) * MINUTE;
    const bid = priceAt(t) + delta;
    let lost = Infinity;
    for (let i = h.atMs.length - 1; i >= 0; i--) {
      const at = h.atMs[i] ?? 0;
      if (at > t && at <= now && (h.usdPerHour[i] ?? 0) > bid) lost = at - t;
    }
    lostAfter.push(lost);
  }
  const points: number[] = [];
  for (const horizonS of HORIZONS_S) {
    const newest = Math.floor((now - horizonS * 1000) / HOUR) - 1;
    const hours = newest - firstHour + 1;
    if (hours < 6) break;
    const days = Math.max(1, Math.floor(hours / 24));
    const perDay = Math.min(hours, 24);
    const shares = Array.from({ length: days }, (_, d) => {
      const end = (newest + 1 - d * perDay - firstHour) * 60;
      const day = lostAfter.slice(end - perDay * 60, end);
      return day.filter((s) => s <= horizonS * 1000).length / day.length;
    }).sort((a, b) => a - b);
    const middle =
      days % 2 === 1 ? shares[(days - 1) / 2] : ((shares[days / 2 - 1] ?? 0) + (shares[days / 2] ?? 0)) / 2;
    points.push(Math.max(points.at(-1) ?? 0, middle ?? 0));
  }
  return points;
}

describe('survival of hypothetical bids', () => {
  it('equals a scan of every minute', () => {
    let nonTrivial = 0;
    fc.assert(
      fc.property(
        histories,
        fc.integer({ min: 6 * 60, max: 5 * 24 * 60 }),
        fc.constantFrom(0, 0.005, 0.02, 0.05),
        (h, minutes, delta) => {
          const now = START + minutes * MINUTE;
          if ((h.atMs[0] ?? Infinity) > now) return;
          // A delta between two cents, so that no bid equals a price by rounding alone.
          const bidDelta = delta + 0.001;
          const survival = new PriceSurvival(bidDelta, 3 * 24 * HOUR);
          survival.advance(h, now);
          const got = [...(survival.curve()?.p ?? [])];
          const want = naive(h, now, bidDelta, 3 * 24 * HOUR);
          expect(got.length).toBe(want.length);
          got.forEach((p, i) => expect(p).toBeCloseTo(want[i] ?? NaN, 5));
          if (want.some((p) => p > 0 && p < 1)) nonTrivial++;
        },
      ),
      { seed: 11, numRuns: 80 },
    );
    expect(nonTrivial).toBeGreaterThan(20);
  });

  it('is the same however many calls it takes to learn it and whatever was asked meanwhile, and never descends', () => {
    fc.assert(
      fc.property(histories, fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 30 }), (h, gaps) => {
        const bit = new PriceSurvival(0.011, 2 * 24 * HOUR);
        let now = Math.max(START, h.atMs[0] ?? START);
        for (const gap of gaps) {
          now += gap * MINUTE;
          bit.advance(h, now);
          bit.curve();
        }
        const whole = new PriceSurvival(0.011, 2 * 24 * HOUR);
        whole.advance(h, now);
        const p = [...(bit.curve()?.p ?? [])];
        const q = [...(whole.curve()?.p ?? [])];
        expect(p.length).toBe(q.length);
        p.forEach((x, i) => {
          expect(x).toBeCloseTo(q[i] ?? NaN, 5);
          if (i > 0) expect(x).toBeGreaterThanOrEqual(p[i - 1] ?? 1);
          expect(x).toBeLessThanOrEqual(1);
        });
      }),
      { seed: 12, numRuns: 200 },
    );
  });
});
