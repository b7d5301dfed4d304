import { describe, expect, it } from '@jest/globals';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { historicalMedians } from '../../../lib/drivers/local/models/medians.ts';
import { outcomeWithin, type DatasetRows } from '../../../lib/models/evaluation/dataset-rows.ts';
import { pool } from '../../support/decision-world.ts';

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
