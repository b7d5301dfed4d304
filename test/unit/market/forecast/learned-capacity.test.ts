import { describe, expect, it } from '@jest/globals';
import { epochMs, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import {
  FROM_HISTORY,
  pInterruptedWithin,
  type CapacityModel,
  type ChosenCapacity,
} from '../../../../lib/domain/forecast.ts';
import { poolForecasts } from '../../../../lib/cycle/forecast/pool-forecasts.ts';
import { forecastAtPurchase } from '../../../../lib/cycle/decide/forecast-at-purchase.ts';
import type { Instance } from '../../../../lib/domain/instance.ts';
import type { Market } from '../../../../lib/ports/market.ts';
import { Forecasting } from '../../../../lib/cycle/forecast/forecasting.ts';
import { CAPACITY_FEATURES } from '../../../../lib/market/features/capacity-features.ts';
import { CapacityEvidence } from '../../../../lib/market/forecast/hazard.ts';
import { forecastTable, tabledForecast } from '../../../../lib/market/forecast/forecast-data.ts';
import { pool, view } from '../../../support/decision-world.ts';

const HOUR = 3_600_000;
const NOW = epochMs(480_000 * HOUR);
const config = schedulerConfig.parse({});
const held = pool({ type: 'c5.large' });
const silent = pool({ type: 'c5.xlarge' });
const stranger = pool({ type: 'r5.large' });
const market = {
  pools: () => [held, silent, stranger],
  history: () => ({ atMs: Float64Array.of(480_000 * HOUR - HOUR), usdPerHour: Float64Array.of(0.04) }),
};
const quoting = { ...market, quote: () => usdPerHour(0.04) } as unknown as Market;
const scene = {
  nowMs: NOW,
  pools: [held, silent, stranger].map((p) => view(p, 0.04)),
  instances: new Map(),
};
const evidence = new CapacityEvidence();
for (const p of [held, stranger]) {
  const launchedMs = epochMs(480_000 * HOUR - 3 * HOUR);
  evidence.ended(p.id, { launchedMs, endedMs: epochMs(480_000 * HOUR - HOUR), takenMs: null });
}

/** Says `p` of every row within the hour. */
function model(p: number, over: Partial<CapacityModel> = {}): CapacityModel {
  return {
    version: 'c3',
    horizonsS: [3600],
    pools: new Set([held.id, silent.id]),
    run: async (rows) => ({ kind: 'values', values: new Float32Array(rows.length / CAPACITY_FEATURES.length).fill(p) }),
    ...over,
  };
}
const by = (of: CapacityModel): ChosenCapacity => ({ chosen: 'model', model: of, refused: null });
const forecastBy = (capacity?: ChosenCapacity) =>
  new Forecasting({ chosen: FROM_HISTORY, config, ...(capacity && { capacity }) }).of(scene, { market, evidence });
const withinHour = (curve: Parameters<typeof pInterruptedWithin>[0]): number =>
  pInterruptedWithin(curve, seconds(3600));

describe('a forecast of capacity by a model', () => {
  it('takes the place of observed interruptions, beside the risk of the price', async () => {
    const [trained, plain] = [await forecastBy(by(model(0.25))), await forecastBy()];
    const curve = trained.interruption(held, 'uncapped');
    expect(withinHour(curve)).toBeCloseTo(0.25, 6);
    expect(curve.reason).toBe('no bid to be passed; capacity: by the model c3');
    // With a bid, both are joined as independent: the price's share is what it was.
    const bid = usdPerHour(0.05);
    const price = (f: typeof plain): number =>
      (1 - withinHour(f.interruption(held, bid))) / (1 - withinHour(f.interruption(held, 'uncapped')));
    expect(price(trained)).toBeCloseTo(price(plain), 9);
    expect(price(plain)).toBeLessThan(1);
  });

  it('is not asked about pools that it does not know, or of which nothing was seen, and says so', async () => {
    const [trained, plain] = [await forecastBy(by(model(0.25))), await forecastBy()];
    for (const [of, why] of [
      [silent, 'nothing was seen of it yet'],
      [stranger, 'model c3 was not trained on it'],
    ] as const) {
      const curve = trained.interruption(of, 'uncapped');
      expect([...curve.pInterrupted]).toEqual([...plain.interruption(of, 'uncapped').pInterrupted]);
      expect(curve.reason).toContain(`(not by the model: ${why})`);
    }
    expect(trained.origin?.capacity).toEqual({
      chosen: 'model',
      refused: null,
      version: 'c3',
      byModel: 1,
      byObserved: [
        { why: 'nothing was seen of it yet', pools: 1 },
        { why: 'model c3 was not trained on it', pools: 1 },
      ],
    });
    expect(plain.origin).not.toHaveProperty('capacity');
  });

  it.each([
    ['gives numbers that are no probabilities', model(1.5)],
    ['gives numbers that are not finite', model(0, { run: async () => ({ kind: 'not-finite', row: 0 }) })],
    ['cannot be run: no luck', model(0, { run: async () => ({ kind: 'failed', what: 'no luck' }) })],
  ])('that %s is not used at all', async (why, broken) => {
    const [by_, plain] = [await forecastBy(by(broken)), await forecastBy()];
    const curve = by_.interruption(held, 'uncapped');
    expect([...curve.pInterrupted]).toEqual([...plain.interruption(held, 'uncapped').pInterrupted]);
    expect(curve.reason).toContain(`(not by the model: model c3 ${why})`);
    expect(by_.origin?.capacity).toMatchObject({ version: null, byModel: 0 });
  });

  it('that cannot be opened is observed interruptions, and says why', async () => {
    const refused = 'the model capacity c3 is not the file that its manifest is of';
    const [by_, plain] = [await forecastBy({ chosen: 'c3', model: null, refused }), await forecastBy()];
    expect([...by_.interruption(held, 'uncapped').pInterrupted]).toEqual([
      ...plain.interruption(held, 'uncapped').pInterrupted,
    ]);
    expect(by_.origin?.capacity).toEqual({ chosen: 'c3', refused, version: null, byModel: 0, byObserved: [] });
  });

  it('is told what is held by who asks outside of a decision', async () => {
    const instance = { pool: silent.id, state: 'ready', launchedMs: epochMs(480_000 * HOUR - HOUR) } as Instance;
    const forecasting = new Forecasting({ chosen: FROM_HISTORY, config, capacity: by(model(0.25)) });
    const { pools, origin } = await poolForecasts(
      { forecasting, market: quoting, evidence, held: [instance], config, now: NOW },
      [silent],
    );
    expect(origin?.capacity).toMatchObject({ version: 'c3', byModel: 1, byObserved: [] });
    expect(pools[0]?.bids[0]?.curve.reason).toContain('capacity: by the model c3');
  });

  it('is kept with what is bought by it, beside that of all risks', async () => {
    const bought = { pool: held.id, bid: usdPerHour(0.05) };
    const kept = async (capacity?: ChosenCapacity) => forecastAtPurchase(scene, await forecastBy(capacity), bought);
    const [trained, plain] = [await kept(by(model(0.25))), await kept()];
    const hour = trained?.horizonS.indexOf(3600) ?? NaN;
    expect(trained?.capacity?.by).toBe('c3');
    expect(trained?.capacity?.pInterrupted[hour]).toBeCloseTo(0.25, 4);
    expect(trained?.pInterrupted[hour]).toBeGreaterThan(0.25);
    expect(plain?.capacity?.by).toBe('observed');
    expect(await kept(by(model(0.25, { pools: new Set() })))).toMatchObject({ capacity: { by: 'observed' } });
  });

  it('goes with the forecast to another process', async () => {
    const made = await forecastBy(by(model(0.25)));
    const table = forecastTable(made, NOW, [{ pool: held, bid: 'uncapped' }]);
    const there = tabledForecast(structuredClone(table));
    expect(there.interruption(held, 'uncapped')).toEqual(made.interruption(held, 'uncapped'));
    expect(there.origin).toEqual(made.origin);
    expect(there.capacity?.(held)).toEqual(made.capacity?.(held));
    expect(there.capacity?.(held)?.by).toBe('c3');
  });
});
