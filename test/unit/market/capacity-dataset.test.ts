import { describe, expect, it } from '@jest/globals';
import { epochMs } from '../../../lib/kernel/units.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { sampleCapacity, type CapacityPlan, type CapacitySample } from '../../../lib/market/capacity-dataset.ts';
import { LABEL_HORIZONS_S } from '../../../lib/market/dataset.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { pool } from '../../support/decision-world.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const T0 = Date.UTC(2023, 0, 2);
const DAYS = 20;
const spot = pool({ type: 'm5.large' });
const other = pool({ type: 'm5.xlarge' });

/** Up and down by an unfair coin every hour; the same until `untilMs` whatever the seed of what follows. */
function coins(untilMs: number, after: string): MarketTrace {
  const [before, then] = [randomStream(1, 'test/coins'), randomStream(1, `test/${after}`)];
  const atMs = Float64Array.from({ length: DAYS * 24 }, (_, h) => T0 + h * HOUR);
  const steps = [spot, other].map(() => ({
    atMs,
    available: Uint8Array.from(atMs, (ms) => ((ms <= untilMs ? before : then)() < 0.7 ? 1 : 0)),
  }));
  return {
    name: 'coins',
    startMs: epochMs(T0),
    endMs: epochMs(T0 + DAYS * DAY),
    pools: [spot, other, pool({ option: 'on-demand' })],
    prices: () => ({ atMs: new Float64Array(0), usdPerHour: new Float64Array(0) }),
    availability: (id) => steps[id === spot.id ? 0 : 1] ?? null,
  };
}
const plan: CapacityPlan = {
  seed: 1,
  instantsPerPool: 1000,
  shares: { train: 0.6, validation: 0.2 },
  unseen: new Set(),
};
/** `evidence` goes on changing: what it says at the sample is taken from it. */
type Drawn = Omit<CapacitySample, 'evidence'> & { readonly hours: number };
const drawn = (market: MarketTrace, over: Partial<CapacityPlan> = {}): Drawn[] =>
  Array.from(sampleCapacity(market, { ...plan, ...over }), ({ evidence, ...sample }) => ({
    ...sample,
    hours: evidence.of(sample.pool).exposureS,
  }));

describe('samples of capacity', () => {
  it('are lost when capacity ends, and only where there was some', () => {
    const market = coins(Infinity, 'a');
    const samples = drawn(market);
    expect(samples.length).toBeGreaterThan(600);
    for (const { pool: of, atMs: now, lossS, watchedS } of samples) {
      const { atMs = [], available = [] } = market.availability(of) ?? {};
      const hours = Array.from(atMs, (ms, i) => ({ ms, isUp: available[i] === 1 }));
      expect(hours.findLast((h) => h.ms <= now)?.isUp).toBe(true);
      const ends = ((hours.find((h) => h.ms > now && !h.isUp)?.ms ?? Infinity) - now) / 1000;
      expect(lossS === Infinity || lossS === ends).toBe(true);
      expect(watchedS).toBe(Math.min(ends, watchedS));
    }
  });

  it('are watched to a horizon that ends in their range, whatever becomes of them', () => {
    const ends = { train: 0.6, validation: 0.8, test: 1, unseen: 1 };
    const samples = drawn(coins(Infinity, 'a'));
    for (const { split, atMs, lossS, watchedS } of samples) {
      const leftS = (T0 + ends[split] * DAYS * DAY - atMs) / 1000;
      const horizonS = LABEL_HORIZONS_S.findLast((h) => h <= leftS) ?? NaN;
      expect(lossS === Infinity ? watchedS : horizonS).toBe(horizonS);
      if (lossS !== Infinity) expect(lossS).toBeLessThanOrEqual(horizonS);
    }
    const nearEnd = samples.filter((s) => s.split === 'train' && s.atMs > T0 + 0.6 * DAYS * DAY - 3 * HOUR);
    expect(nearEnd.some((s) => s.lossS === Infinity)).toBe(true);
    expect(nearEnd.some((s) => s.lossS < Infinity)).toBe(true);
  });

  it('know nothing of what comes', () => {
    const middle = T0 + 17 * DAY + HOUR / 2;
    const [a, b] = [drawn(coins(middle, 'a')), drawn(coins(middle, 'b'))].map((list) =>
      list.filter((s) => s.atMs <= middle),
    );
    const known = (list: readonly Drawn[] = []) => list.map((s) => [s.atMs, s.hours, ...s.features]);
    expect(known(a)).toEqual(known(b));
    expect(known(a).length).toBeGreaterThan(500);
    expect(a?.map((s) => s.lossS)).not.toEqual(b?.map((s) => s.lossS));
  });

  it('of pools that are held out are of the last range alone, and of others never theirs', () => {
    const samples = drawn(coins(Infinity, 'a'), { unseen: new Set(['m5.xlarge/us-east-1a']) });
    for (const { pool: of, split } of samples) expect(split === 'unseen').toBe(of === other.id);
    expect(new Set(samples.map((s) => s.split))).toEqual(new Set(['train', 'validation', 'test', 'unseen']));
    for (const s of samples) if (s.split === 'unseen') expect(s.atMs).toBeGreaterThanOrEqual(T0 + 16 * DAY);
  });

  it('know less than the series: an engine that begins knows nothing but what it has seen', () => {
    const hours = drawn(coins(Infinity, 'a')).map((s) => s.hours);
    expect(hours.filter((h) => h === 0).length).toBeGreaterThan(20);
    expect(Math.max(...hours)).toBeGreaterThan(24);
  });
});
