import { describe, expect, it } from '@jest/globals';
import {
  barrier,
  killLnCk,
  killnCk,
  lnCk,
  max,
  min,
  nCk,
  scale,
  sum,
  type Assignment,
  type Expression,
} from '../../../../lib/stages/plan/strl/expression.ts';
import type { Supply } from '../../../../lib/stages/plan/strl/supply.ts';
import { isChosen, unitsOf, valueOf, violations } from '../../../../lib/stages/plan/strl/value.ts';

type Units = Readonly<Record<string, readonly number[]>>;
const assigned = (units: Units): Assignment => new Map(Object.entries(units));

const member = (name: string, atMost: number) => ({ name, atMost, draws: [{ partition: 'p', perUnit: [2] }] });
const leaf = (id: string, k = 4) => ({ id, k, set: [member('m', 3), member('n', 4)], start: 1, duration: 2 });
const a = nCk({ ...leaf('a'), value: 8 });
const b = lnCk({ ...leaf('b'), value: 12 });
const stopA = killnCk({ ...leaf('ka'), cost: 5 });
const stopB = killLnCk({ ...leaf('kb'), cost: 6 });

describe('the value of an assignment', () => {
  it.each<[what: string, e: Expression, units: Units, value: number]>([
    ['all of all or nothing', a, { a: [3, 1] }, 8],
    ['a part of it', a, { a: [3, 0] }, 0],
    ['all but a rounding', a, { a: [3, 1 - 1e-7] }, 8],
    ['a stop of all or nothing', stopA, { ka: [0, 4] }, -5],
    ['a part of that stop', stopA, { ka: [0, 3] }, 0],
    ['a quarter of linear units', b, { b: [0, 1] }, 3],
    ['all linear units', b, { b: [2, 2] }, 12],
    ['half of linear stops', stopB, { kb: [2, 0] }, -3],
    ['the chosen one of a max', max(a, b), { b: [1, 0] }, 3],
    ['a chosen stop of a max', max(stopB, a), { kb: [2, 0] }, -3],
    ['the better of two chosen', max(a, b), { a: [0, 4], b: [1, 0] }, 8],
    ['the better of two chosen, second', max(b, a), { a: [0, 4], b: [1, 0] }, 8],
    ['a max of nothing chosen', max(a, b), {}, 0],
    ['the least of a min', min(a, b), { a: [0, 4], b: [1, 0] }, 3],
    ['a min with one not chosen', min(a, b), { b: [1, 0] }, 0],
    ['a min of nothing', min(), {}, 0],
    ['a sum', sum(a, b, stopB), { a: [0, 4], b: [1, 0], kb: [2, 0] }, 8],
    ['a multiple', scale(3, b), { b: [1, 0] }, 9],
    ['a barrier reached exactly', barrier(3, b), { b: [1, 0] }, 3],
    ['a barrier reached by more', barrier(2, b), { b: [1, 0] }, 2],
    ['a barrier not reached', barrier(4, b), { b: [1, 0] }, 0],
    ['a barrier reached but for a rounding', barrier(3 + 1e-7, b), { b: [1, 0] }, 3 + 1e-7],
  ])('of %s', (_, e, units, value) => {
    expect(valueOf(e, assigned(units))).toBeCloseTo(value, 9);
  });

  it('is the same as by an enumeration of all choices of two small leaves', () => {
    for (let x = 0; x <= 4; x++) {
      for (let y = 0; y <= 4; y++) {
        const of = assigned({ a: [0, x], b: [0, y] });
        const va = x === 4 ? 8 : 0;
        const vb = 3 * y;
        expect(valueOf(sum(a, scale(2, b)), of)).toBe(va + 2 * vb);
        expect(valueOf(min(a, b), of)).toBe(va < vb ? va : vb);
        expect(valueOf(barrier(9, sum(a, b)), of)).toBe(va + vb >= 9 ? 9 : 0);
      }
    }
  });

  it('counts units over the members, and chooses by more than a rounding', () => {
    expect(unitsOf(a, assigned({ a: [3, 1] }))).toBe(4);
    expect(unitsOf(a, assigned({}))).toBe(0);
    expect(isChosen(a, assigned({ a: [0, 1e-6] }))).toBe(false);
    expect(isChosen(a, assigned({ a: [0, 2e-6] }))).toBe(true);
    expect(isChosen(sum(a, b), assigned({ b: [1, 0] }))).toBe(true);
  });
});

describe('what an assignment breaks', () => {
  const supply = (...capacity: number[]): Supply => ({
    slots: capacity.length,
    partitions: [{ id: 'p', renewable: true, kinds: ['u'], capacity: capacity.map((c) => [c]) }],
  });
  const PLENTY = supply(100, 100, 100);

  it.each<[what: string, e: Expression, units: Units, broken: readonly string[]]>([
    ['nothing, where there is nothing', sum(a, b), {}, []],
    ['nothing, where all have all', sum(a, b), { a: [0, 4], b: [2, 2] }, []],
    ['more than asked for', b, { b: [3, 2] }, ['b: 5 of at most 4']],
    ['a part of all or nothing', a, { a: [3, 0] }, ['a: 3 of 4']],
    ['a part of a stop of all or nothing', stopA, { ka: [1, 0] }, ['ka: 1 of 4']],
    ['nothing, by a part of linear units', sum(b, stopB), { b: [1, 0], kb: [1, 0] }, []],
    ['more than a member has', a, { a: [4, 0] }, ['a: 4 of m']],
    ['less than none of a member', b, { b: [-1, 2] }, ['b: -1 of m']],
    ['two chosen of a max', max(a, b), { a: [0, 4], b: [1, 0] }, ['max: 2 children chosen']],
    ['nothing, by one chosen of a max', max(a, b), { b: [1, 0] }, []],
    ['nothing, by two of a sum', sum(a, b), { a: [0, 4], b: [1, 0] }, []],
    [
      'two chosen of a max below others',
      sum(min(max(a, b)), stopB),
      { a: [0, 4], b: [1, 0] },
      ['max: 2 children chosen'],
    ],
    [
      'two of an outer and an inner max',
      max(max(a, b), stopB),
      { a: [0, 4], b: [1, 0], kb: [1, 0] },
      ['max: 2 children chosen', 'max: 2 children chosen'],
    ],
  ])('%s', (_, e, units, broken) => {
    expect(violations(e, PLENTY, assigned(units))).toEqual(broken);
  });

  it('takes no rounding for a breach', () => {
    expect(violations(b, PLENTY, assigned({ b: [-1e-7, 4 + 2e-7] }))).toEqual([]);
    expect(violations(b, PLENTY, assigned({ b: [3 + 1e-7, 0] }))).toEqual([]);
    expect(violations(a, PLENTY, assigned({ a: [0, 4 - 1e-7] }))).toEqual([]);
    expect(violations(a, PLENTY, assigned({ a: [0, 1e-7] }))).toEqual([]);
  });

  it('names the supply that is overdrawn, in the slots of the run', () => {
    // Four units of two each from slot 1 on, two slots long.
    expect(violations(a, supply(0, 8, 8, 0), assigned({ a: [0, 4] }))).toEqual([]);
    expect(violations(a, supply(0, 7, 6, 0), assigned({ a: [0, 4] }))).toEqual([
      'supply_p_u_t1: 8 of 7',
      'supply_p_u_t2: 8 of 6',
    ]);
  });

  it('counts what stops give back', () => {
    const both = sum(a, stopB);
    expect(violations(both, supply(0, 4, 4), assigned({ a: [0, 4], kb: [2, 0] }))).toEqual([]);
    expect(violations(both, supply(0, 4, 5), assigned({ a: [0, 4], kb: [1, 0] }))).toEqual([
      'supply_p_u_t1: 6 of 4',
      'supply_p_u_t2: 6 of 5',
    ]);
  });

  it('takes a rounding of a large supply for none, in proportion', () => {
    const large = lnCk({ ...leaf('l', 2e6), set: [member('m', 2e6)], value: 1 });
    const units = (over: number) => violations(large, supply(0, 2e6, 1e9), assigned({ l: [1e6 + over] }));
    expect(units(0.5)).toEqual([]);
    expect(units(2)).toEqual(['supply_p_u_t1: 2000004 of 2000000']);
    expect(violations(b, supply(0, 0, 9), assigned({ b: [4e-7, 0] }))).toEqual([]);
    expect(violations(b, supply(0, 0, 9), assigned({ b: [0.5, 0] }))).toEqual(['supply_p_u_t1: 1 of 0']);
  });
});
