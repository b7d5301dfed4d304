import { describe, expect, it } from '@jest/globals';
import { poolId } from '../../../../lib/kernel/ids.ts';
import { epochMs } from '../../../../lib/kernel/units.ts';
import { CAPACITY_FEATURES, CapacityNews, heldSince } from '../../../../lib/market/features/capacity-features.ts';
import { CapacityEvidence } from '../../../../lib/market/forecast/hazard.ts';

const HOUR = 3_600_000;
const T0 = Date.UTC(2026, 0, 5);
const at = (hours: number): number => T0 + hours * HOUR;
const large = poolId('c5.large/us-east-1a/spot');
const xlarge = poolId('c5.xlarge/us-east-1a/spot');
const elsewhere = poolId('c5.large/us-east-1b/spot');
const stranger = poolId('m5.large/us-east-1a/spot');
type Name =
  | `${'upShare' | 'lossesPerHour'}6h`
  | `${'seen6h' | 'upForH' | 'sinceUpH' | 'sinceLossH' | 'sinceRefusedH' | 'lastOutageH' | 'knownH'}Log`
  | `${'zone' | 'family'}${'UpShare' | 'LossesPerHour'}6h`;

/** The features of a pool by their names. */
function featuresOf(
  news: CapacityNews,
  nowH: number,
  held: ReadonlyMap<typeof large, number> = new Map(),
  pool = large,
) {
  const row = news.at(at(nowH), held).features(pool);
  if (row === null) throw new Error('it has no features');
  expect(row).toHaveLength(CAPACITY_FEATURES.length);
  return Object.fromEntries(CAPACITY_FEATURES.map((name, i) => [name, row[i] ?? NaN])) as Record<Name, number>;
}
const stretch = (fromH: number, toH: number, isTaken = false) => ({ fromMs: at(fromH), toMs: at(toH), isTaken });

describe('features of capacity', () => {
  it('are none of a pool of which nothing was seen', () => {
    const news = new CapacityNews();
    news.held(xlarge, stretch(0, 1));
    expect(news.at(at(2), new Map()).features(large)).toBe(null);
  });

  it('weigh what was seen by exponential windows', () => {
    const news = new CapacityNews();
    news.held(large, stretch(0, 2, true));
    news.refused(large, at(3));
    const f = featuresOf(news, 4);
    // Up from 4 h to 2 h ago, a refusal of 5 minutes and of one hour ago; a loss two hours ago.
    const upH = 6 * (Math.exp(-2 / 6) - Math.exp(-4 / 6));
    const refusedH = (5 / 60) * Math.exp(-1 / 6);
    expect(f.upShare6h).toBeCloseTo(upH / (upH + refusedH), 6);
    expect(f.lossesPerHour6h).toBeCloseTo(Math.exp(-2 / 6) / (upH + 1), 6);
    expect(f.seen6hLog).toBeCloseTo(Math.log(1 + upH + refusedH), 6);
    expect(f.sinceLossHLog).toBeCloseTo(Math.log(3), 6);
    expect(f.sinceUpHLog).toBeCloseTo(Math.log(3), 6);
    expect(f.sinceRefusedHLog).toBeCloseTo(Math.log(2), 6);
    expect(f.knownHLog).toBeCloseTo(Math.log(5), 6);
    expect([f.upForHLog, f.lastOutageHLog]).toEqual([-1, -1]);
  });

  it('tell for how long a pool has been up, and how long its last outage was', () => {
    const news = new CapacityNews();
    news.held(large, stretch(0, 2, true));
    news.refused(large, at(3));
    const held = new Map([[large, at(5)]]);
    const f = featuresOf(news, 9, held);
    expect(f.upForHLog).toBeCloseTo(Math.log(5), 6);
    expect(f.sinceUpHLog).toBe(0);
    expect(f.lastOutageHLog).toBeCloseTo(Math.log(4), 6);
    // Looking changes nothing.
    expect(featuresOf(news, 9, held)).toEqual(f);
  });

  it('are of the pool, not of how many instances are held in it', () => {
    const [one, many] = [new CapacityNews(), new CapacityNews()];
    one.held(large, stretch(0, 6, true));
    for (const [fromH, toH] of [
      [1, 6],
      [0, 6],
      [2, 4],
      [0.5, 5.9999],
    ] as const) {
      many.held(large, stretch(fromH, toH, toH === 6));
    }
    for (const news of [one, many]) news.refused(large, at(6.2));
    many.refused(large, at(6.2));
    const [a, b] = [featuresOf(one, 7), featuresOf(many, 7)];
    expect(Object.keys(a)).toHaveLength(CAPACITY_FEATURES.length);
    for (const name of Object.keys(a) as Name[]) expect(b[name]).toBeCloseTo(a[name], 5);
  });

  it('see neighbours in the zone and in the family, and not the pool itself among them', () => {
    const news = new CapacityNews();
    news.held(large, stretch(0, 2, true));
    expect(featuresOf(news, 4)).toMatchObject({ zoneUpShare6h: -1, zoneLossesPerHour6h: 0, familyUpShare6h: -1 });
    news.refused(stranger, at(4));
    expect(featuresOf(news, 4)).toMatchObject({ zoneUpShare6h: 0, familyUpShare6h: -1 });
    news.held(elsewhere, stretch(3, 4));
    expect(featuresOf(news, 4)).toMatchObject({ zoneUpShare6h: 0, familyUpShare6h: 1 });
    news.held(xlarge, stretch(3, 4, true));
    const f = featuresOf(news, 4);
    expect(f.zoneUpShare6h).toBeGreaterThan(0);
    expect(f.familyLossesPerHour6h).toBeGreaterThan(0);
  });

  it('are the same after a restart', () => {
    const evidence = new CapacityEvidence();
    const ended = { launchedMs: epochMs(at(0)), endedMs: epochMs(at(2)) };
    evidence.ended(large, { ...ended, takenMs: epochMs(at(1.97)) });
    evidence.ended(xlarge, { ...ended, takenMs: null });
    evidence.refused(large, epochMs(at(2.5)));
    const back = CapacityEvidence.fromMemory(evidence.takeDirty());
    expect(featuresOf(back.news, 3)).toEqual(featuresOf(evidence.news, 3));
    // Rows of earlier versions, and damaged ones, have none; what they observed counts all the same.
    const old = CapacityEvidence.fromMemory(
      new Map([[`hazard/${large}`, '{"exposureS":3600,"interruptions":1,"news":{"upH":[1]}}']]),
    );
    expect(old.news.at(at(3), new Map()).features(large)).toBe(null);
    expect(old.of(large)).toEqual({ exposureS: 3600, interruptions: 1 });
  });

  it('count on instances that were launched and stay', () => {
    const instance = (state: 'ready' | 'warned' | 'requested', launchedH: number | null) => ({
      pool: large,
      state,
      launchedMs: launchedH === null ? null : epochMs(at(launchedH)),
    });
    expect(heldSince([instance('ready', 2), instance('ready', 1), instance('warned', 0)])).toEqual(
      new Map([[large, at(1)]]),
    );
    expect(heldSince([instance('warned', 0), instance('requested', null)])).toEqual(new Map());
  });
});
