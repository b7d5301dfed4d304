import { describe, expect, it } from '@jest/globals';
import { seconds } from '../../../../lib/kernel/units.ts';
import { pInterruptedWithin } from '../../../../lib/domain/forecast.ts';
import { Doubles } from '../../../../lib/domain/distribution.ts';
import { readCurve, tabulate } from '../../../../lib/stages/appraise/curve-table.ts';
import { curve } from '../../../support/decision-world.ts';

const curves = {
  rising: curve([
    [60, 0.1],
    [600, 0.2],
    [3600, 0.7],
  ]),
  never: curve([[3600, 0]]),
  certain: curve([
    [60, 0.5],
    [120, 1],
  ]),
};

describe.each(Object.entries(curves))('tabulated curve: %s', (_, c) => {
  const table = tabulate(c, new Doubles());
  const read = (s: number) => {
    const out = { lost: NaN, aliveS: NaN };
    readCurve(table, s, out);
    return out;
  };

  it.each([0, 1, 59, 60, 61, 599, 600, 3000, 3600, 5000, 40_000])('reads as the contract does at %d s', (s) => {
    expect(read(s).lost).toBeCloseTo(pInterruptedWithin(c, seconds(s)), 12);
  });

  it('reads ascending times alike from where it stopped', () => {
    const times = [0, 1, 59, 60, 60, 61, 599, 600, 3000, 3600, 5000, 40_000];
    let knot = 1;
    const onward = times.map((s) => {
      const out = { lost: NaN, aliveS: NaN };
      knot = readCurve(table, s, out, knot);
      return out;
    });
    expect(onward).toEqual(times.map(read));
  });

  it.each([30, 60, 700, 3600, 9000])('integrates what survives up to %d s', (s) => {
    let sum = 0;
    const n = 20_000;
    for (let i = 0; i < n; i++) sum += (1 - pInterruptedWithin(c, seconds(((i + 0.5) * s) / n))) * (s / n);
    expect(read(s).aliveS).toBeCloseTo(sum, 2);
  });
});
