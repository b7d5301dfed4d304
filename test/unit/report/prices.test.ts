import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { raw } from '../../../lib/kernel/units.ts';
import { defaultMarket } from '../../../lib/market/default-market.ts';
import { pricesOf, thinned } from '../../../lib/report/prices.ts';
import { outcome } from './outcomes.ts';

const trace = defaultMarket();
const startMs = raw(trace.startMs);
const DAY_MS = 86_400_000;
const spot = trace.pools.filter((p) => p.option === 'spot');
const used = (pool: string, billedUsd: number, launches = 1) => ({
  pool,
  option: 'spot' as const,
  launches,
  interruptions: 0,
  refused: 0,
  hours: 1,
  billedUsd,
  onDemandUsd: 1,
});

it('thinning keeps ends, extremes and order, and shortens', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 9, noNaN: true }), { minLength: 1, maxLength: 4000 }), (values) => {
      const steps = values.map((usd, i) => [i, usd] as const);
      const kept = thinned(steps);
      expect(kept.length).toBeLessThanOrEqual(804);
      expect([kept[0], kept.at(-1)]).toEqual([steps[0], steps.at(-1)]);
      const usd = kept.map(([, x]) => x);
      expect([Math.min(...usd), Math.max(...usd)]).toEqual([Math.min(...values), Math.max(...values)]);
      expect(kept.every(([at], i) => i === 0 || at > (kept[i - 1]?.[0] ?? -1))).toBe(true);
    }),
    { seed: 4, numRuns: 20 },
  );
});

it('prices are of the pools that were bought from, cut to each window, most spent first', () => {
  const [a, b, c] = spot.map((p) => p.id as string);
  if (a === undefined || b === undefined || c === undefined) throw new Error('the market has too few pools');
  const onDemand = { ...used(a.replace('/spot', '/on-demand'), 99), option: 'on-demand' as const };
  const at = (day: number) => ({ fromMs: startMs + day * DAY_MS, endMs: startMs + (day + 2) * DAY_MS });
  const prices = pricesOf(trace, [
    outcome({ ...at(1), pools: [onDemand, used(a, 1), used(b, 5), used(c, 0, 0)] }),
    outcome({ ...at(4), pools: [used(a, 1)] }),
  ]);
  expect(prices.map((p) => [p.pool, p.fromMs, p.toMs])).toEqual([
    [b, at(1).fromMs, at(1).endMs],
    [a, at(1).fromMs, at(1).endMs],
    [a, at(4).fromMs, at(4).endMs],
  ]);
  for (const p of prices) {
    expect(p.atMs[0]).toBe(p.fromMs);
    expect(p.atMs.every((t) => t >= p.fromMs && t < p.toMs)).toBe(true);
    expect(p.usdPerHour).toHaveLength(p.atMs.length);
  }
});
