import { describe, expect, it } from '@jest/globals';
import { instanceId, poolId } from '../../../../lib/kernel/ids.ts';
import { epochMs } from '../../../../lib/kernel/units.ts';
import type { Instance, MarketCause } from '../../../../lib/domain/instance.ts';
import { PriceDrift } from '../../../../lib/market/forecast/price-drift.ts';

const HOUR = 3_600_000;
const WEEK = 168 * HOUR;
const T0 = 480_000 * HOUR;

interface End {
  readonly atH: number;
  readonly cause?: MarketCause | 'released';
  readonly by?: string;
  readonly pool?: string;
}

/** An instance of one hour, whose price was to take it with `p`, its capacity with 0.1. */
function ended(drift: PriceDrift, p: number, { atH, cause = 'released', by = 'v1', pool = 'a' }: End): void {
  const endedMs = epochMs(T0 + atH * HOUR);
  const instance = {
    id: instanceId('i'),
    pool: poolId(`m5.large/${pool}/spot`),
    launchedMs: epochMs(T0 + (atH - 1) * HOUR),
    endedMs,
    endCause: cause === 'released' ? 'released' : 'interrupted',
    ...(cause !== 'released' && { marketCause: cause }),
    forecast: {
      by,
      horizonS: [3600],
      pInterrupted: [1 - 0.9 * (1 - p)],
      capacity: { by: 'observed', pInterrupted: [0.1] },
    },
  };
  drift.ended(instance as unknown as Instance, endedMs);
}
const wrongAt = (drift: PriceDrift, atH: number, version = 'v1') => drift.wrong(version, epochMs(T0 + atH * HOUR));
const times = (n: number, make: (i: number) => void): void => Array.from({ length: n }, (_, i) => i).forEach(make);

describe('the drift of a model of prices', () => {
  it('is found where far more are lost to the price than it expected, of that version alone', () => {
    const drift = new PriceDrift();
    times(40, (i) => ended(drift, 0.1, { atH: i / 2, cause: i % 2 === 0 ? 'price' : 'released' }));
    expect(wrongAt(drift, 20)).toMatch(/^v1 expected 4\.\d losses of late, 19 came$/);
    expect(wrongAt(drift, 20, 'v2')).toBeNull();
  });

  it('is found where far fewer are', () => {
    const drift = new PriceDrift();
    times(40, (i) => ended(drift, 0.5, { atH: i / 2 }));
    expect(wrongAt(drift, 20)).toMatch(/, 0\.0 came$/);
  });

  it('is none where losses come as expected, nor by losses of capacity', () => {
    const drift = new PriceDrift();
    times(60, (i) => ended(drift, 0.2, { atH: i / 2, cause: i % 5 === 0 ? 'price' : 'capacity' }));
    expect(wrongAt(drift, 30)).toBeNull();
  });

  it('is not told from a few losses, nor from many at once: they share their cause', () => {
    const few = new PriceDrift();
    times(4, (i) => ended(few, 0.01, { atH: i, cause: 'price' }));
    expect(wrongAt(few, 4)).toBeNull();
    const atOnce = new PriceDrift();
    times(30, () => ended(atOnce, 0.01, { atH: 1, cause: 'price' }));
    expect(wrongAt(atOnce, 1)).toBeNull();
    const apart = new PriceDrift();
    times(30, (i) => ended(apart, 0.01, { atH: i, cause: 'price' }));
    expect(wrongAt(apart, 30)).not.toBeNull();
  });

  it('fades: the version is asked again after some weeks', () => {
    const drift = new PriceDrift();
    times(12, (i) => ended(drift, 0.01, { atH: i, cause: 'price' }));
    expect(wrongAt(drift, 12)).not.toBeNull();
    expect(wrongAt(drift, 12 + (3 * WEEK) / HOUR)).toBeNull();
  });

  it('knows nothing of forecasts from history', () => {
    const drift = new PriceDrift();
    times(40, (i) => ended(drift, 0.01, { atH: i, cause: 'price', by: 'history' }));
    expect(wrongAt(drift, 40, 'history')).toBeNull();
    expect(drift.takeDirty().size).toBe(0);
  });

  it('is the same from its rows, and ignores others', () => {
    const drift = new PriceDrift();
    times(20, (i) => ended(drift, 0.05, { atH: i, cause: 'price', pool: i % 2 === 0 ? 'a' : 'b' }));
    const rows = drift.takeDirty();
    expect([...rows.keys()]).toEqual(['price-drift/v1/m5.large/a/spot', 'price-drift/v1/m5.large/b/spot']);
    expect(drift.takeDirty().size).toBe(0);
    const next = new PriceDrift();
    next.restore(new Map([...rows, ['price-drift/v1/c', '{"sum":1}'], ['price-drift/v1/d', 'no']]));
    expect(wrongAt(next, 20)).toBe(wrongAt(drift, 20));
    expect(wrongAt(next, 20)).not.toBeNull();
  });
});
