import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { epochMs } from '../../../lib/kernel/units.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { historicalMedians } from '../../../lib/local/models/medians.ts';
import { npyColumn } from '../../../lib/local/npy-column.ts';
import { OUTAGE_FEATURES, writeOutages } from '../../../bench/forecast/outages.ts';
import { datasetRows } from '../../../lib/local/models/dataset-rows.ts';
import { outcomeWithin, type DatasetRows } from '../../../lib/models/evaluation/rows.ts';
import { pool } from '../acquire/world.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const T0 = Date.UTC(2023, 0, 2);
const iso = (ms: number): string => new Date(ms).toISOString();
const spot = pool({ type: 'm5.large', zone: 'us-east-1a' });
const other = pool({ type: 'm5.xlarge', zone: 'us-east-1a' });

function trace(of: Partial<Pick<MarketTrace, 'prices' | 'availability'>>, days: number): MarketTrace {
  return {
    name: 'made up',
    startMs: epochMs(T0),
    endMs: epochMs(T0 + days * DAY),
    pools: [spot, other],
    prices: () => ({ atMs: Float64Array.of(T0), usdPerHour: Float64Array.of(0.03) }),
    availability: () => null,
    ...of,
  };
}

describe('historical medians', () => {
  /** For each hour, whether its price is high; a bid placed in a low hour before a high one is lost within the hour. */
  function prices(isHigh: (hour: number) => boolean, days: number): MarketTrace {
    const hours = Array.from({ length: days * 24 }, (_, h) => h);
    return trace(
      {
        prices: () => ({
          atMs: Float64Array.from(hours, (h) => T0 + h * HOUR),
          usdPerHour: Float64Array.from(hours, (h) => (isHigh(h) ? 0.09 : 0.03)),
        }),
      },
      days,
    );
  }
  /** One bid 0.01 above the price, at each of these hours. */
  function bids(atHours: readonly number[], split: 'test' | 'unseen' = 'test', days = 30): DatasetRows {
    const source = {
      name: 'made up',
      sha256: '',
      from: iso(T0),
      validationFrom: iso(T0 + 14 * DAY),
      testFrom: iso(T0 + 20 * DAY),
      to: iso(T0 + days * DAY),
    };
    const column = (value: number): Float64Array => new Float64Array(atHours.length).fill(value);
    return {
      manifest: {
        version: 1,
        rows: atHours.length,
        plan: { seed: 1, instants: atHours.length, bidsPerInstant: 1 },
        features: ['bidDeltaUsd'],
        splits: ['train', 'validation', 'test', 'unseen'],
        pools: ['m5.large/us-east-1a'],
        horizonsS: [3600],
        sources: [source],
        sha256: {},
      },
      features: new Float32Array(atHours.length).fill(0.01),
      lossS: column(Infinity),
      watchedS: column(86_400),
      atMs: Float64Array.from(atHours, (h) => T0 + h * HOUR),
      bidUsd: column(0.04),
      pool: column(0),
      source: column(0),
      split: column(split === 'test' ? 2 : 3),
      bidKind: column(0),
    };
  }

  it('are the share of instants from which the price passed the bid within the hour', () => {
    // Every fourth hour is high: of 24 hours 6 lie before one.
    const rows = bids([24 * 25, 24 * 26]);
    const found = historicalMedians(rows, [prices((h) => h % 4 === 3, 30)], [0, 1]);
    for (const p of [...found.static, ...found.rolling]) expect(p).toBeCloseTo(0.25, 6);
  });

  it('are made from the training range, and from the week before', () => {
    // Wild until validation begins, calm after.
    const wild = prices((h) => h % 4 === 3 && h < 24 * 14, 30);
    const found = historicalMedians(bids([24 * 25]), [wild], [0]);
    expect(found.static[0]).toBeCloseTo(0.25, 6);
    expect(found.rolling[0]).toBe(0);
    // What comes after the moment is not known to either.
    const later = prices((h) => (h % 4 === 3 && h < 24 * 14) || h > 24 * 25, 30);
    expect(historicalMedians(bids([24 * 25]), [later], [0])).toEqual(found);
  });

  it('know nothing of a pool never seen but what has been public lately', () => {
    const found = historicalMedians(bids([24 * 25], 'unseen'), [prices((h) => h % 4 === 3, 30)], [0]);
    expect(found.static[0]).toBe(0);
    expect(found.rolling[0]).toBeCloseTo(0.25, 6);
  });

  it('are judged by outcomes that can be known', () => {
    const rows = bids([24 * 25, 24 * 30 - 0.5, 24 * 25]);
    rows.lossS.set([1800, 60, Infinity]);
    rows.watchedS.set([1800, 60, 1200]);
    expect([0, 1, 2].map((row) => outcomeWithin(rows, row, 3600))).toEqual(['lost', 'unknown', 'unknown']);
    expect([0, 1, 2].map((row) => outcomeWithin(rows, row, 900))).toEqual(['lived', 'lost', 'lived']);
  });
});

describe('samples of outages', () => {
  const folders: string[] = [];
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
  const DAYS = 20;
  /** Up and down by a fair coin every hour; the same until `until` whatever the seed of what follows. */
  function coins(untilMs: number, after: string): MarketTrace {
    const [before, then] = [randomStream(1, 'test/coins'), randomStream(1, `test/${after}`)];
    const at = Array.from({ length: DAYS * 24 }, (_, h) => T0 + h * HOUR);
    const steps = [spot, other].map(() => ({
      atMs: Float64Array.from(at),
      available: Uint8Array.from(at, (ms) => ((ms <= untilMs ? before : then)() < 0.7 ? 1 : 0)),
    }));
    return trace({ availability: (id) => steps[id === spot.id ? 0 : 1] ?? null }, DAYS);
  }
  function drawn(market: MarketTrace) {
    const folder = mkdtempSync(join(tmpdir(), 'ebb-outages-'));
    folders.push(folder);
    writeOutages(folder, [{ name: 'coins', trace: market }], { seed: 1, instantsPerSeries: 300 });
    const rows = datasetRows(folder);
    return { rows, empirical: npyColumn(join(folder, 'empirical.npy')), folder };
  }

  it('are lost when capacity ends, and only where there was some', () => {
    const market = coins(Infinity, 'a');
    const { rows } = drawn(market);
    expect(rows.manifest.rows).toBeGreaterThan(200);
    for (let row = 0; row < rows.manifest.rows; row++) {
      const id = rows.manifest.pools[rows.pool[row] ?? -1] === 'm5.large/us-east-1a' ? spot.id : other.id;
      const { atMs, available } = market.availability(id) ?? { atMs: [], available: [] };
      const now = rows.atMs[row] ?? NaN;
      const hours = Array.from(atMs, (ms, i) => ({ ms, isUp: available[i] === 1 }));
      expect(hours.findLast((h) => h.ms <= now)?.isUp).toBe(true);
      const ends = hours.find((h) => h.ms > now && !h.isUp)?.ms ?? Infinity;
      const lossS = (ends - now) / 1000;
      if (lossS <= 86_400) expect(rows.lossS[row]).toBeCloseTo(lossS, 0);
      else expect(rows.lossS[row]).toBe(Infinity);
    }
  });

  it('know nothing of what comes', () => {
    const middle = T0 + 17 * DAY + HOUR / 2;
    const [a, b] = [drawn(coins(middle, 'a')), drawn(coins(middle, 'b'))];
    const width = OUTAGE_FEATURES.length;
    const until = (d: typeof a): number => d.rows.atMs.findIndex((ms) => ms > middle);
    const n = until(a);
    expect(n).toBe(until(b));
    expect(n).toBeGreaterThan(150);
    expect(a.rows.features.slice(0, n * width)).toEqual(b.rows.features.slice(0, n * width));
    expect(a.empirical.values.slice(0, n * 6)).toEqual(b.empirical.values.slice(0, n * 6));
    expect([...a.rows.lossS.slice(0, n)]).not.toEqual([...b.rows.lossS.slice(0, n)]);
    expect(JSON.parse(readFileSync(join(a.folder, 'manifest.json'), 'utf8'))).toMatchObject({ risk: 'capacity' });
  });
});
