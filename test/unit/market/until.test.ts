import { describe, expect, it } from '@jest/globals';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { availableAt, priceAt } from '../../../lib/market/price-steps.ts';
import { knownUntil } from '../../../lib/market/until.ts';
import { smallMarket } from '../../support/generated-market.ts';

describe('a market as it was known at a time', () => {
  const { trace, startMs } = smallMarket(3);
  const HOUR = 3_600_000;

  it('has every price and change until then, and none after', () => {
    const known = knownUntil(trace, startMs);
    expect(known.endMs).toBe(startMs);
    for (const { id } of trace.pools) {
      const { atMs } = known.prices(id);
      expect(Math.max(...atMs)).toBeLessThanOrEqual(raw(startMs));
      for (let t = raw(trace.startMs); t <= raw(startMs); t += 5 * HOUR) {
        expect(priceAt(known.prices(id), epochMs(t))).toBe(priceAt(trace.prices(id), epochMs(t)));
        expect(availableAt(known.availability(id), t)).toBe(availableAt(trace.availability(id), t));
      }
      expect(Math.max(0, ...(known.availability(id)?.atMs ?? []).slice(1))).toBeLessThanOrEqual(raw(startMs));
    }
    const count = (of: typeof trace): number => of.pools.reduce((n, { id }) => n + of.prices(id).atMs.length, 0);
    expect(count(known)).toBeGreaterThan(1000);
    expect(count(known)).toBeLessThan(count(trace));
  });

  it('ends no later than it does', () => {
    const later = epochMs(raw(trace.endMs) + HOUR);
    expect(knownUntil(trace, later).endMs).toBe(trace.endMs);
  });
});
