import { describe, expect, it } from '@jest/globals';
import { instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import type { CapacitySample } from '../../../lib/market/capacity-dataset.ts';
import { lossesIn, recordOf, sampleRecord, type CapacityRecord } from '../../../lib/market/capacity-record.ts';
import { LABEL_HORIZONS_S } from '../../../lib/market/dataset.ts';
import { CAPACITY_FEATURES } from '../../../lib/market/features/capacity-features.ts';
import { livedBy, type Living } from '../../support/recorded-engine.ts';

const HOUR = 3_600_000;
const T0 = Date.UTC(2026, 0, 5);
const A = poolId('m5.large/us-east-1a/spot');
const B = poolId('c5.large/us-east-1a/spot');
const at = (h: number) => epochMs(T0 + h * HOUR);
/** Everything is of the range that trains. */
const ALL = { train: 1, validation: 0 } as const;

let count = 0;
function held(fromH: number, over: Partial<Instance> = {}): Instance {
  const [blank] = livedBy({ ...LIVING, days: 0.001, pools: [A], hazard: () => 0 });
  if (blank === undefined) throw new Error('nothing was held');
  return { ...blank, id: instanceId(`h-${count++}`), launchedMs: at(fromH), requestedMs: at(fromH), ...over };
}
const given = (fromH: number, toH: number, over: Partial<Instance> = {}): Instance =>
  held(fromH, { endedMs: at(toH), state: 'ended', endCause: 'released', ...over });
const taken = (fromH: number, toH: number, over: Partial<Instance> = {}): Instance =>
  given(fromH, toH + 0.1, { warnedMs: at(toH), endCause: 'interrupted', marketCause: 'capacity', ...over });

const LIVING: Living = {
  seed: 1,
  pools: [A, B],
  startMs: T0,
  days: 60,
  hazard: () => 0.3,
  givenBackAfterH: null,
  outageH: 0.5,
  idleH: 0.5,
};

function recordIn(instances: readonly Instance[], nowH: number): CapacityRecord {
  const record = recordOf(instances, at(nowH));
  if (record === null) throw new Error('nothing was recorded');
  return record;
}
const drawn = (
  record: CapacityRecord,
  instants: number,
  shares: typeof ALL | { train: number; validation: number } = ALL,
) => [...sampleRecord(record, { seed: 1, instants, shares })].map(({ evidence: _, ...sample }) => sample);
type Drawn = ReturnType<typeof drawn>[number];

/** When capacity is known to last until, and whether it ended then; hours. */
const fate = ({ atMs, lossS, watchedS }: Pick<CapacitySample, 'atMs' | 'lossS' | 'watchedS'>) => {
  expect(lossS === Infinity || lossS === watchedS).toBe(true);
  return [Math.round((atMs - T0) / HOUR + watchedS / 3600), lossS < Infinity];
};

describe('samples of an engine’s own instances', () => {
  it('end in a loss where capacity did, and are watched no longer than an instance was held', () => {
    const record = recordIn([taken(0, 3), given(4, 6), given(7, 9, { pool: B, bid: 'uncapped' }), held(10)], 12);
    const samples = drawn(record, 200);
    expect(new Set(samples.map((s) => JSON.stringify(fate(s))))).toEqual(
      new Set(['[3,true]', '[6,false]', '[9,false]', '[12,false]']),
    );
    const isHeld = (h: number): boolean => (h >= 0 && h < 3) || (h >= 4 && h < 6) || (h >= 7 && h < 9) || h >= 10;
    for (const s of samples) expect(isHeld((s.atMs - T0) / HOUR)).toBe(true);
    // The first instant of each time for which a pool was held is among them.
    for (const h of [0, 4, 7, 10]) expect(samples.some((s) => s.atMs === T0 + h * HOUR)).toBe(true);
  });

  it('are not lost by the price, nor by a machine that dies; an old record tells what had no bid', () => {
    const capped = { bid: 0.05 as unknown as Instance['bid'] };
    const { marketCause: _, ...old } = taken(0, 3);
    const fates = (i: Instance) => [...new Set(drawn(recordIn([i], 12), 20).map((s) => fate(s)[1]))];
    expect(fates(taken(0, 3, { ...capped, marketCause: 'price' }))).toEqual([false]);
    expect(fates(given(0, 3, { endCause: 'lost' }))).toEqual([false]);
    expect(fates(old)).toEqual([true]);
    expect(fates({ ...old, ...capped })).toEqual([false]);
  });

  it('go on with another instance where one is given back, and end with the one that is followed', () => {
    const over = drawn(recordIn([given(0, 4), taken(2, 7)], 12), 100);
    expect(new Set(over.map((s) => JSON.stringify(fate(s))))).toEqual(new Set(['[7,true]']));
    // Of two that are held at once one may be taken and the other not: each is followed by its share.
    const both = drawn(recordIn([taken(0, 4), given(0, 8)], 12), 400).filter((s) => s.atMs < T0 + 4 * HOUR);
    const lost = both.filter((s) => s.lossS < Infinity).length / both.length;
    expect(lost).toBeGreaterThan(0.4);
    expect(lost).toBeLessThan(0.6);
  });

  it('are watched to the end of their range', () => {
    const samples = drawn(recordIn([taken(0, 9), held(10)], 20), 400, { train: 0.4, validation: 0.2 });
    const ends = { train: 8, validation: 12, test: 20, unseen: NaN };
    for (const s of samples) {
      const toH = (s.atMs - T0) / HOUR + s.watchedS / 3600;
      expect(toH).toBeLessThanOrEqual(ends[s.split] + 1e-9);
      if (s.split === 'train') expect(s.lossS).toBe(Infinity);
    }
    expect(new Set(samples.map((s) => s.split))).toEqual(new Set(['train', 'validation', 'test']));
  });

  it('have launches that were refused as news, and know nothing of what comes', () => {
    const [refusal] = livedBy({ ...LIVING, pools: [A], days: 60 }).filter((i) => i.launchedMs === null);
    const refused = (h: number): Instance => ({
      ...(refusal as Instance),
      pool: A,
      requestedMs: at(h),
      endedMs: at(h),
    });
    const early = [refused(0), given(1, 5), refused(6)];
    const [a, b] = [
      [...early, taken(7, 9)],
      [...early, given(7, 20)],
    ].map((list) => drawn(recordIn(list, 30), 0).filter((s) => s.atMs <= T0 + 7 * HOUR));
    expect(a?.map((s) => [...s.features])).toEqual(b?.map((s) => [...s.features]));
    const sinceRefused = CAPACITY_FEATURES.indexOf('sinceRefusedHLog');
    expect(a?.map((s) => Math.expm1(s.features[sinceRefused] ?? NaN))).toEqual([
      expect.closeTo(1, 5),
      expect.closeTo(1, 5),
    ]);
    expect(recordOf([], at(0))).toBe(null);
  });

  it('count capacity that was lost at once as one loss', () => {
    const together = [taken(0, 3), taken(1, 3.02), taken(5, 6), taken(0, 3, { pool: B }), given(0, 3)];
    expect(lossesIn(recordIn(together, 12))).toBe(3);
  });
});

/** P(lost within each horizon) where the hazard is constant in each interval: losses by the time watched. */
function curveOf(samples: readonly Drawn[]): readonly number[] {
  let hazard = 0;
  return LABEL_HORIZONS_S.map((toS, k) => {
    const fromS = LABEL_HORIZONS_S[k - 1] ?? 0;
    const watched = samples.reduce((sum, s) => sum + Math.max(0, Math.min(toS, s.watchedS) - fromS), 0);
    const lost = samples.filter((s) => s.lossS > fromS && s.lossS <= toS).length;
    hazard += (lost / watched) * (toS - fromS);
    return 1 - Math.exp(-hazard);
  });
}

describe('an engine that gives back by chance', () => {
  const MOMENTS = 3000;
  const record = (givenBackAfterH: number | null) =>
    recordIn(livedBy({ ...LIVING, days: 100, givenBackAfterH }), 100 * 24);
  const [patient, hasty] = [record(null), record(1)];
  const truth = LABEL_HORIZONS_S.map((s) => 1 - Math.exp((-0.3 * s) / 3600));
  /**
   * In standard errors, at worst within three hours: samples that share their end are one, and few are lost within
   * minutes.
   */
  const deviations = (samples: readonly Drawn[], of: CapacityRecord): number =>
    Math.max(
      ...curveOf(samples)
        .slice(0, 4)
        .map((p, k) => {
          const lost = samples.filter((s) => s.lossS <= (LABEL_HORIZONS_S[k] ?? 0)).length;
          const hazard = -Math.log1p(-(truth[k] ?? NaN));
          return Math.abs(-Math.log1p(-p) / hazard - 1) / Math.sqrt(1 / lossesIn(of) + 1 / lost);
        }),
    );

  it('tells as much of capacity as one that never does: both find the hazard there is', () => {
    expect(lossesIn(hasty)).toBeGreaterThan(500);
    for (const one of [patient, hasty]) expect(deviations(drawn(one, MOMENTS), one)).toBeLessThan(3);
  });

  it('does not where its samples that were not watched to the end are left out, or counted as kept', () => {
    const samples = drawn(hasty, MOMENTS);
    const leftOut = samples.filter((s) => s.lossS < Infinity || s.watchedS >= 86_400);
    const asKept = samples.map((s) => (s.lossS < Infinity ? s : { ...s, watchedS: 86_400 }));
    expect(deviations(leftOut, hasty)).toBeGreaterThan(8);
    expect(deviations(asKept, hasty)).toBeGreaterThan(8);
  });
});
