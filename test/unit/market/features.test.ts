import { describe, expect, it } from '@jest/globals';
import { poolId } from '../../../lib/kernel/ids.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import {
  LONGEST_SILENCE_MS,
  MarketFeatures,
  writeRow,
  type FeaturePool,
} from '../../../lib/market/features/market-features.ts';
import { C4_LARGE as POOL } from '../../support/feature-pool.ts';
import { FEATURES, FEATURE_WIDTH } from '../../../lib/market/features/names.ts';
import { PriceWindow, WARM_UP_MS, WINDOW } from '../../../lib/market/features/price-window.ts';

const MINUTE = 60_000;
const START = Date.UTC(2016, 3, 1);

function row(features: MarketFeatures, nowMs: number): number[] | string {
  const view = features.view(POOL.id, nowMs);
  if (view.kind !== 'view') return view.kind;
  const values = new Float32Array(FEATURE_WIDTH);
  writeRow(view, view.priced.window.usd + 0.01, values, 0);
  return [...values];
}

describe('prices that cannot be used', () => {
  it.each([
    ['NaN', START + MINUTE, NaN, 'not-a-price'],
    ['an infinity', START + MINUTE, Infinity, 'not-a-price'],
    ['a negative price', START + MINUTE, -0.01, 'not-a-price'],
    ['a price at no time', NaN, 0.02, 'not-a-price'],
    ['a price of zero', START + MINUTE, 0, 'zero'],
    ['a price from before', START - MINUTE, 0.03, 'clock-back'],
    ['another price of the same instant', START, 0.03, 'clock-back'],
  ])('%s is refused and alters nothing', (_what, atMs, usd, outcome) => {
    const features = new MarketFeatures([POOL]);
    const untouched = new MarketFeatures([POOL]);
    for (const each of [features, untouched]) each.take(POOL.id, START, 0.02);
    expect(features.take(POOL.id, atMs, usd)).toBe(outcome);
    expect(row(features, START + 5 * MINUTE)).toEqual(row(untouched, START + 5 * MINUTE));
  });

  it('a price of a pool that is not there is refused', () => {
    expect(new MarketFeatures([POOL]).take(poolId('x/y/spot'), START, 0.02)).toBe('unknown-pool');
  });

  it('the same price again is no change, and proof that the market lives', () => {
    const features = new MarketFeatures([POOL]);
    expect(features.take(POOL.id, START, 0.02)).toBe('taken');
    expect(features.take(POOL.id, START + LONGEST_SILENCE_MS, 0.02)).toBe('unchanged');
    const later = row(features, START + LONGEST_SILENCE_MS + MINUTE);
    expect(Array.isArray(later) ? later[FEATURES.indexOf('changes7dLog')] : later).toBe(0);
  });
});

describe('instants at which a pool has no features', () => {
  it('are named', () => {
    const features = new MarketFeatures([POOL]);
    expect(features.view(poolId('x/y/spot'), START)).toEqual({ kind: 'unknown-pool' });
    expect(features.view(POOL.id, START)).toEqual({ kind: 'no-price' });
    features.take(POOL.id, START + MINUTE, 0.02);
    expect(features.view(POOL.id, START)).toEqual({ kind: 'clock-back' });
    const end = START + MINUTE + LONGEST_SILENCE_MS;
    expect(features.view(POOL.id, end).kind).toBe('view');
    expect(features.view(POOL.id, end + 1000)).toEqual({
      kind: 'price-gap',
      silentS: LONGEST_SILENCE_MS / 1000 + 1,
    });
    expect(features.view(POOL.id, end)).toEqual({ kind: 'clock-back' });
    expect(features.view(POOL.id, NaN)).toEqual({ kind: 'clock-back' });
  });

  it('include those of a pool without an on-demand price', () => {
    const features = new MarketFeatures([{ ...POOL, onDemandUsd: 0 }]);
    features.take(POOL.id, START, 0.02);
    expect(features.view(POOL.id, START)).toEqual({ kind: 'no-on-demand-price' });
  });

  it('come back to life with the next price', () => {
    const features = new MarketFeatures([POOL]);
    features.take(POOL.id, START, 0.02);
    const late = START + 3 * LONGEST_SILENCE_MS;
    expect(row(features, late)).toBe('price-gap');
    features.take(POOL.id, late + MINUTE, 0.03);
    expect(Array.isArray(row(features, late + MINUTE))).toBe(true);
  });

  it('count for neighbours too: who is silent is left out', () => {
    const sibling: FeaturePool = { ...POOL, id: poolKey('c4.large', 'us-east-1b', 'spot'), zone: 'us-east-1b' };
    const features = new MarketFeatures([POOL, sibling]);
    const zones = (nowMs: number): number | undefined => {
      const values = row(features, nowMs);
      return typeof values === 'string' ? undefined : values[FEATURES.indexOf('zonesLog')];
    };
    features.take(POOL.id, START, 0.02);
    features.take(sibling.id, START, 0.02);
    expect(zones(START + MINUTE)).toBeCloseTo(Math.log(2), 6);
    const late = START + LONGEST_SILENCE_MS + MINUTE;
    features.take(POOL.id, late, 0.03);
    expect(zones(late)).toBe(0);
  });
});

describe('a window over a busy market', () => {
  /** A price every five minutes for four weeks: lists and stacks are moved together many times. */
  function busy(): { readonly atMs: number; readonly usd: number }[] {
    const random = randomStream(3, 'busy');
    let level = 0.05;
    return Array.from({ length: 8064 }, (_, i) => {
      level = Math.max(0.01, level * Math.exp(0.2 * (random() - 0.5))) + 1e-6 * random();
      return { atMs: START + i * 5 * MINUTE, usd: random() < 0.02 ? 10 * level : level };
    });
  }

  it('answers as one that was given the last week only, and as a look through the list does', () => {
    const prices = busy();
    const long = new PriceWindow();
    for (const { atMs, usd } of prices) expect(long.take(atMs, usd)).toBe('taken');
    const nowMs = (prices.at(-1)?.atMs ?? 0) + 17_000;
    const short = new PriceWindow();
    for (const { atMs, usd } of prices) if (atMs > nowMs - WARM_UP_MS) short.take(atMs, usd);
    for (const window of [long, short]) expect(window.advance(nowMs)).toBe(true);
    const week = prices.filter((p) => p.atMs + 5 * MINUTE > nowMs - 7 * 24 * 60 * MINUTE);
    expect(long.count).toBe(week.length);
    expect(long.max(WINDOW.d7)).toBe(Math.max(...week.map((p) => p.usd)));
    expect(long.min(WINDOW.d7)).toBe(Math.min(...week.map((p) => p.usd)));
    for (const w of Object.values(WINDOW)) {
      expect(long.max(w)).toBe(short.max(w));
      expect(long.min(w)).toBe(short.min(w));
      expect(long.changes(w)).toBe(short.changes(w));
      expect(long.mean(w)).toBeCloseTo(short.mean(w), 9);
    }
    for (const bid of [0.01, 0.05, 0.2, 1]) {
      const last = week.findLast((p) => p.usd > bid);
      const since = last === undefined ? long.knownMs() : Math.max(0, nowMs - last.atMs - 5 * MINUTE);
      expect(long.sinceAboveMs(bid)).toBe(since);
      expect(short.sinceAboveMs(bid)).toBe(since);
      expect(long.calmHours(bid, 168)).toEqual(short.calmHours(bid, 168));
    }
  });
});
