import { describe, expect, it } from '@jest/globals';
import { C4_LARGE as POOL } from '../../support/feature-pool.ts';
import fc from 'fast-check';
import { poolKey } from '../../../lib/domain/pool.ts';
import { MarketFeatures, writeRow, type FeaturePool } from '../../../lib/market/features/market-features.ts';
import { BID_FEATURES, FEATURES, FEATURE_WIDTH } from '../../../lib/market/features/names.ts';
import { WARM_UP_MS } from '../../../lib/market/features/price-window.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 2016-03-10T00:00Z, a Thursday: daylight saving begins three days later in the United States, on 03-27 in Europe. */
const START = Date.UTC(2016, 2, 10);
const WEEK = 7 * DAY;

interface Price {
  readonly atMs: number;
  readonly usd: number;
}
type History = readonly Price[];

/**
 * Changes of a price in cents at full minutes (so that windows end on changes and hours begin with them), in bursts and
 * silences, for longer than anything is kept; now and then the same price again.
 */
const histories: fc.Arbitrary<History> = fc
  .array(
    fc.tuple(
      fc.oneof(
        { weight: 5, arbitrary: fc.integer({ min: 1, max: 9 }) },
        { weight: 4, arbitrary: fc.integer({ min: 10, max: 400 }) },
        { weight: 1, arbitrary: fc.integer({ min: 1000, max: 2100 }) },
      ),
      fc.integer({ min: 1, max: 30 }),
    ),
    { minLength: 1, maxLength: 150, size: 'max' },
  )
  .map((steps) => {
    let at = START;
    return steps.map(([minutes, cents]) => ({ atMs: (at += minutes * MINUTE), usd: cents / 100 }));
  });

const SIBLING: FeaturePool = { ...POOL, id: poolKey('c4.large', 'us-east-1b', 'spot'), zone: 'us-east-1b' };
const COUSIN: FeaturePool = {
  ...POOL,
  id: poolKey('c4.xlarge', 'us-east-1a', 'spot'),
  type: 'c4.xlarge',
  onDemandUsd: 0.22,
};
const STRANGER: FeaturePool = {
  ...COUSIN,
  id: poolKey('r3.large', 'us-east-1b', 'spot'),
  type: 'r3.large',
  family: 'r3',
};

/** The price in force at every minute of the last week, by looking through the whole history for each. */
function minutes(history: History, nowMs: number): { readonly fromMs: number; readonly usd: number }[] {
  const begin = Math.max(nowMs - WEEK, history[0]?.atMs ?? Infinity);
  const list: { fromMs: number; usd: number }[] = [];
  for (let fromMs = begin; fromMs < nowMs; fromMs += MINUTE) list.push({ fromMs, usd: inForce(history, fromMs) });
  return list;
}

const inForce = (history: History, atMs: number): number => history.findLast((p) => p.atMs <= atMs)?.usd ?? NaN;

/** Real changes: not the first price, not the same price again. */
const changesOf = (history: History): Price[] => history.filter((p, i) => i > 0 && p.usd !== history[i - 1]?.usd);

/** The definitions of names.ts, each taken literally. `nowMs` is a full minute. */
function naive(
  histories: ReadonlyMap<FeaturePool, History>,
  pool: FeaturePool,
  { nowMs, bid }: { nowMs: number; bid: number },
): Record<string, number> {
  const history = (of: FeaturePool): History => (histories.get(of) ?? []).filter((p) => p.atMs <= nowMs);
  const fit = (of: FeaturePool): boolean => nowMs - (history(of).at(-1)?.atMs ?? -Infinity) <= 36 * HOUR;
  const own = history(pool);
  const held = minutes(own, nowMs);
  const price = inForce(own, nowMs);
  const within = (of: FeaturePool, ms: number): number[] => [
    ...minutes(history(of), nowMs)
      .filter((m) => m.fromMs >= nowMs - ms)
      .map((m) => m.usd),
    inForce(history(of), nowMs),
  ];
  const range = (of: FeaturePool, ms: number): number => Math.max(...within(of, ms)) - Math.min(...within(of, ms));
  const mean = (ms: number): number => {
    const list = held.filter((m) => m.fromMs >= nowMs - ms);
    return list.length === 0 ? price : list.reduce((sum, m) => sum + m.usd, 0) / list.length;
  };
  const changes = (of: FeaturePool, ms: number): number =>
    changesOf(history(of)).filter((c) => c.atMs > nowMs - ms).length;
  const around = (prefix: string, others: readonly FeaturePool[]): Record<string, number> => {
    const pools = others.filter(fit);
    const average = (value: (of: FeaturePool) => number): number =>
      pools.length === 0 ? 0 : pools.reduce((sum, p) => sum + value(p), 0) / pools.length;
    return {
      [`${prefix}Log`]: Math.log(1 + pools.length),
      [`${prefix}PriceRatioLog`]: average((p) => Math.log(inForce(history(p), nowMs) / p.onDemandUsd)),
      [`${prefix}Changes1hLog`]: average((p) => Math.log(1 + changes(p, HOUR))),
      [`${prefix}Range1hRatioLog`]: Math.log(1 + Math.max(0, ...pools.map((p) => range(p, HOUR) / p.onDemandUsd))),
    };
  };
  const od = pool.onDemandUsd;
  const date = new Date(nowMs);
  const local = (offsetH: number): number => {
    const there = new Date(nowMs + offsetH * HOUR);
    const isWeekday = there.getUTCDay() >= 1 && there.getUTCDay() <= 5;
    return isWeekday && there.getUTCHours() >= 9 && there.getUTCHours() < 17 ? 1 : 0;
  };
  // Between the two instants of the two coasts nobody works: a Sunday.
  const summerInUs = nowMs >= Date.UTC(2016, 2, 13, 10);
  const summerInEurope = nowMs >= Date.UTC(2016, 2, 27, 1);
  const real = [own[0] as Price, ...changesOf(own)];
  const changedMs = real.at(-1)?.atMs ?? NaN;
  const list: Record<string, number> = {
    priceUsd: price,
    mean24hUsd: mean(DAY),
    changes1h: changes(pool, HOUR),
    range2mUsd: range(pool, 2 * MINUTE),
    range10mUsd: range(pool, 10 * MINUTE),
    range30mUsd: range(pool, 30 * MINUTE),
    weekdaySin: Math.sin((2 * Math.PI * date.getUTCDay()) / 7),
    weekdayCos: Math.cos((2 * Math.PI * date.getUTCDay()) / 7),
    timeOfDaySin: Math.sin((2 * Math.PI * (date.getUTCHours() * 60 + date.getUTCMinutes())) / 1440),
    timeOfDayCos: Math.cos((2 * Math.PI * (date.getUTCHours() * 60 + date.getUTCMinutes())) / 1440),
    workingNewYork: local(summerInUs ? -4 : -5),
    workingLosAngeles: local(summerInUs ? -7 : -8),
    workingBerlin: local(summerInEurope ? 2 : 1),
    onDemandUsdLog: Math.log(od),
    priceRatioLog: Math.log(price / od),
    mean1hRatioLog: Math.log(mean(HOUR) / od),
    mean24hRatioLog: Math.log(mean(DAY) / od),
    mean7dRatioLog: Math.log(mean(WEEK) / od),
    range1hRatioLog: Math.log(1 + range(pool, HOUR) / od),
    range24hRatioLog: Math.log(1 + range(pool, DAY) / od),
    range7dRatioLog: Math.log(1 + range(pool, WEEK) / od),
    sinceChangeSLog: Math.log(1 + (nowMs - changedMs) / 1000),
    changes24hLog: Math.log(1 + changes(pool, DAY)),
    changes7dLog: Math.log(1 + changes(pool, WEEK)),
    knownHLog: Math.log(1 + Math.min(WEEK, nowMs - (own[0]?.atMs ?? NaN)) / HOUR),
    ...around('zones', pool === POOL ? [SIBLING] : [POOL]),
    ...around('family', pool === POOL ? [COUSIN] : []),
  };
  for (let back = 9; back >= 0; back--) {
    const kept = real.filter((_, i) => i === real.length - 1 || (real[i + 1]?.atMs ?? 0) > nowMs - WEEK);
    const before = kept[Math.max(0, kept.length - 1 - back)] as Price;
    list[`before${back}RatioLog`] = Math.log(before.usd / price);
    list[`before${back}AgeSLog`] = Math.log(1 + Math.min(WEEK, nowMs - before.atMs) / 1000);
  }
  const calm = (hours: number): number => {
    let known = 0;
    let calmHours = 0;
    for (let h = Math.floor(nowMs / HOUR) * HOUR - hours * HOUR; h + HOUR <= nowMs; h += HOUR) {
      if (h < (own[0]?.atMs ?? Infinity)) continue;
      known++;
      const highest = Math.max(...Array.from({ length: 60 }, (_, m) => inForce(own, h + m * MINUTE)));
      if (highest - inForce(own, h) <= bid - price) calmHours++;
    }
    return (calmHours + 0.5) / (known + 1);
  };
  const lastAbove = [...held, { fromMs: nowMs, usd: price }].findLast((m) => m.usd > bid);
  const sinceAboveMs = lastAbove === undefined ? nowMs - (held[0]?.fromMs ?? nowMs) : nowMs - lastAbove.fromMs - MINUTE;
  const distance = (ms: number): number => Math.asinh(((bid - Math.max(...within(pool, ms))) / od) * 100);
  return {
    ...list,
    bidDeltaUsd: bid - price,
    bidDeltaUsdLog: Math.log(Math.max(1e-6, bid - price)),
    bidDeltaRatioLog: Math.log(Math.max(1e-6, (bid - price) / od)),
    bidRatioLog: Math.log(bid / od),
    bidDeltaRange24hLog: Math.log(((bid - price) / od + 1e-4) / (range(pool, DAY) / od + 1e-4)),
    bidAboveMax1h: distance(HOUR),
    bidAboveMax24h: distance(DAY),
    bidAboveMax7d: distance(WEEK),
    bidSinceAboveHLog: Math.log(1 + sinceAboveMs / HOUR),
    bidCalm24h: calm(24),
    bidCalm7d: calm(168),
  };
}

interface Case {
  readonly own: History;
  readonly sibling: History;
  readonly cousin: History;
  /** Asked so many minutes after which of the own prices: windows end on changes. */
  readonly questions: readonly (readonly [price: number, minutes: number])[];
}

const cases: fc.Arbitrary<Case> = fc.record({
  own: histories,
  sibling: histories,
  cousin: histories,
  questions: fc.array(fc.tuple(fc.integer({ min: 0, max: 149 }), fc.constantFrom(0, 1, 2, 9, 10, 30, 60, 61, 1440)), {
    minLength: 8,
    maxLength: 12,
  }),
});

/** Streams all that is public at `nowMs` and not yet taken, in the order of time. */
function streamer(features: MarketFeatures, of: ReadonlyMap<FeaturePool, History>): (nowMs: number) => void {
  const all = [...of].flatMap(([pool, history]) => history.map((price) => ({ pool, ...price })));
  all.sort((a, b) => a.atMs - b.atMs);
  let next = 0;
  return (nowMs) => {
    for (; (all[next]?.atMs ?? Infinity) <= nowMs; next++) {
      const { pool, atMs, usd } = all[next] as Price & { pool: FeaturePool };
      features.take(pool.id, atMs, usd);
    }
  };
}

const historiesOf = (c: Case): Map<FeaturePool, History> =>
  new Map([
    [POOL, c.own],
    [SIBLING, c.sibling],
    [COUSIN, c.cousin],
    [STRANGER, c.cousin],
  ]);

function rowOf(features: MarketFeatures, nowMs: number, bidAbove: number): Float32Array | null {
  const view = features.view(POOL.id, nowMs);
  if (view.kind !== 'view') return null;
  const row = new Float32Array(FEATURE_WIDTH);
  writeRow(view, view.priced.window.usd + bidAbove, row, 0);
  return row;
}

describe('features of the preemption forecast', () => {
  it('as prices stream in, equal what their definitions say of the whole history', () => {
    let rows = 0;
    let pastTheWeek = 0;
    fc.assert(
      fc.property(cases, (c) => {
        const of = historiesOf(c);
        const features = new MarketFeatures([...of.keys()]);
        const stream = streamer(features, of);
        const asked = c.questions.map(
          ([price, minutes]) => (c.own[price % c.own.length]?.atMs ?? START) + minutes * MINUTE,
        );
        for (const nowMs of asked.sort((a, b) => a - b)) {
          stream(nowMs);
          // Half a cent beside the grid of prices, so that no bid equals a price but for rounding.
          for (const above of [0.00001, 0.045]) {
            const row = rowOf(features, nowMs, above);
            if (row === null) continue;
            rows++;
            if (nowMs - (c.own[0]?.atMs ?? 0) > WEEK) pastTheWeek++;
            const bid = (c.own.findLast((p) => p.atMs <= nowMs)?.usd ?? NaN) + above;
            const expected = naive(of, POOL, { nowMs, bid });
            const found = Object.fromEntries(FEATURES.map((name, i) => [name, row[i]]));
            for (const name of FEATURES) {
              const wanted = expected[name] ?? NaN;
              if (Math.abs((found[name] ?? NaN) - wanted) <= 2e-6 * Math.max(1, Math.abs(wanted))) continue;
              throw new Error(`${name} is ${found[name]}, not ${wanted}`);
            }
          }
        }
      }),
      { seed: 20261121, numRuns: 8 },
    );
    expect(rows).toBeGreaterThan(80);
    expect(pastTheWeek).toBeGreaterThan(20);
  }, 60_000);

  it('depend on nothing older than the warm-up', () => {
    let compared = 0;
    fc.assert(
      fc.property(cases, (c) => {
        const of = historiesOf(c);
        const last = Math.max(...c.own.map((p) => p.atMs));
        const nowMs = last + 30 * MINUTE;
        if (last - (c.own[0]?.atMs ?? 0) < WARM_UP_MS) return;
        const whole = new MarketFeatures([...of.keys()]);
        streamer(whole, of)(nowMs);
        const late = new MarketFeatures([...of.keys()]);
        const fromMs = nowMs - WARM_UP_MS;
        const recent = [...of].map(([pool, history]): [FeaturePool, History] => {
          const before = history.findLast((p) => p.atMs <= fromMs);
          const since = history.filter((p) => p.atMs > fromMs);
          return [pool, before === undefined ? since : [{ ...before, atMs: fromMs }, ...since]];
        });
        streamer(late, new Map(recent))(nowMs);
        for (const above of [0.00001, 0.045]) {
          const [a, b] = [rowOf(whole, nowMs, above), rowOf(late, nowMs, above)];
          compared++;
          for (const [i, name] of FEATURES.entries()) {
            const [x, y] = [a?.[i] ?? NaN, b?.[i] ?? NaN];
            if (!(Math.abs(x - y) <= 2e-6 * Math.max(1, Math.abs(x)))) throw new Error(`${name}: ${x} and ${y}`);
          }
        }
      }),
      { seed: 7, numRuns: 80 },
    );
    expect(compared).toBeGreaterThan(20);
  }, 60_000);

  it('of the bid never fall when the bid rises', () => {
    const first = FEATURE_WIDTH - BID_FEATURES.length;
    let risen = 0;
    fc.assert(
      fc.property(cases, fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: 6, maxLength: 6 }), (c, bids) => {
        const of = historiesOf(c);
        const features = new MarketFeatures([...of.keys()]);
        const nowMs = (c.own.at(-1)?.atMs ?? START) + MINUTE;
        streamer(features, of)(nowMs);
        let before: Float32Array | null = null;
        for (const above of bids.sort((a, b) => a - b)) {
          const row = rowOf(features, nowMs, above / 100_000);
          if (row === null) return;
          if (before !== null) {
            expect(row.subarray(0, first)).toEqual(before.subarray(0, first));
            for (let i = first; i < FEATURE_WIDTH; i++) {
              expect(row[i]).toBeGreaterThanOrEqual(before[i] ?? NaN);
              if ((row[i] ?? 0) > (before[i] ?? 0)) risen++;
            }
          }
          before = row;
        }
      }),
      { seed: 11, numRuns: 60 },
    );
    expect(risen).toBeGreaterThan(500);
  }, 60_000);
});
