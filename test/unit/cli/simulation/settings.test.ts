import { describe, expect, it } from '@jest/globals';
import { configOf } from '../../../../lib/cli/simulation/compose-simulation.ts';
import { smallMarket } from '../../../support/generated-market.ts';

describe('settings of a simulation', () => {
  const presets = { mine: { extends: 'ebbtide', settings: { turnoverS: 3, slotS: 60 } } };
  const under = (preset: string) =>
    configOf({ preset, config: { presets, slotS: 300 }, setupS: 0, minGapS: 90 }, smallMarket(1).trace);

  it('are those of its preset before those that are given, and those before what follows from its speed', () => {
    expect(under('mine')).toMatchObject({ turnoverS: 3, slotS: 60 });
    expect(under('ebbtide')).toMatchObject({ turnoverS: 90, slotS: 300 });
  });

  it('are as given for the oracle, which has none', () => {
    expect(under('oracle')).toEqual(under('ebbtide'));
  });
});
