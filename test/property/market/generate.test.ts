import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { builtInCatalogue, TODAY } from '../../../lib/market/catalogue.ts';
import {
  DEFAULT_SEED,
  defaultMarket,
  defaultMarketStartMs,
  takenSoon,
  turbulentStart,
} from '../../../lib/market/default-market.ts';
import { generateMarket, type GenerateSpec, type MarketSpec, type Regime } from '../../../lib/market/generate.ts';
import { marketsOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';

const DAY_MS = 86_400_000;
function market(type: string, zone: string, regime: Regime): MarketSpec {
  const entry = builtInCatalogue().entry(type, TODAY);
  if (entry === null) throw new Error(type);
  return { entry, zone, regime };
}
const spec = (over: Partial<GenerateSpec>): GenerateSpec => ({
  name: 'g',
  seed: 1,
  startMs: epochMs(Date.UTC(2026, 0, 5)),
  days: 3,
  temper: 'natural',
  markets: [market('m5.4xlarge', 'us-east-1a', 'spiky'), market('m5.4xlarge', 'us-east-1b', 'smooth')],
  ...over,
});
const plain = (trace: MarketTrace): unknown => marketsOf(trace);
const ascends = (xs: Float64Array): boolean => xs.every((x, i) => i === 0 || x > (xs[i - 1] ?? Infinity));

describe('generateMarket', () => {
  it('gives sound step functions, the same for the same seed', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.constantFrom('natural' as const, 'turbulent' as const), (seed, temper) => {
        const trace = generateMarket(spec({ seed, temper }));
        expect(plain(generateMarket(spec({ seed, temper })))).toEqual(plain(trace));
        for (const m of marketsOf(trace)) {
          const { atMs, usdPerHour } = m.prices;
          expect(atMs[0]).toBeGreaterThanOrEqual(raw(trace.startMs));
          expect(atMs.at(-1)).toBeLessThan(raw(trace.endMs));
          expect(ascends(atMs)).toBe(true);
          expect(usdPerHour.every((p) => p > 0 && p <= 10 * m.onDemandUsdPerHour + 1e-4)).toBe(true);
          if (m.availability === null) continue;
          expect(ascends(m.availability.atMs)).toBe(true);
          expect(m.availability.available.every((a, i) => i === 0 || a !== m.availability?.available[i - 1])).toBe(
            true,
          );
        }
      }),
      { seed: 31, numRuns: 60 },
    );
  });

  it('changes no pool when another is added', () => {
    const few = generateMarket(spec({}));
    const more = generateMarket(spec({ markets: [market('c5.large', 'us-east-1c', 'spiky'), ...spec({}).markets] }));
    for (const m of marketsOf(few)) {
      const id = poolKey(m.type.name, m.zone, 'spot');
      expect(more.prices(id)).toEqual(m.prices);
      expect(more.availability(id)).toEqual(m.availability);
    }
  });

  it('refuses impossible lengths', () => {
    for (const days of [0, -1, NaN, 1000]) expect(() => generateMarket(spec({ days }))).toThrow(EbbError);
  });

  /** Share of the time above on-demand, and upward passages, by a plain walk over the steps. */
  function walk(m: SpotMarket, endMs: number): { above: number; passages: number; spanMs: number } {
    let above = 0;
    let passages = 0;
    m.prices.atMs.forEach((t, i) => {
      const over = (m.prices.usdPerHour[i] ?? 0) > m.onDemandUsdPerHour;
      if (over) above += (m.prices.atMs[i + 1] ?? endMs) - t;
      if (over && i > 0 && (m.prices.usdPerHour[i - 1] ?? 0) <= m.onDemandUsdPerHour) passages++;
    });
    return { above, passages, spanMs: endMs - (m.prices.atMs[0] ?? endMs) };
  }

  const many = (regime: Regime): MarketTrace =>
    generateMarket(
      spec({
        days: 20,
        markets: Array.from({ length: 150 }, (_, i) => market('m5.16xlarge', `us-east-1-${i}`, regime)),
      }),
    );

  it('is spiky as the markets of 2015 and 2016 were', () => {
    const trace = many('spiky');
    const walks = marketsOf(trace).map((m) => walk(m, raw(trace.endMs)));
    const share = walks.reduce((sum, w) => sum + w.above / w.spanMs, 0) / walks.length;
    const perDay = walks.reduce((sum, w) => sum + w.passages, 0) / (walks.length * 20);
    const quiet = walks.filter((w) => w.passages === 0 && w.above === 0).length / walks.length;
    // Real, held-out part: 7.9 % of the time, 0.79 passages per day, 60 % of the markets never (docs/market.md).
    expect(share).toBeGreaterThan(0.02);
    expect(share).toBeLessThan(0.15);
    expect(perDay).toBeGreaterThan(0.3);
    expect(perDay).toBeLessThan(1.6);
    expect(quiet).toBeGreaterThan(0.4);
    expect(quiet).toBeLessThan(0.8);
  });

  it('is smooth as the market of 2021 was, with capacity that comes and goes', () => {
    const trace = many('smooth');
    const markets = marketsOf(trace);
    expect(markets.map((m) => walk(m, raw(trace.endMs)).above).filter((ms) => ms > 0)).toEqual([]);
    const losses = markets.reduce((sum, m) => sum + (m.availability?.available.filter((a) => a === 0).length ?? 0), 0);
    // Real: 5.9 to 7.2 per series and day.
    expect(losses / (markets.length * 20)).toBeGreaterThan(3);
    expect(losses / (markets.length * 20)).toBeLessThan(14);
  });
});

describe('default market', () => {
  const trace = defaultMarket();

  it('has 9 types in 3 zones for 14 days, in both regimes', () => {
    const markets = marketsOf(trace);
    expect(markets).toHaveLength(27);
    expect(new Set(markets.map((m) => m.zone)).size).toBe(3);
    expect(raw(trace.endMs) - raw(trace.startMs)).toBe(14 * DAY_MS);
    expect(markets.filter((m) => m.availability === null)).toHaveLength(14);
    const vcpus = markets.map((m) => raw(m.type.capacity.cpu) / 1000);
    expect([Math.min(...vcpus), Math.max(...vcpus)]).toEqual([2, 16]);
  });

  it('begins where turbulentStart says, with a week of history', () => {
    expect(raw(turbulentStart(trace))).toBe(raw(defaultMarketStartMs));
    expect(raw(defaultMarketStartMs) - raw(trace.startMs)).toBeGreaterThanOrEqual(7 * DAY_MS);
  });

  it('takes the cheapest pools soon after that start', () => {
    expect(takenSoon(trace, raw(defaultMarketStartMs)).slice(0, 3)).toEqual([true, true, true]);
  });

  it('differs from seed to seed', () => {
    expect(plain(defaultMarket(DEFAULT_SEED + 1))).not.toEqual(plain(trace));
  });
});
