import { describe, expect, it } from '@jest/globals';
import { compile } from '../../../../lib/stages/plan/milp/compile.ts';
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
  type Expression,
  type Member,
} from '../../../../lib/stages/plan/strl/expression.ts';
import type { Supply } from '../../../../lib/stages/plan/strl/supply.ts';

/** Whole programs, compared with ones written by hand. */
const INF = Infinity;

const supplied = (capacity: readonly (readonly number[])[], kinds: readonly string[]): Supply => ({
  slots: capacity.length,
  partitions: [{ id: 'a', renewable: true, kinds, capacity }],
});
/** So much that no supply row can bind. */
const PLENTY = supplied([[1e6], [1e6], [1e6]], ['u']);

const member = (name: string, atMost: number, perUnit: readonly number[] = [1]): Member => ({
  name,
  atMost,
  draws: [{ partition: 'a', perUnit }],
});
const leaf = (id: string, k: number, set: readonly Member[] = [member('m', k)], start = 0) => ({
  id,
  k,
  set,
  start,
  duration: 1,
});
/** One unit of one member. */
const unit = (id: string, value: number, start = 0) => nCk({ ...leaf(id, 1, [member('m', 1)], start), value });
const kill = (id: string, cost: number) => killnCk({ ...leaf(id, 1), cost });

type Column = readonly [name: string, lower: number, upper: number, kind: 'integer' | 'continuous', objective: number];
type Row = readonly [name: string, lower: number, upper: number, terms: Readonly<Record<string, number>>];

function program(e: Expression, supply: Supply = PLENTY, integerThrough = INF) {
  const { milp } = compile(e, supply, { name: 'by hand', integerThrough });
  const columns = Array.from({ length: milp.columns }, (_, c): Column => [
    milp.columnName(c),
    milp.columnLower[c] ?? NaN,
    milp.columnUpper[c] ?? NaN,
    milp.integer[c] === 1 ? 'integer' : 'continuous',
    milp.objective[c] ?? NaN,
  ]);
  const rows = Array.from({ length: milp.rows }, (_, r): Row => {
    const entries = Array.from(milp.columnIndex.subarray(milp.rowStart[r], milp.rowStart[r + 1]), (c, i) => [
      milp.columnName(c),
      milp.coefficient[(milp.rowStart[r] ?? 0) + i] ?? NaN,
    ]);
    // A column occurs once in a row.
    expect(new Set(entries.map(([name]) => name)).size).toBe(entries.length);
    return [milp.rowName(r), milp.rowLower[r] ?? NaN, milp.rowUpper[r] ?? NaN, Object.fromEntries(entries)];
  });
  return { columns, rows };
}

const I = (name: string, objective: number, kind: Column[3] = 'integer'): Column => [
  `I_${name}`,
  0,
  1,
  kind,
  objective,
];
const P = (name: string, upper: number, objective: number, kind: Column[3] = 'integer'): Column => [
  `P_${name}`,
  0,
  upper,
  kind,
  objective,
];
const B = (number: number, objective: number): Column => [`B_${number}`, 0, 1, 'integer', objective];
const V = (number: number, objective: number): Column => [`V_${number}`, -INF, INF, 'continuous', objective];

describe('the program of a leaf', () => {
  const two = [member('m', 2), member('n', 9)];
  const cases: readonly [what: string, e: Expression, columns: readonly Column[], rows: readonly Row[]][] = [
    ['all or nothing of one member is its indicator', nCk({ ...leaf('x', 3), value: 6 }), [I('x', 6)], []],
    [
      'of one member with too few units has a demand that cannot be met',
      nCk({ ...leaf('x', 3, [member('m', 2)]), value: 6 }),
      [I('x', 6), P('x', 2, 0)],
      [['demand_x', 0, 0, { P_x: 1, I_x: -3 }]],
    ],
    [
      'of two members has units of each, no more than it wants',
      nCk({ ...leaf('x', 4, two), value: 6 }),
      [I('x', 6), P('x_m', 2, 0), P('x_n', 4, 0)],
      [['demand_x', 0, 0, { P_x_m: 1, P_x_n: 1, I_x: -4 }]],
    ],
    ['a kill of all or nothing costs', killnCk({ ...leaf('x', 3), cost: 5 }), [I('x', -5)], []],
    [
      'by the unit is worth a share each, and no more than it wants in all',
      lnCk({ ...leaf('x', 4, two), value: 8 }),
      [P('x_m', 2, 2), P('x_n', 4, 2)],
      [['demand_x', -INF, 4, { P_x_m: 1, P_x_n: 1 }]],
    ],
    [
      'by the unit needs no demand where its members have no more in all',
      lnCk({ ...leaf('x', 4, [member('m', 3), member('n', 1)]), value: 8 }),
      [P('x_m', 3, 2), P('x_n', 1, 2)],
      [],
    ],
    [
      'by the unit needs none where they have less',
      killLnCk({ ...leaf('x', 4, [member('m', 1), member('n', 2)]), cost: 8 }),
      [P('x_m', 1, -2), P('x_n', 2, -2)],
      [],
    ],
  ];
  it.each(cases)('%s', (_, e, columns, rows) => {
    expect(program(e)).toEqual({ columns, rows });
  });

  it('is whole up to a slot and continuous after it', () => {
    const both = (start: number) =>
      program(
        sum(unit('x', 1, start), lnCk({ ...leaf('y', 1, [member('m', 1)], start), value: 1 })),
        PLENTY,
        1,
      ).columns.map(([name, , , kind]) => [name, kind]);
    for (const start of [0, 1]) {
      expect(both(start)).toEqual([
        ['I_x', 'integer'],
        ['P_y', 'integer'],
      ]);
    }
    expect(both(2)).toEqual([
      ['I_x', 'continuous'],
      ['P_y', 'continuous'],
    ]);
  });

  it('tells where its units are, and whether they are whole', () => {
    const e = sum(unit('x', 1, 1), nCk({ ...leaf('y', 3, [member('m', 3)], 2), value: 1 }));
    const of = compile(e, PLENTY, { name: '', integerThrough: 1 }).leaves;
    expect(of.map(({ leaf: { id }, column, factor, integer }) => [id, column, factor, integer])).toEqual([
      ['x', [0], 1, true],
      ['y', [1], 3, false],
    ]);
  });
});

describe('the program of an operator', () => {
  const x = unit('x', 5);
  const y = unit('y', 7);
  const linear = lnCk({ ...leaf('l', 2), value: 6 });
  const linkX: Row = ['link_x', -INF, 0, { I_x: 1, I_max0_0: -1 }];
  const linkY: Row = ['link_y', -INF, 0, { I_y: 1, I_max0_0: -1 }];
  const only: Row = ['choose_x', -INF, 1, { I_max0_0: 1 }];
  const cases: readonly [what: string, e: Expression, columns: readonly Column[], rows: readonly Row[]][] = [
    ['sum adds', sum(x, y), [I('x', 5), I('y', 7)], []],
    ['scale multiplies', scale(3, sum(x, y)), [I('x', 15), I('y', 21)], []],
    ['max chooses one', max(x, y), [I('x', 5), I('y', 7)], [['choose_x', -INF, 1, { I_x: 1, I_y: 1 }]]],
    ['max of nothing is named by its number', max(), [], [['choose_0', -INF, 1, {}]]],
    [
      'each max of nothing has a number of its own',
      sum(max(), max()),
      [],
      [
        ['choose_0', -INF, 1, {}],
        ['choose_1', -INF, 1, {}],
      ],
    ],
    [
      'max gives units to a linear leaf only where it is chosen',
      max(linear, x),
      [I('l', 0), P('l', 2, 3), I('x', 5)],
      [
        ['demand_l', -INF, 0, { P_l: 1, I_l: -2 }],
        ['choose_l', -INF, 1, { I_l: 1, I_x: 1 }],
      ],
    ],
    [
      'max within a max chooses where it is chosen',
      max(max(x, y), unit('z', 9)),
      [I('max0_0', 0), I('x', 5), I('y', 7), I('z', 9)],
      [
        ['choose_x', -INF, 0, { I_x: 1, I_y: 1, I_max0_0: -1 }],
        ['choose_x', -INF, 1, { I_max0_0: 1, I_z: 1 }],
      ],
    ],
    ['sum of one has the indicator of its choice', max(sum(x)), [I('max0_0', 5)], [only]],
    [
      'sum of two links both to its choice',
      max(sum(x, y)),
      [I('max0_0', 0), I('x', 5), I('y', 7)],
      [linkX, linkY, only],
    ],
    [
      'min is worth no more than each',
      min(x, y),
      [I('x', 0), I('y', 0), V(0, 1)],
      [
        ['least_0_0', -INF, 0, { V_0: 1, I_x: -5 }],
        ['least_0_1', -INF, 0, { V_0: 1, I_y: -7 }],
      ],
    ],
    ['min of nothing is nothing', min(), [], []],
    [
      'min below a max links its children, even a single one',
      max(min(x)),
      [I('max0_0', 0), I('x', 0), V(1, 1)],
      [linkX, ['least_1_0', -INF, 0, { V_1: 1, I_x: -5 }], only],
    ],
    [
      'mins are numbered',
      sum(min(x), min(y)),
      [I('x', 0), V(0, 1), I('y', 0), V(1, 1)],
      [
        ['least_0_0', -INF, 0, { V_0: 1, I_x: -5 }],
        ['least_1_0', -INF, 0, { V_1: 1, I_y: -7 }],
      ],
    ],
    [
      'barriers are numbered, and worth their threshold once reached',
      sum(barrier(4, x), barrier(6, y)),
      [I('x', 0), B(0, 4), I('y', 0), B(1, 6)],
      [
        ['reach_0', 0, INF, { I_x: 5, B_0: -4 }],
        ['reach_1', 0, INF, { I_y: 7, B_1: -6 }],
      ],
    ],
    [
      'barrier below a max links its child',
      max(barrier(4, x)),
      [I('max0_0', 0), I('x', 0), B(1, 4)],
      [linkX, ['reach_1', 0, INF, { I_x: 5, B_1: -4 }], only],
    ],
  ];
  it.each(cases)('%s', (_, e, columns, rows) => {
    expect(program(e)).toEqual({ columns, rows });
  });

  it('has a whole indicator where any leaf below is whole', () => {
    const mixed = program(max(sum(unit('x', 1, 0), unit('y', 1, 1))), PLENTY, 0);
    expect(mixed.columns).toEqual([I('max0_0', 0), I('x', 1), I('y', 1, 'continuous')]);
  });

  it.each<[what: string, of: Expression, low: number]>([
    ['starts', sum(x, y), 0],
    ['a stop and a start', sum(x, kill('k', 3)), -3],
    ['two stops', sum(kill('k', 3), kill('l', 4)), -7],
    ['stops by the unit', killLnCk({ ...leaf('k', 2), cost: 6 }), -6],
    ['a multiple of a stop', scale(2, kill('k', 3)), -6],
    ['the lesser of a start and a stop', min(x, kill('k', 3)), -3],
    ['the lesser of starts', min(x, y), 0],
    ['one of two stops', max(kill('k', 3), kill('l', 4)), -4],
    ['a barrier above a stop', barrier(2, kill('k', 3)), 0],
    ['a barrier and a stop', sum(barrier(2, x), kill('k', 3)), -3],
  ])('lets a barrier that is not reached be worth the least that %s can be', (_, of, low) => {
    const { columns, rows } = program(barrier(5, of));
    const reached = columns.at(-1)?.[0] ?? '';
    const row = rows.find(([name]) => name === reached.replace('B', 'reach'));
    expect(row?.slice(1, 3)).toEqual([low, INF]);
    expect(row?.[3][reached]).toBe(low - 5);
  });
});

describe('the point of an assignment', () => {
  const point = (e: Expression, units: Readonly<Record<string, readonly number[]>>) => {
    const { milp, point: of } = compile(e, PLENTY, { name: '', integerThrough: INF });
    const values = of(new Map(Object.entries(units)));
    return Object.fromEntries(Array.from(values, (value, c) => [milp.columnName(c), value]));
  };
  const two = leaf('x', 4, [member('m', 3), member('n', 4)]);

  it('has the units, and the share of the leaf that is chosen', () => {
    expect(point(nCk({ ...two, value: 8 }), { x: [3, 1] })).toEqual({ I_x: 1, P_x_m: 3, P_x_n: 1 });
    expect(point(nCk({ ...two, value: 8 }), { x: [0, 1] })).toEqual({ I_x: 0.25, P_x_m: 0, P_x_n: 1 });
    expect(point(killnCk({ ...two, cost: 8 }), { x: [1, 1] })).toEqual({ I_x: 0.5, P_x_m: 1, P_x_n: 1 });
    expect(point(nCk({ ...two, value: 8 }), {})).toEqual({ I_x: 0, P_x_m: 0, P_x_n: 0 });
  });

  it('chooses a linear leaf and an operator whole', () => {
    expect(point(max(lnCk({ ...two, value: 8 })), { x: [0, 1] })).toEqual({ I_x: 1, P_x_m: 0, P_x_n: 1 });
    expect(point(max(killLnCk({ ...two, cost: 8 })), { x: [2, 0] })).toEqual({ I_x: 1, P_x_m: 2, P_x_n: 0 });
    expect(point(max(sum(unit('a', 1), unit('b', 1))), { b: [1] })).toEqual({ I_max0_0: 1, I_a: 0, I_b: 1 });
  });

  it('has the least value, and whether a barrier is reached', () => {
    const of = min(unit('a', 5), unit('b', 7));
    expect(point(of, { a: [1], b: [1] })).toEqual({ I_a: 1, I_b: 1, V_0: 5 });
    expect(point(of, { b: [1] })).toEqual({ I_a: 0, I_b: 1, V_0: 0 });
    expect(point(barrier(5, unit('a', 5)), { a: [1] })).toEqual({ I_a: 1, B_0: 1 });
    expect(point(barrier(6, unit('a', 5)), { a: [1] })).toEqual({ I_a: 1, B_0: 0 });
  });
});

describe('supply rows', () => {
  const kinds = ['cpu', 'mem', 'gpu'];
  /** Eight units by the unit, each using this much of each kind. */
  const uses = (id: string, ...perUnit: number[]) => lnCk({ ...leaf(id, 8, [member('m', 8, perUnit)]), value: 8 });
  const gives = (id: string, ...perUnit: number[]) => killLnCk({ ...leaf(id, 8, [member('m', 8, perUnit)]), cost: 8 });
  const rowsOf = (e: Expression, ...capacity: number[]) => program(e, supplied([capacity], kinds)).rows;
  const names = (e: Expression, ...capacity: number[]) =>
    rowsOf(e, ...capacity).map(([name]) => name.replace(/^supply_a_|_t0$/g, ''));

  it('add what starts take and subtract what stops give back', () => {
    expect(rowsOf(sum(uses('x', 2), gives('k', 3)), 4)).toEqual([['supply_a_cpu_t0', -INF, 4, { P_x: 2, P_k: -3 }]]);
    const whole = nCk({ ...leaf('x', 3, [member('m', 3, [2])]), value: 1 });
    expect(rowsOf(whole, 5)).toEqual([['supply_a_cpu_t0', -INF, 5, { I_x: 6 }]]);
    const killed = killnCk({ ...leaf('k', 3, [member('m', 3, [2])]), cost: 1 });
    expect(rowsOf(sum(whole, killed), 5)).toEqual([['supply_a_cpu_t0', -INF, 5, { I_x: 6, I_k: -6 }]]);
  });

  it('have a column once, with all its draws on the partition', () => {
    const draws = [1, 2, 4].map((amount) => ({ partition: 'a', perUnit: [amount] }));
    const x = lnCk({ ...leaf('x', 8, [{ name: 'm', atMost: 8, draws }]), value: 8 });
    expect(rowsOf(sum(uses('w', 1), x), 4)).toEqual([['supply_a_cpu_t0', -INF, 4, { P_w: 1, P_x: 7 }]]);
  });

  it('are left out where all that could be taken is there', () => {
    expect(names(uses('x', 1), 8)).toEqual([]);
    expect(names(uses('x', 1), 7.9)).toEqual(['cpu']);
    expect(names(gives('k', 1), 0)).toEqual([]);
    expect(names(sum(uses('x', 1), gives('k', 1)), 8)).toEqual([]);
    expect(names(sum(uses('x', 1), uses('y', 1)), 15)).toEqual(['cpu']);
    expect(names(sum(uses('x', 1), uses('y', 1)), 16)).toEqual([]);
  });

  it.each<[what: string, e: Expression, capacity: readonly number[], kept: readonly string[]]>([
    ['the scarcer first kind', uses('x', 1, 1), [4, 7], ['cpu']],
    ['the scarcer second kind', uses('x', 1, 1), [7, 4], ['mem']],
    ['the one of which units take the larger part', uses('x', 1, 3), [4, 7], ['mem']],
    ['the scarcest of three', uses('x', 1, 1, 1), [6, 5, 4], ['gpu']],
    ['the last one of equal kinds', uses('x', 1, 1), [4, 4], ['mem']],
    ['each one that some work takes most of', sum(uses('x', 1, 2), uses('y', 2, 1)), [4, 4], ['cpu', 'mem']],
    ['the one that more work takes', sum(uses('x', 1, 1), uses('y', 0, 1)), [4, 4], ['mem']],
    ['kinds that different work takes', sum(uses('x', 1, 0), uses('y', 0, 1)), [4, 4], ['cpu', 'mem']],
    ['the one that a stop does not give back', sum(uses('x', 1, 1), gives('k', 0, 1)), [4, 4], ['cpu']],
    [
      'both where one is given back and taken by more',
      sum(uses('x', 1, 1), uses('y', 0, 1), gives('k', 0, 1)),
      [4, 4],
      ['cpu', 'mem'],
    ],
    ['all where one has nothing', uses('x', 1, 1), [0, 4], ['cpu', 'mem']],
    ['all where the second has nothing', uses('x', 1, 1), [4, 0], ['cpu', 'mem']],
  ])('keep of one slot %s', (_, e, capacity, kept) => {
    expect(names(e, ...capacity)).toEqual(kept);
  });

  it('are compared within a slot, not between slots', () => {
    const x = lnCk({ ...leaf('x', 8, [member('m', 8, [1, 1])]), duration: 2, value: 8 });
    const supply = supplied(
      [
        [4, 6],
        [3, 5],
        [1, 1],
      ],
      ['cpu', 'mem'],
    );
    expect(program(x, supply).rows).toEqual([
      ['supply_a_cpu_t0', -INF, 4, { P_x: 1 }],
      ['supply_a_cpu_t1', -INF, 3, { P_x: 1 }],
    ]);
  });
});
