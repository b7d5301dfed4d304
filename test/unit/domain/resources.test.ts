/** Every kind of resource counts wherever kinds are compared, added or counted. */
import { describe, expect, it } from '@jest/globals';
import {
  KINDS,
  NO_RESOURCES,
  RESOURCE_KINDS,
  addInto,
  countFits,
  countInVector,
  dominantShare,
  fits,
  fitsFrom,
  fromVector,
  leastOfEach,
  machinesFor,
  minusResources,
  mostOfEach,
  plusResources,
  takeFrom,
  times,
  vector,
} from '../../../lib/domain/resources.ts';

/** 64 of every kind. */
const CAPACITY = fromVector(RESOURCE_KINDS.map(() => 64));
const only = (kind: number, amount: number): readonly number[] =>
  RESOURCE_KINDS.map((_, k) => (k === kind ? amount : 0));

it('names every kind of a resource', () => {
  expect(Object.keys(NO_RESOURCES).sort()).toEqual([...RESOURCE_KINDS].sort());
});

describe.each(RESOURCE_KINDS.map((name, kind) => [name, kind] as const))('%s', (_, kind) => {
  const some = fromVector(only(kind, 32));
  const more = fromVector(only(kind, 65));

  it('is added and taken away', () => {
    expect(vector(plusResources(some, more))).toEqual(only(kind, 97));
    expect(vector(minusResources(more, some))).toEqual(only(kind, 33));
    expect(vector(times(some, 3))).toEqual(only(kind, 96));
    const free = { ...more };
    takeFrom(free, some);
    expect(vector(free)).toEqual(only(kind, 33));
    const rows = new Float64Array(2 * KINDS).fill(1);
    addInto(rows, KINDS, some);
    expect([...rows]).toEqual([...RESOURCE_KINDS.map(() => 1), ...only(kind, 32).map((n) => n + 1)]);
  });

  it('decides what fits, and how often', () => {
    expect([fits(some, CAPACITY), fits(more, CAPACITY)]).toEqual([true, false]);
    const rows = Float64Array.from([...vector(some), ...vector(more)]);
    expect([fitsFrom(rows, 0, CAPACITY), fitsFrom(rows, KINDS, CAPACITY)]).toEqual([true, false]);
    expect([countFits(some, CAPACITY), countFits(more, CAPACITY)]).toEqual([2, 0]);
    expect([some, more].map((need) => countInVector(vector(need), vector(CAPACITY)))).toEqual([2, 0]);
    expect(machinesFor(vector(more), CAPACITY)).toBe(2);
    expect(dominantShare(some, CAPACITY)).toBe(0.5);
  });

  it('has a larger and a smaller amount', () => {
    expect(mostOfEach(some, more)).toEqual(more);
    expect(leastOfEach(some, more)).toEqual(some);
  });
});
