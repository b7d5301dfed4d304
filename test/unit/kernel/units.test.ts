/** Quantities: what calculates with them, and what the compiler refuses. */
import { expect, it } from '@jest/globals';
import {
  add,
  ascending,
  atLeastZero,
  between,
  cost,
  descending,
  epochMs,
  hoursIn,
  isoOf,
  isPositive,
  isZero,
  least,
  lt,
  minus,
  most,
  msBetween,
  plus,
  ratio,
  rawOrNull,
  same,
  seconds,
  secondsBetween,
  sub,
  usd,
  usdPerHour,
  vcpusIn,
  milliCpu,
} from '../../../lib/kernel/units.ts';

const NOON = epochMs(Date.UTC(2026, 2, 1, 12));

it('moves instants by durations, and back', () => {
  const later = plus(NOON, seconds(90));
  expect([between(NOON, later), secondsBetween(later, NOON), msBetween(NOON, later)]).toEqual([90, -90, 90_000]);
  expect(same(minus(later, seconds(90)), NOON)).toBe(true);
  expect(isoOf(later)).toBe('2026-03-01T12:01:30.000Z');
});

it('refuses an instant that no date holds', () => {
  expect(() => isoOf(epochMs(Infinity))).toThrow(RangeError);
});

it('sorts instants and amounts both ways', () => {
  const [a, b, c] = [seconds(1), seconds(20), seconds(3)];
  expect([a, b, c].sort(ascending)).toEqual([1, 3, 20]);
  expect([a, b, c].sort(descending)).toEqual([20, 3, 1]);
  expect([most(a, b), least(a, b)]).toEqual([20, 1]);
});

it('knows the sign of an amount', () => {
  const amounts = [seconds(-2), seconds(0), seconds(2)];
  expect(amounts.map(isPositive)).toEqual([false, false, true]);
  expect(amounts.map(isZero)).toEqual([false, true, false]);
  expect(amounts.map(atLeastZero)).toEqual([0, 0, 2]);
});

it('gives plain numbers in the units that people read', () => {
  expect([hoursIn(seconds(5400)), vcpusIn(milliCpu(2500))]).toEqual([1.5, 2.5]);
  expect([rawOrNull(usd(4)), rawOrNull(null)]).toEqual([4, null]);
});

it('charges a rate for a time', () => {
  expect(cost(usdPerHour(0.4), seconds(5400))).toBeCloseTo(0.6, 12);
  expect(ratio(usd(1), usd(4))).toBe(0.25);
});

it('does not mix units', () => {
  // @ts-expect-error: instants do not add.
  add(NOON, NOON);
  // @ts-expect-error: the difference of instants is a duration.
  sub(NOON, NOON);
  // @ts-expect-error: seconds and dollars have no sum.
  add(seconds(1), usd(1));
  // @ts-expect-error: seconds are not dollars.
  lt(seconds(1), usd(1));
  // @ts-expect-error: an instant is no duration.
  most(NOON, seconds(1));
  // @ts-expect-error: an instant and a duration have no order.
  ascending(NOON, seconds(1));
  // @ts-expect-error: an instant has no sign.
  isPositive(NOON);
  // @ts-expect-error: instants have no ratio.
  ratio(NOON, NOON);
  // @ts-expect-error: dollars are no time.
  hoursIn(usd(1));
  // @ts-expect-error: a quantity is no number.
  const plain: number = seconds(1);
  expect(plain).toBe(1);
});
