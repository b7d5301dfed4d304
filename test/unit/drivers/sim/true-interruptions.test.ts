import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { pInterruptedWithin } from '../../../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../../../lib/domain/forecasts.ts';
import { epochMs, plus, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { capacityOf } from '../../../../lib/market/capacity-truth.ts';
import { withTrueInterruptions } from '../../../../lib/drivers/sim/true-interruptions.ts';
import { pool } from '../../../support/builders.ts';
import { onOffMarket, START } from '../../../support/on-off-market.ts';

const HOUR_S = 3600;

describe('a forecast with the truth about interruptions', () => {
  // There is capacity for two hours, and again from the tenth to the twelfth.
  const trace = onOffMarket([
    [0, 2],
    [10, 12],
  ]);
  const truth = capacityOf(trace, schedulerConfig.parse({}));
  const spot = pool({ option: 'spot', zone: 'test-1a' });
  const beneath = {
    interruption: () => ({ horizonS: Float64Array.of(60), pInterrupted: Float64Array.of(0.5), reason: 'a guess' }),
    expectedPrice: () => usdPerHour(0.25),
  } as unknown as MarketForecast;
  const at = (hours: number) => withTrueInterruptions(beneath, truth, plus(epochMs(START), seconds(hours * HOUR_S)));

  it('says when an instance that is bought now is warned, to a second', () => {
    for (const [now, end] of [
      [0.5, 2],
      [11, 12],
    ] as const) {
      const curve = at(now).interruption(spot, 'uncapped');
      // EC2 gives notice of two minutes.
      const leftS = (end - now) * HOUR_S;
      expect(pInterruptedWithin(curve, seconds(leftS - 125))).toBe(0);
      expect(pInterruptedWithin(curve, seconds(leftS + 1))).toBe(1);
    }
  });

  it('says nothing else: prices are forecast as they were, and on-demand capacity is not taken', () => {
    expect(at(0.5).expectedPrice(spot, epochMs(START))).toBe(0.25);
    const kept = at(0.5).interruption(pool({ option: 'on-demand', zone: 'test-1a' }), 'uncapped');
    expect(pInterruptedWithin(kept, seconds(48 * HOUR_S))).toBe(0);
  });
});
