import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, usdPerHour } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { FROM_HISTORY, type ChosenForecast, type LossModel } from '../../../lib/domain/forecast.ts';
import type { PoolView } from '../../../lib/domain/pool.ts';
import { Forecasting } from '../../../lib/cycle/forecast/forecasting.ts';
import { forecastNamed } from '../../../lib/stages/registry.ts';
import { FEATURE_WIDTH } from '../../../lib/market/features/names.ts';
import { CapacityEvidence } from '../../../lib/market/forecast/hazard.ts';
import { pool, view } from '../../support/decision-world.ts';

const HOUR = 3_600_000;
const NOW = 480_000 * HOUR;
const config = schedulerConfig.parse({});
const calm = pool({ type: 'c5.large' });
const silent = pool({ type: 'r5.large', zone: 'us-east-1b' });
const onDemand = pool({ type: 'c5.large', option: 'on-demand' });

/** An hourly report of one price; the silent pool's are two days old. */
const market = {
  pools: () => [calm, silent, onDemand],
  history: (id: string, from: unknown, to: unknown) => {
    const last = id === silent.id ? NOW - 48 * HOUR : NOW;
    const at = Array.from({ length: 168 }, (_, i) => last - (167 - i) * HOUR);
    const [begin, end] = [raw(from as typeof NOW_MS), raw(to as typeof NOW_MS)];
    const low = Math.max(
      0,
      at.findLastIndex((t) => t <= begin),
    );
    const kept = at.slice(low, at.findLastIndex((t) => t < end) + 1);
    return { atMs: Float64Array.from(kept), usdPerHour: new Float64Array(kept.length).fill(0.04) };
  },
};
const NOW_MS = epochMs(NOW);
const pools: readonly PoolView[] = [view(calm, 0.04), view(silent, 0.04), view(onDemand, 0.1)];
const scene = { nowMs: NOW_MS, pools, instances: new Map() };
const model: LossModel = {
  version: 'v7',
  horizonsS: [3600],
  run: async (rows) => ({ kind: 'values', values: new Float32Array(rows.length / FEATURE_WIDTH).fill(0.25) }),
};
const forecastBy = (chosen: ChosenForecast) =>
  new Forecasting({ chosen, config }).of(scene, { market, evidence: new CapacityEvidence() });

describe('the forecast of a decision', () => {
  it('says how it was made: by which version, and which bids history answered and why', async () => {
    const forecast = await forecastBy({ chosen: 'model', model, refused: null });
    // Deltas 0.0001 and 0.01, and the on-demand price, in each pool; 0.1 above the price is beyond it.
    expect(forecast.origin).toEqual({
      chosen: 'model',
      refused: null,
      version: 'v7',
      byModel: 3,
      byHistory: [{ why: 'the price was last reported 48 h ago', bids: 3 }],
    });
    expect(forecast.interruption(calm, usdPerHour(0.04 + 0.01)).reason).toContain('by the model v7');
    expect(forecast.interruption(silent, usdPerHour(0.04 + 0.01)).reason).toContain(
      'not by the model: the price was last',
    );
  });

  it('says of a bid that nobody asked the model about that history answers', async () => {
    const forecast = await forecastBy({ chosen: 'model', model, refused: null });
    expect(forecast.interruption(calm, usdPerHour(0.0789)).reason).toContain('it was not asked about this bid');
  });

  it('of a model that cannot be used is that of history, and says why', async () => {
    const refused = 'the model preemption v7 is damaged';
    const by = await forecastBy({ chosen: 'model', model: null, refused });
    const plain = await forecastBy(FROM_HISTORY);
    const bid = usdPerHour(0.05);
    expect([...by.interruption(calm, bid).pInterrupted]).toEqual([...plain.interruption(calm, bid).pInterrupted]);
    expect(by.origin).toEqual({ chosen: 'model', refused, version: null, byModel: 0, byHistory: [] });
    expect(plain.origin).toEqual({ chosen: 'history', refused: null, version: null, byModel: 0, byHistory: [] });
  });

  it('has what drives a bid, whoever forecasts', async () => {
    for (const chosen of [FROM_HISTORY, { chosen: 'model', model, refused: null }]) {
      const forecast = await forecastBy(chosen);
      expect(forecast.drivers?.(calm, usdPerHour(0.05))).toEqual({
        aboveUsd: expect.closeTo(0.01, 9),
        lastAboveS: null,
        knownS: 167 * 3600,
        range24hUsd: 0,
      });
      expect(forecast.drivers?.(calm, 'uncapped')).toBe(null);
    }
  });
});

describe('a forecast by regime', () => {
  const spiky = pool({ type: 'm5.large' });
  const bid = usdPerHour(0.05);
  const ofBoth: typeof scene = { ...scene, pools: [...pools, view(spiky, 0.04)] };
  let runs = 0;
  const counted: LossModel = { ...model, run: (rows) => (runs++, model.run(rows)) };
  /** One price above on-demand, `spikeAgoH` before now. */
  const marketWith = (spikeAgoH: number) => ({
    pools: () => [calm, silent, spiky, onDemand],
    history: (id: string, from: unknown, to: unknown) => {
      const { atMs, usdPerHour: usd } = market.history(id, from, to);
      const usdOf = (at: number, i: number): number => (at === NOW - spikeAgoH * HOUR ? 9 : (usd[i] ?? NaN));
      return { atMs, usdPerHour: id === spiky.id ? Float64Array.from(atMs, usdOf) : usd };
    },
  });
  const by = (spikeAgoH: number, drift?: string) =>
    new Forecasting({ chosen: { chosen: 'by-regime', byRegime: true, model: counted, refused: null }, config }).of(
      ofBoth,
      {
        market: marketWith(spikeAgoH),
        evidence: new CapacityEvidence(),
        ...(drift !== undefined && { drift: { wrong: (version: string) => (version === 'v7' ? drift : null) } }),
      },
    );

  it('asks the model about pools that were above on-demand within the week, history about others', async () => {
    const forecast = await by(100);
    expect(forecast.interruption(spiky, bid)).toMatchObject({ priceBy: 'v7' });
    expect(forecast.interruption(calm, bid).priceBy).toBeUndefined();
    expect(forecast.interruption(calm, bid).reason).toContain('stayed below on-demand');
    expect(forecast.origin).toEqual({ chosen: 'by-regime', refused: null, version: 'v7', byModel: 3, byHistory: [] });
  });

  it('never asks it where all are calm: that is no fault', async () => {
    runs = 0;
    const forecast = await by(1000);
    expect(runs).toBe(0);
    const plain = await forecastBy(FROM_HISTORY);
    expect(forecast.interruption(calm, bid)).toEqual(plain.interruption(calm, bid));
    expect(forecast.origin).toEqual({ chosen: 'by-regime', refused: null, version: null, byModel: 0, byHistory: [] });
  });

  it('leaves it while its forecasts do not come true, and says so', async () => {
    runs = 0;
    const forecast = await by(100, 'v7 expected 2 losses of late, 9 came');
    expect(runs).toBe(0);
    expect(forecast.interruption(spiky, bid).priceBy).toBeUndefined();
    expect(forecast.interruption(spiky, bid).reason).toContain('expected 2 losses of late, 9 came');
    expect(forecast.origin).toMatchObject({
      version: null,
      byHistory: [{ why: 'v7 expected 2 losses of late, 9 came', bids: 3 }],
    });
  });
});

describe('which forecast is chosen', () => {
  it('is the preset’s, unless the setting names another', () => {
    expect(forecastNamed('preset', 'ebbtide')).toBe('by-regime');
    expect(forecastNamed('preset', 'greedy')).toBe('by-regime');
    expect(forecastNamed('preset', 'uniform-progress')).toBe('history');
    expect(forecastNamed('preset', 'fleet')).toBe('history');
    expect(forecastNamed('preset', 'tributary')).toMatch(/-lstm$/);
    expect(forecastNamed('model', 'tributary')).toBe('model');
    expect(forecastNamed('history', 'tributary')).toBe('history');
    expect(forecastNamed('2026-11-21', 'ebbtide')).toBe('2026-11-21');
  });
});
