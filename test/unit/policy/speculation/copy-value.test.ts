import { describe, expect, it } from '@jest/globals';
import { epochMs, seconds } from '../../../../lib/kernel/units.ts';
import { certain, distribution } from '../../../../lib/domain/distribution.ts';
import { copyValue, type CopyTerms } from '../../../../lib/policy/speculation/copy-value.ts';

const NOW = epochMs(0);
const flat = { points: [{ atMs: NOW, usd: 1 }] };
const dueIn = (s: number, usd: number) => ({
  points: [
    { atMs: epochMs(1000 * s), usd },
    { atMs: epochMs(1000 * s + 1), usd: 0 },
  ],
});
const terms: CopyTerms = {
  nowMs: NOW,
  curve: flat,
  ranS: 1000,
  beta: 1.5,
  anew: certain(seconds(100)),
  chance: 1,
  usdPerS: 0.001,
  copyUsdPerS: 0.001,
  startS: 0,
  leastS: 0,
};

describe('worth of a copy', () => {
  it('is what is saved of the slow attempt, less the copy, where an earlier end brings nothing', () => {
    const { gainUsd, costUsd, leftS, withS } = copyValue(terms);
    expect(withS).toBeLessThanOrEqual(100);
    expect(costUsd).toBeCloseTo(0.001 * withS, 9);
    expect(gainUsd).toBeCloseTo(0.001 * (leftS - 2 * withS), 9);
    expect(gainUsd).toBeGreaterThan(0);
  });

  it('is below zero where the task simply has more to do: its copy is paid to the end', () => {
    const { gainUsd, costUsd, leftS, withS } = copyValue({ ...terms, chance: 0 });
    expect(withS).toBeCloseTo(leftS, 9);
    expect(gainUsd).toBeCloseTo(-costUsd, 9);
  });

  it('is below zero where a copy takes longer than what is left', () => {
    expect(copyValue({ ...terms, ranS: 10, anew: certain(seconds(10_000)) }).gainUsd).toBeLessThan(0);
  });

  it('grows with a deadline that only the copy meets, by at most what the deadline is worth', () => {
    const dear = { ...terms, ranS: 100, copyUsdPerS: 0.05 };
    const without = copyValue(dear).gainUsd;
    const withDeadline = copyValue({ ...dear, curve: dueIn(150, 50) }).gainUsd;
    expect(without).toBeLessThan(0);
    expect(withDeadline).toBeGreaterThan(0);
    expect(withDeadline - without).toBeLessThanOrEqual(50);
    expect(copyValue({ ...dear, curve: dueIn(50, 50) }).gainUsd).toBeLessThan(withDeadline);
  });

  it('counts the start of an instance and the least time that is charged', () => {
    const base = copyValue({ ...terms, leastS: 60 });
    expect(copyValue({ ...terms, startS: 300 }).withS).toBeGreaterThan(base.withS);
    expect(copyValue({ ...terms, anew: certain(seconds(1)), leastS: 60 }).costUsd).toBeCloseTo(0.06, 9);
  });

  it('stays finite for a tail without a mean and for tasks of no time', () => {
    const anew = distribution([
      [0, 1],
      [1e7, 1],
    ]);
    for (const beta of [0.1, 1, 1.01, 5])
      for (const ranS of [0, 1e-9, 1e7]) {
        const value = copyValue({ ...terms, beta, ranS, anew, curve: dueIn(10, 1) });
        expect(Object.values(value).every(Number.isFinite)).toBe(true);
      }
  });
});
