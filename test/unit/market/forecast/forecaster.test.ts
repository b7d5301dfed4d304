import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { pInterruptedWithin } from '../../../../lib/domain/forecast.ts';
import { MarketForecaster } from '../../../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence, survivesCapacity } from '../../../../lib/market/forecast/hazard.ts';
import { pool } from '../../../support/decision-world.ts';

const HOUR = 3_600_000;
const T0 = 472_000 * HOUR;
const config = { priceHistoryS: 7 * 86_400, hazardPriorPerHour: 0.03, hazardPriorHours: 20 };
const spot = pool({ onDemand: 0.1 });

/** Low for half an hour, high for half an hour, all week. */
const atMs: number[] = [];
const usd: number[] = [];
for (let h = 0; h < 168; h++) {
  atMs.push(T0 + h * HOUR, T0 + (h + 0.5) * HOUR);
  usd.push(0.03, 0.05);
}

function forecaster(from = 0) {
  return new MarketForecaster({
    config,
    history: (_, begin, end) => {
      const low = Math.max(
        0,
        atMs.findLastIndex((t) => t <= raw(begin)),
      );
      const high = atMs.findLastIndex((t) => t < raw(end)) + 1;
      return {
        atMs: Float64Array.from(atMs.slice(Math.max(low, from), high)),
        usdPerHour: Float64Array.from(usd.slice(Math.max(low, from), high)),
      };
    },
  });
}
const NOW = epochMs(T0 + 167 * HOUR);
const none = new CapacityEvidence();
const hour = seconds(3600);

describe('market forecast', () => {
  it('never interrupts on-demand capacity', () => {
    const market = forecaster().at(NOW, none);
    expect(pInterruptedWithin(market.interruption(pool({ option: 'on-demand' }), 'uncapped'), hour)).toBe(0);
  });

  it('leaves an uncapped bid to capacity alone', () => {
    const market = forecaster().at(NOW, none);
    const capacity = 1 - survivesCapacity(none.posterior(spot.id, config), hour);
    expect(pInterruptedWithin(market.interruption(spot, 'uncapped'), hour)).toBeCloseTo(capacity, 12);
  });

  it('combines price and capacity as independent risks', () => {
    const evidence = new CapacityEvidence();
    evidence.observe(spot.id, seconds(40 * 3600), 10);
    const market = forecaster().at(NOW, evidence);
    const survives = survivesCapacity(evidence.posterior(spot.id, config), hour);
    const p = pInterruptedWithin(market.interruption(spot, usdPerHour(0.03 + 0.01)), hour);
    expect(p).toBeCloseTo(1 - survives * 0.5, 5);
    expect(pInterruptedWithin(market.interruption(spot, usdPerHour(0.06)), hour)).toBeCloseTo(1 - survives, 12);
  });

  it('gives a bid below the price no time at all', () => {
    const market = forecaster().at(NOW, none);
    expect(pInterruptedWithin(market.interruption(spot, usdPerHour(0.02)), seconds(60))).toBe(1);
  });

  it('falls back to a prior that is safer the higher the bid, and says so', () => {
    const young = forecaster(atMs.length - 4).at(epochMs(T0 + 167.2 * HOUR), none);
    const low = young.interruption(spot, usdPerHour(0.0305));
    const high = young.interruption(spot, usdPerHour(0.1));
    expect(low.reason).toContain('too little history');
    expect(pInterruptedWithin(low, hour)).toBeGreaterThan(pInterruptedWithin(high, hour));
    expect(pInterruptedWithin(high, hour)).toBeGreaterThan(
      pInterruptedWithin(young.interruption(spot, 'uncapped'), hour),
    );
  });

  it('expects the price to go back to its median and knows the mean', () => {
    const market = forecaster().at(NOW, none);
    expect(raw(market.expectedPrice(spot, NOW) ?? usdPerHour(NaN))).toBeCloseTo(0.03, 12);
    expect(raw(market.meanPrice?.(spot) ?? usdPerHour(NaN))).toBeCloseTo(0.04, 3);
    expect(market.expectedPrice(pool({ option: 'on-demand', onDemand: 0.3 }), NOW)).toBe(0.3);
    expect(
      forecaster()
        .at(epochMs(T0 - HOUR), none)
        .expectedPrice(spot, NOW),
    ).toBeNull();
  });

  it('answers the same after a restart as after a week of small steps, and after time went back', () => {
    const lived = forecaster();
    for (let t = T0 + HOUR; t <= raw(NOW); t += 7 * 60_000) {
      lived.at(epochMs(t), none).interruption(spot, usdPerHour(0.04));
      if (t > raw(NOW) - 3 * HOUR) break;
    }
    const bid = usdPerHour(0.04);
    const p = lived.at(NOW, none).interruption(spot, bid).pInterrupted;
    const fresh = forecaster().at(NOW, none).interruption(spot, bid).pInterrupted;
    p.forEach((x, i) => expect(x).toBeCloseTo(fresh[i] ?? NaN, 5));
    const earlier = epochMs(T0 + 90 * HOUR);
    expect(lived.at(earlier, none).interruption(spot, bid).pInterrupted).toEqual(
      forecaster().at(earlier, none).interruption(spot, bid).pInterrupted,
    );
  });
});
