import { describe, expect, it } from '@jest/globals';
import { NEVER_INTERRUPTED } from '../../../../lib/domain/forecast.ts';
import { epochMs } from '../../../../lib/kernel/units.ts';
import { forecastTable, tabledForecast, type OutlookForecast } from '../../../../lib/market/forecast/forecast-data.ts';

const FORECAST: OutlookForecast = {
  interruption: () => NEVER_INTERRUPTED,
  expectedPrice: () => null,
  correlation: () => 0,
  outlook: () => null,
};

describe('what people must know of a forecast', () => {
  it('goes with it from the process that made it to the one that decides', () => {
    const refused = 'the model preemption v1 is damaged';
    const byHistory = [{ why: 'there is no price yet', bids: 3 }];
    const origin = { chosen: 'model', refused, version: null, byModel: 0, byHistory };
    const table = structuredClone(forecastTable({ ...FORECAST, origin }, epochMs(0), []));
    expect(tabledForecast(table).origin).toEqual(origin);
  });

  it('is nothing where there is nothing to know', () => {
    const table = forecastTable(FORECAST, epochMs(0), []);
    expect('origin' in table || 'origin' in tabledForecast(table)).toBe(false);
  });
});
