import { describe, expect, it } from '@jest/globals';
import { windowEndMs } from '../../../../lib/stages/scale/window.ts';
import type { Instance } from '../../../../lib/domain/instance.ts';
import type { PurchaseOption } from '../../../../lib/domain/pool.ts';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';
import { instance as anInstance, pool as aPool } from '../../../support/builders.ts';

const LAUNCHED = 1_000_000_000;
const MINUTE = 60_000;

const endMin = (
  of: { option?: PurchaseOption; ageMin: number; state?: Instance['state']; launched?: boolean },
  rules: { billing: 'per-second' | 'per-hour'; refundRule: 'first-hour' | 'none' },
): number | null => {
  const pool = { ...aPool(), option: of.option ?? 'spot' };
  const launchedMs = of.launched === false ? null : epochMs(LAUNCHED);
  const instance = { ...anInstance(), state: of.state ?? 'ready', launchedMs };
  const end = windowEndMs({ instance, pool }, epochMs(LAUNCHED + of.ageMin * MINUTE), rules);
  return end === null ? null : (raw(end) - LAUNCHED) / MINUTE;
};

describe('the window of an allocation', () => {
  const refunded = { billing: 'per-second', refundRule: 'first-hour' } as const;
  const hourly = { billing: 'per-hour', refundRule: 'none' } as const;

  it('is the first hour where an interruption in it is free', () => {
    expect([0, 59.9, 60, 61, 500].map((ageMin) => endMin({ ageMin }, refunded))).toEqual([60, 60, null, null, null]);
    expect(endMin({ ageMin: 5, option: 'on-demand' }, refunded)).toBeNull();
    expect(endMin({ ageMin: 5 }, { ...refunded, refundRule: 'none' })).toBeNull();
  });

  it('is each started hour where hours are billed, however it was bought', () => {
    expect([0, 59, 60, 150].map((ageMin) => endMin({ ageMin }, hourly))).toEqual([60, 60, 120, 180]);
    expect(endMin({ ageMin: 5, option: 'on-demand' }, hourly)).toBe(60);
  });

  it('ends for nobody who is not there yet or is going', () => {
    expect(endMin({ ageMin: 5, launched: false }, refunded)).toBeNull();
    for (const state of ['warned', 'releasing', 'ended', 'requested'] as const)
      expect(endMin({ ageMin: 5, state }, hourly)).toBeNull();
  });
});
