import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { epochMs, raw, usdPerHour } from '../../../lib/kernel/units.ts';
import { poolKey, type Bid } from '../../../lib/domain/pool.ts';
import { interruptionAfter, launchOutcome, rebalanceAfter } from '../../../lib/market/replay.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { tinyTrace } from '../../unit/market/traces.ts';

const SPOT = poolKey('m5.large', 'us-east-1a', 'spot');
const ON_DEMAND = poolKey('m5.large', 'us-east-1a', 'on-demand');
const END = 400;

/** Times are small whole numbers of milliseconds, so that every instant can be tried. */
const world = fc.record({
  prices: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: END }), fc.integer({ min: 1, max: 6 })), {
    maxLength: 8,
    selector: ([t]) => t,
  }),
  availability: fc.option(
    fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: END }), fc.constantFrom(0 as const, 1 as const)), {
      maxLength: 6,
      selector: ([t]) => t,
    }),
  ),
  at: fc.integer({ min: 0, max: END + 20 }),
  bid: fc.option(fc.integer({ min: 1, max: 6 })),
});
type World = typeof world extends fc.Arbitrary<infer W> ? W : never;

const byTime = (a: readonly [number, number], b: readonly [number, number]): number => a[0] - b[0];
const trace = (w: World) =>
  tinyTrace({
    prices: [...w.prices].sort(byTime),
    ...(w.availability === null ? {} : { availability: [...w.availability].sort(byTime) }),
    endMs: END,
  });
const bidOf = (w: World): Bid => (w.bid === null ? 'uncapped' : usdPerHour(w.bid));
const cap = (w: World): number => w.bid ?? Infinity;

/** The truth at one instant, found by looking at every step. */
function price(w: World, t: number): number | null {
  const past = w.prices.filter(([at]) => at <= t).sort(byTime);
  return past.at(-1)?.[1] ?? null;
}
function up(w: World, t: number): boolean {
  if (w.availability === null || w.availability.length === 0) return true;
  const sorted = [...w.availability].sort(byTime);
  return (sorted.filter(([at]) => at <= t).at(-1) ?? sorted[0])?.[1] === 1;
}

const check = (seed: number, property: (w: World) => void): void =>
  fc.assert(fc.property(world, property), { seed, numRuns: 1500 });

describe('launchOutcome', () => {
  it('says what a look at the instant says', () => {
    const seen = new Set<string>();
    check(21, (w) => {
      const p = w.at > END ? null : price(w, w.at);
      const expected =
        p === null ? 'no-price' : p > cap(w) ? 'bid-below-price' : up(w, w.at) ? 'ok' : 'insufficient-capacity';
      seen.add(expected);
      expect(launchOutcome(trace(w), SPOT, epochMs(w.at), bidOf(w))).toBe(expected);
    });
    expect([...seen].sort()).toEqual(['bid-below-price', 'insufficient-capacity', 'no-price', 'ok']);
  });

  it('always launches on demand', () => {
    check(22, (w) => expect(launchOutcome(trace(w), ON_DEMAND, epochMs(w.at), 'uncapped')).toBe('ok'));
  });
});

describe('interruptionAfter', () => {
  it('is the first instant at which the price is above the bid or capacity is missing', () => {
    const seen = new Set<string>();
    check(23, (w) => {
      let expected: { warnMs: number; goneMs: number; cause: string } | null = null;
      for (let t = w.at; t <= END && expected === null; t++) {
        if ((price(w, t) ?? 0) > cap(w)) expected = { warnMs: t, goneMs: t + 120_000, cause: 'price' };
        else if (!up(w, t)) expected = { warnMs: t, goneMs: t + 120_000, cause: 'capacity' };
      }
      seen.add(expected?.cause ?? 'none');
      expect(interruptionAfter(trace(w), SPOT, epochMs(w.at), bidOf(w))).toEqual(expected);
    });
    expect([...seen].sort()).toEqual(['capacity', 'none', 'price']);
  });

  it('never comes on demand', () => {
    check(24, (w) => expect(interruptionAfter(trace(w), ON_DEMAND, epochMs(w.at), 'uncapped')).toBeNull());
  });
});

describe('rebalanceAfter', () => {
  it('is the first climb past nine tenths of the bid, before any interruption', () => {
    let hints = 0;
    check(25, (w) => {
      const near = (t: number): boolean => w.bid !== null && (price(w, t) ?? 0) > 0.9 * w.bid;
      let expected: number | null = null;
      for (let t = w.at; t <= END; t++) {
        if ((price(w, t) ?? 0) > cap(w) || !up(w, t)) break;
        if (near(t)) {
          if (t > w.at) expected = t;
          break;
        }
      }
      if (expected !== null) hints++;
      expect(rebalanceAfter(trace(w), SPOT, epochMs(w.at), bidOf(w))).toBe(expected);
    });
    expect(hints).toBeGreaterThan(50);
  });
});

describe('replayMarket', () => {
  /** The same market, with everything after `t` replaced by something else. */
  const otherFuture = (w: World, t: number): World => ({
    ...w,
    prices: [...w.prices.filter(([at]) => at <= t), ...(t < END ? [[t + 1, 99] as [number, number]] : [])],
  });

  it('does not depend on the future', () => {
    check(26, (w) => {
      const [a, b] = [replayMarket(trace(w)), replayMarket(trace(otherFuture(w, w.at)))];
      const at = epochMs(w.at);
      expect(a.quote(SPOT, at)).toEqual(b.quote(SPOT, at));
      expect(a.history(SPOT, epochMs(0), epochMs(w.at + 1))).toEqual(b.history(SPOT, epochMs(0), epochMs(w.at + 1)));
    });
  });

  it('answers for now when it is asked for later', () => {
    check(27, (w) => {
      const now = epochMs(w.at);
      const market = replayMarket(trace(w), () => now);
      expect(market.quote(SPOT, epochMs(w.at + 100))).toEqual(market.quote(SPOT, now));
      const history = market.history(SPOT, epochMs(0), epochMs(END * 2));
      expect([...history.atMs].filter((t) => t > w.at)).toEqual([]);
      expect(history.atMs.length).toBe(w.prices.filter(([t]) => t <= w.at).length);
    });
  });

  it('lists the price in force first, then the changes within [from, to)', () => {
    check(28, (w) => {
      const from = Math.floor(w.at / 2);
      const { atMs, usdPerHour: usd } = replayMarket(trace(w)).history(SPOT, epochMs(from), epochMs(w.at));
      const before = w.prices
        .filter(([t]) => t <= from && t < w.at)
        .sort(byTime)
        .at(-1);
      const within = w.prices.filter(([t]) => t > from && t < w.at).sort(byTime);
      expect([...atMs].map((t, i) => [t, usd[i]])).toEqual(before === undefined ? within : [before, ...within]);
    });
  });

  it('quotes on-demand pools at their list price, whatever the time', () => {
    const market = replayMarket(tinyTrace({ prices: [], endMs: 10 }));
    expect(raw(market.quote(ON_DEMAND, epochMs(1e12)) ?? usdPerHour(0))).toBe(0.096);
    expect(market.quote(SPOT, epochMs(5))).toBeNull();
  });
});
