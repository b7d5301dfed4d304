import { describe, expect, it } from '@jest/globals';
import { deltaRung, HORIZONS_S, PriceSurvival, rungDelta } from '../../../../lib/market/forecast/survival.ts';

const HOUR = 3_600_000;
const START = 1_700_000_000_000 - (1_700_000_000_000 % HOUR);
const WEEK = 7 * 24 * HOUR;

const steps = (list: readonly (readonly [hours: number, usd: number])[]) => ({
  atMs: Float64Array.from(list, ([h]) => START + h * HOUR),
  usdPerHour: Float64Array.from(list, ([, usd]) => usd),
});

const at = (p: Float64Array | undefined, horizonS: number): number | undefined => p?.[HORIZONS_S.indexOf(horizonS)];

describe('survival of hypothetical bids', () => {
  it('is certain while the price never moves', () => {
    const s = new PriceSurvival(0.01, WEEK);
    s.advance(steps([[0, 0.05]]), START + WEEK);
    expect([...(s.curve()?.p ?? [])].every((p) => p === 0)).toBe(true);
    expect(s.curve()?.days).toBe(6);
  });

  it('says nothing of less than six watched hours', () => {
    const s = new PriceSurvival(0.01, WEEK);
    s.advance(steps([[0, 0.05]]), START + 5 * HOUR);
    expect(s.curve()).toBeNull();
  });

  it('has only the horizons that history is long enough for', () => {
    const s = new PriceSurvival(0.01, WEEK);
    s.advance(steps([[0, 0.05]]), START + 10 * HOUR);
    // Six watched hours within ten leave room for horizons up to four hours.
    expect(s.curve()?.p.length).toBe(HORIZONS_S.indexOf(4 * 3600) + 1);
  });

  it('takes the median of days: a spike on one day of six does not count, the mean does', () => {
    const list: [number, number][] = [[0, 0.05]];
    for (let h = 0; h < 24; h += 2) list.push([24 + h + 1, 0.5], [24 + h + 1.5, 0.05]);
    const s = new PriceSurvival(0.01, WEEK);
    s.advance(steps(list), START + WEEK);
    expect(at(s.curve()?.p, 3600)).toBe(0);
    expect(at(s.curve('mean')?.p, 3600)).toBeGreaterThan(0.05);
  });

  it('loses a bid when the price rises above it, not when it reaches it', () => {
    const list: [number, number][] = [];
    for (let h = 0; h < 168; h++) list.push([h, 0.25], [h + 0.5, 0.5]);
    const reached = new PriceSurvival(0.25, WEEK);
    reached.advance(steps(list), START + WEEK);
    expect(at(reached.curve()?.p, 3600)).toBe(0);
    const passed = new PriceSurvival(0.2499, WEEK);
    passed.advance(steps(list), START + WEEK);
    expect(at(passed.curve()?.p, 3600)).toBeCloseTo(0.5, 6);
  });

  it('loses every bid within the hour when the price doubles every hour and halves at once', () => {
    const list: [number, number][] = [];
    for (let h = 0; h < 168; h++) list.push([h, 0.05], [h + 0.5, 0.1]);
    const s = new PriceSurvival(0.01, WEEK);
    s.advance(steps(list), START + WEEK);
    // Half of the time the price is low and passed within 30 minutes; bids at the high price are never passed.
    expect(at(s.curve()?.p, 3600)).toBeCloseTo(0.5, 6);
    expect(at(s.curve()?.p, 900)).toBeCloseTo(0.25, 6);
  });
});

describe('ladder of deltas', () => {
  it.each([0.0001, 0.001, 0.01, 0.1, 1])('holds %d exactly', (delta) => {
    expect(rungDelta(deltaRung(delta))).toBeCloseTo(delta, 12);
  });

  it('rounds down by less than a third and takes small deltas for none', () => {
    for (let delta = 0.0001; delta < 5; delta *= 1.07) {
      const rung = rungDelta(deltaRung(delta));
      expect(rung).toBeLessThanOrEqual(delta * (1 + 1e-6));
      expect(rung).toBeGreaterThan(delta / 1.34);
    }
    expect(rungDelta(deltaRung(0.00005))).toBe(0);
    expect(rungDelta(deltaRung(0))).toBe(0);
  });
});
