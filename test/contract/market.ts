import { beforeEach, describe, expect, it } from '@jest/globals';
import { epochMs, raw, type EpochMs } from '../../lib/kernel/units.ts';
import { poolId, type PoolId } from '../../lib/kernel/ids.ts';
import { poolKey } from '../../lib/domain/pool.ts';
import { builtInCatalogue } from '../../lib/market/catalogue.ts';
import { traceOf, type SpotMarket } from '../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Market, PriceSteps } from '../../lib/ports/market.ts';

/**
 * What every Market promises, whatever it knows its prices from. A driver makes one over the same prices and lets time
 * pass.
 */

export interface MarketDriver {
  /** As it is known now: asked for anew after `goTo`. */
  readonly market: Market;
  /** It is `atMs`, and what was published by then is known. */
  goTo(atMs: EpochMs): Promise<void>;
  /** The pool is not to be bought from any more. Absent: every pool may be bought from. */
  close?(pool: PoolId): Promise<void>;
}

export interface MarketDriverMaker {
  make(trace: MarketTrace): Promise<MarketDriver>;
  /** Until when prices are said to be complete at `nowMs`; null: it is never said. */
  readonly completeMs: (nowMs: number) => number | null;
  /** Whether pools are listed before they have had a price: EC2 shows no other sign that it sells a type in a zone. */
  readonly listsUnpriced: boolean;
  /** Whether prices end, as a recorded market does. EC2's newest price holds until another one is. */
  readonly ends: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Noon: some hours before lie in the day before, some after in the next one. */
const NOON = Date.UTC(2026, 0, 5, 12);
const atHour = (hours: number): EpochMs => epochMs(NOON + hours * HOUR_MS);
const START = atHour(-20);
const END = atHour(30);
const ENTRY = builtInCatalogue().entry('c5.large', START)!;
const steps = (...changes: readonly (readonly [hours: number, usd: number])[]): SpotMarket['prices'] => ({
  atMs: Float64Array.from(changes, ([hours]) => raw(atHour(hours))),
  usdPerHour: Float64Array.from(changes, ([, usd]) => usd),
});
const market = (zone: string, prices: SpotMarket['prices']): SpotMarket => ({
  type: ENTRY.type,
  zone,
  onDemandUsdPerHour: raw(ENTRY.onDemandUsdPerHour),
  prices,
  availability: null,
});

/** Where so many instances are reserved, at no cost. */
const RESERVED_INSTANCES = 3;
const RESERVED = poolKey('c5.large', 'moving', 'reserved');
/** `calm` never changes; `moving` does, at midnight and on both sides of it; `late` has no price before two o'clock. */
export const MARKETS = ['calm', 'late', 'moving'] as const;
export const ON_DEMAND_USD = raw(ENTRY.onDemandUsdPerHour);
const trace = traceOf({ name: 'contract', startMs: START, endMs: END }, [
  market('calm', steps([-20, 0.03])),
  {
    ...market('moving', steps([-20, 0.02], [-14, 0.04], [-12, 0.05], [-11.5, 0.02], [0, 0.06], [3, 0.01], [13, 0.07])),
    reserved: { instances: RESERVED_INSTANCES, usdPerHour: 0 },
  },
  market('late', steps([2, 0.03])),
]);

const spot = (zone: string): PoolId => poolKey('c5.large', zone, 'spot');
const onDemand = (zone: string): PoolId => poolKey('c5.large', zone, 'on-demand');
const [CALM, MOVING, LATE] = [spot('calm'), spot('moving'), spot('late')];
const UNKNOWN = poolId('c5.large/nowhere/spot');

/** The truth at an instant, by looking at every change. */
function truthAt(pool: PoolId, atMs: number): number | null {
  const { atMs: changes, usdPerHour } = trace.prices(pool);
  const past = [...changes].map((at, i) => [at, usdPerHour[i] ?? 0] as const).filter(([at]) => at <= atMs);
  return past.at(-1)?.[1] ?? null;
}

const pairs = ({ atMs, usdPerHour }: PriceSteps): (readonly [number, number])[] =>
  [...atMs].map((at, i) => [at, usdPerHour[i] ?? NaN] as const);

/** [from, to), with the price in force at `from` before all changes after it, of what is known at `nowMs`. */
function truthWithin(pool: PoolId, [from, to]: readonly [number, number], nowMs: number): number[] {
  const all = pairs(trace.prices(pool)).filter(([at]) => at < to && at <= nowMs);
  const within = all.filter(([at]) => at > from);
  return [...all.filter(([at]) => at <= from).slice(-1), ...within].map(([, usd]) => usd);
}

/** Runs the contract against the markets that `maker` makes. */
export function marketContract(name: string, maker: MarketDriverMaker): void {
  describe(`Market contract: ${name}`, () => {
    let driver: MarketDriver;
    const quote = (pool: PoolId, at: EpochMs): number | null => {
      const usd = driver.market.quote(pool, at);
      return usd === null ? null : raw(usd);
    };
    const history = (pool: PoolId, from: EpochMs, to: EpochMs): PriceSteps => driver.market.history(pool, from, to);

    beforeEach(async () => {
      driver = await maker.make(trace);
      // Asked for more than once, as time passes, also when nothing has changed.
      for (const hours of [-19, -12.2, -11.9, -11.7, -3, 0]) await driver.goTo(atHour(hours));
    });

    it('lists a spot and an on-demand pool for each type and zone, and what is reserved, in order of their ids', async () => {
      const ids = (): readonly string[] => driver.market.pools().map((p) => p.id);
      const of = (zones: readonly string[]): string[] =>
        [RESERVED, ...zones.flatMap((z) => [spot(z), onDemand(z)])].sort();
      expect(ids()).toEqual(of(maker.listsUnpriced ? MARKETS : ['calm', 'moving']));
      await driver.goTo(atHour(2));
      expect(ids()).toEqual(of(MARKETS));
      for (const pool of driver.market.pools()) {
        expect(raw(pool.onDemandUsdPerHour)).toBe(ON_DEMAND_USD);
        expect([pool.type.name, pool.id]).toEqual(['c5.large', poolKey('c5.large', pool.zone, pool.option)]);
      }
    });

    it('quotes the price in force at every instant until now, whenever it was fetched', async () => {
      const seen = new Set<number | null>();
      for (const now of [0, 3.5, 14]) {
        await driver.goTo(atHour(now));
        for (let at = NOON - 21 * HOUR_MS; at <= NOON + now * HOUR_MS; at += 15 * MINUTE_MS) {
          for (const pool of [CALM, MOVING, LATE]) {
            expect([pool, at, quote(pool, epochMs(at))]).toEqual([pool, at, truthAt(pool, at)]);
            seen.add(quote(pool, epochMs(at)));
          }
        }
      }
      expect(seen).toEqual(new Set([null, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]));
    });

    it('quotes a price from its very instant on', () => {
      const change = atHour(-14);
      expect(quote(MOVING, epochMs(raw(change) - 1))).toBe(0.02);
      expect(quote(MOVING, change)).toBe(0.04);
      expect(quote(MOVING, START)).toBe(0.02);
      expect(quote(MOVING, epochMs(raw(START) - 1))).toBeNull();
    });

    it('quotes the list price of on-demand pools at any time, and nothing of pools that it does not know', () => {
      for (const at of [atHour(-40), START, atHour(0), atHour(100)]) {
        expect(quote(onDemand('calm'), at)).toBe(ON_DEMAND_USD);
        expect(quote(UNKNOWN, at)).toBeNull();
      }
      expect(pairs(history(onDemand('moving'), atHour(-1), atHour(0))).map(([, usd]) => usd)).toEqual([ON_DEMAND_USD]);
      expect(pairs(history(UNKNOWN, START, atHour(0)))).toEqual([]);
    });

    it('gives the changes of a window, the price in force at its beginning first', () => {
      let changes = 0;
      const instants = [-21, -20, -19.9, -14, -13, -12, -11.75, -11.5, -3, 0].map((h) => raw(atHour(h)));
      for (const from of instants) {
        for (const to of instants) {
          if (to < from) continue;
          for (const pool of [CALM, MOVING, LATE]) {
            const found = pairs(history(pool, epochMs(from), epochMs(to)));
            // Nothing began at the end of a window; one that is empty may name what is in force or not where that began
            // right then.
            const isEdge = from === to && pairs(trace.prices(pool)).some(([at]) => at === from);
            const expected = isEdge ? [] : truthWithin(pool, [from, to], NOON);
            expect([pool, from, to, found.map(([, usd]) => usd)]).toEqual([pool, from, to, expected]);
            changes += found.length;
          }
        }
      }
      expect(changes).toBeGreaterThan(100);
    });

    it('gives steps in ascending order that agree with its quotes', () => {
      const all = pairs(history(MOVING, START, atHour(0)));
      expect(all.length).toBeGreaterThan(3);
      all.forEach(([at, usd], i) => {
        expect(at).toBeGreaterThan(all[i - 1]?.[0] ?? -Infinity);
        expect(quote(MOVING, epochMs(at))).toBe(usd);
      });
      // In force at noon since it began, not since the day or the window did.
      expect(pairs(history(MOVING, atHour(-1), atHour(0)))).toEqual([[raw(atHour(-11.5)), 0.02]]);
    });

    it('has as many reserved instances as there are, at their own price', async () => {
      for (const hours of [0, 3, 14]) {
        await driver.goTo(atHour(hours));
        const pool = driver.market.pools().find((p) => p.id === RESERVED);
        expect(pool).toMatchObject({ option: 'reserved', zone: 'moving', reservedInstances: RESERVED_INSTANCES });
        expect(quote(RESERVED, atHour(hours))).toBe(0);
      }
    });

    it('shows nothing of the future, and a change from its very instant on', async () => {
      expect(quote(MOVING, atHour(3))).toBe(0.06);
      expect(quote(LATE, atHour(2))).toBeNull();
      expect(pairs(history(MOVING, atHour(-1), END)).map(([, usd]) => usd)).toEqual([0.02, 0.06]);
      expect(pairs(history(LATE, START, END))).toEqual([]);
      await driver.goTo(epochMs(raw(atHour(3)) - 1));
      expect(quote(MOVING, atHour(4))).toBe(0.06);
      await driver.goTo(atHour(3));
      expect(quote(MOVING, atHour(4))).toBe(0.01);
      expect(pairs(history(MOVING, atHour(-1), END)).map(([, usd]) => usd)).toEqual([0.02, 0.06, 0.01]);
    });

    it('changes nothing of the past as time passes, not even in views that it gave before', async () => {
      const before = history(MOVING, START, END);
      const copy = pairs(before);
      const quotes = (): unknown[] => [-20, -14, -12, -11.6, -5, 0].map((h) => quote(MOVING, atHour(h)));
      const quoted = quotes();
      for (const hours of [0.1, 3, 12.1, 14]) {
        await driver.goTo(atHour(hours));
        expect(pairs(before)).toEqual(copy);
        expect(quotes()).toEqual(quoted);
        expect(pairs(history(MOVING, START, epochMs(NOON + 1)))).toEqual(copy);
      }
    });

    it('says until when its prices are complete, and never later than now', async () => {
      for (const hours of [0, 3, 14]) {
        await driver.goTo(atHour(hours));
        const until = driver.market.completeUntil?.() ?? null;
        expect(until === null ? null : raw(until)).toBe(maker.completeMs(raw(atHour(hours))));
      }
    });

    it(maker.ends ? 'quotes nothing after its end' : 'quotes the newest price until there is another one', async () => {
      const after = atHour(31);
      await driver.goTo(after);
      expect(quote(CALM, END)).toBe(0.03);
      expect(quote(CALM, after)).toBe(maker.ends ? null : 0.03);
      expect(quote(MOVING, after)).toBe(maker.ends ? null : 0.07);
    });

    it('quotes nothing of a pool that is closed, which is there all the same, with its history', async () => {
      if (driver.close === undefined) return;
      await driver.close(MOVING);
      for (const hours of [-10, 0]) expect(quote(MOVING, atHour(hours))).toBeNull();
      expect(driver.market.pools().map((p) => p.id)).toContain(MOVING);
      expect(pairs(history(MOVING, START, END))).not.toEqual([]);
      expect([quote(CALM, atHour(0)), quote(onDemand('moving'), atHour(0))]).toEqual([0.03, ON_DEMAND_USD]);
    });
  });
}
