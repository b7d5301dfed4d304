import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { priceDrivers } from '../../../../lib/market/forecast/drivers.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const NOW = 1_700_000_000_000;

/** Minute by minute, from now backwards: what the prices say without any cleverness. */
function byMinutes(at: readonly number[], usd: readonly number[], bid: number) {
  const priceAt = (t: number): number | undefined => usd[at.findLastIndex((a) => a <= t)];
  const begin = Math.max(NOW - 7 * DAY, at[0] ?? NOW);
  let last: number | null = null;
  let [high, low] = [-Infinity, Infinity];
  for (let t = NOW; t >= begin; t -= MINUTE) {
    const price = priceAt(t);
    if (price === undefined) break;
    if (last === null && price > bid) last = t;
    if (t > NOW - DAY) [high, low] = [Math.max(high, price), Math.min(low, price)];
  }
  return { last, range: high - low };
}

describe('what a bid’s risk rests on', () => {
  it('is what a look at every minute finds', () => {
    const steps = fc.uniqueArray(
      fc.record({ ago: fc.integer({ min: 1, max: 9 * 24 * 12 }), usd: fc.integer({ min: 1, max: 9 }) }),
      { minLength: 1, maxLength: 12, selector: (s) => s.ago },
    );
    let crossed = 0;
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 9 }), (drawn, bid) => {
        const sorted = drawn.toSorted((a, b) => b.ago - a.ago);
        const at = sorted.map((s) => NOW - s.ago * 5 * MINUTE);
        const usd = sorted.map((s) => s.usd);
        const found = priceDrivers({ atMs: Float64Array.from(at), usdPerHour: Float64Array.from(usd) }, bid, NOW);
        const expected = byMinutes(at, usd, bid);
        expect(found?.aboveUsd).toBe(bid - (usd.at(-1) ?? NaN));
        expect(found?.range24hUsd).toBe(expected.range);
        // The price was above the bid until the change after that minute, or until now.
        const ended = expected.last === null ? null : (at.find((a) => a > (expected.last ?? 0)) ?? NOW);
        expect(found?.lastAboveS ?? null).toBe(ended === null ? null : (NOW - ended) / 1000);
        if (ended !== null && ended < NOW) crossed++;
      }),
      { seed: 6, numRuns: 200 },
    );
    expect(crossed).toBeGreaterThan(20);
  });

  it('is nothing where there is no price', () => {
    expect(priceDrivers({ atMs: new Float64Array(), usdPerHour: new Float64Array() }, 1, NOW)).toBe(null);
  });
});
