import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { bar, dollars, duration, instant, percent, shorten } from '../../../lib/cli/format.ts';

describe('durations', () => {
  it.each([
    [0, '0s'],
    [59.4, '59s'],
    [59.6, '1m 00s'],
    [125, '2m 05s'],
    [3600, '1h 00m'],
    [3 * 3600 + 20 * 60, '3h 20m'],
    [2 * 86_400 + 4 * 3600 + 59 * 60, '2d 4h'],
    [-90, '-1m 30s'],
    [-0.2, '0s'],
  ])('%d s reads %s', (s, text) => expect(duration(s)).toBe(text));
});

describe('money', () => {
  it.each([
    [0, '$0.00'],
    [12.4, '$12.40'],
    [0.0312, '$0.0312'],
    [0.000123, '$0.000123'],
    [-1.5, '-$1.50'],
  ])('%d USD reads %s', (usd, text) => expect(dollars(usd)).toBe(text));
});

it.each([
  [0, '0%'],
  [0.0004, '<0.1%'],
  [0.031, '3.1%'],
  [0.5, '50%'],
  [1, '100%'],
  [-0.0004, '-<0.1%'],
  [-0.5, '-50%'],
])('the fraction %d reads %s', (fraction, text) => expect(percent(fraction)).toBe(text));

it('shows instants in UTC and times that do not exist yet as a dash', () => {
  expect(instant('2026-03-01T12:00:05.123Z')).toBe('2026-03-01 12:00:05');
  expect(instant(null)).toBe('-');
});

it('draws bars of exactly the width that was asked for, whatever the counts', () => {
  fc.assert(
    fc.property(fc.nat(500), fc.nat(500), fc.nat(500), fc.integer({ min: 1, max: 60 }), (done, active, rest, width) => {
      const drawn = bar({ done, active, total: done + active + rest }, width);
      expect(drawn).toHaveLength(width);
      if (rest === 0 && active === 0 && done > 0) expect(drawn).toBe('█'.repeat(width));
    }),
    { seed: 1 },
  );
});

it('never makes text longer, and marks where it cut', () => {
  expect(shorten('abcdef', 4)).toBe('abc…');
  expect(shorten('abcd', 4)).toBe('abcd');
});
