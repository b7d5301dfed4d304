import { describe, expect, it } from '@jest/globals';
import {
  Filling,
  fill,
  keepRunning,
  objectiveOf,
  overdrawn,
  tasksBy,
  unitsAt,
  type FillOptions,
  type Selection,
} from '../../../../lib/stages/plan/fill.ts';
import type { Problem } from '../../../../lib/stages/plan/problem.ts';
import { smallProblem, type SmallChoice, type SmallGroup } from '../../../support/small-problem.ts';

const inOrder = (problem: Problem): number[] => problem.choices.map((_, index) => index);
const filled = (problem: Problem, over: Partial<FillOptions> = {}): Selection =>
  fill(problem, inOrder(problem), { preemptFor: 'all', ...over });
const tasks = (problem: Problem, selection: Selection): number[] =>
  problem.choices.map((_, index) => tasksBy(selection, index));

const one = (netUsd: number, uses = 1, more: Partial<SmallChoice> = {}): SmallChoice => ({
  netUsd,
  members: [{ uses: { a: uses }, atMost: 9 }],
  ...more,
});
const group = (count: number, ...choices: SmallChoice[]): SmallGroup => ({ count, choices });

describe('filling without preemption', () => {
  it('follows the order as far as the supply goes, and adds up what it is worth', () => {
    const problem = smallProblem({ capacity: { a: 5 }, groups: [group(3, one(2, 2)), group(4, one(1))] });
    const first = filled(problem);
    expect(tasks(problem, first)).toEqual([2, 1]);
    expect(first.objectiveUsd).toBe(5);
    expect(tasks(problem, fill(problem, [1, 0], { preemptFor: 'all' }))).toEqual([0, 4]);
  });

  it('starts no more than wait, however many choices they have', () => {
    const problem = smallProblem({ capacity: { a: 9 }, groups: [group(3, one(2), one(1))] });
    expect(tasks(problem, filled(problem))).toEqual([3, 0]);
  });

  it('starts no more on a member than may be there', () => {
    const members = [{ uses: { a: 1 }, atMost: 2 }];
    const problem = smallProblem({ capacity: { a: 9 }, groups: [group(5, { netUsd: 1, members })] });
    expect(tasks(problem, filled(problem))).toEqual([2]);
  });

  it('starts a gang whole over its members, or leaves their supply to others', () => {
    const members = [
      { uses: { a: 1 }, atMost: 3 },
      { uses: { b: 2 }, atMost: 5 },
    ];
    const gang = (count: number): SmallGroup => ({ count, gang: true, choices: [{ netUsd: 2, members }] });
    const fits = smallProblem({ capacity: { a: 4, b: 4 }, groups: [gang(5), group(4, one(1))] });
    const whole = filled(fits);
    expect([whole.units[unitsAt(0, 0)], whole.units[unitsAt(0, 1)]]).toEqual([3, 2]);
    expect(tasks(fits, whole)).toEqual([5, 1]);
    const lacks = smallProblem({ capacity: { a: 4, b: 3 }, groups: [gang(5), group(9, one(1))] });
    expect(tasks(lacks, filled(lacks))).toEqual([0, 4]);
  });

  it('takes supply in the slots that a task runs in and leaves the others', () => {
    const problem = smallProblem({
      capacity: { a: 1 },
      slots: 3,
      groups: [
        group(1, one(1, 1, { slot: 1, slots: 1 })),
        group(1, one(1, 1, { slot: 0, slots: 2 })),
        group(1, one(1, 1, { slot: 2, slots: 5 })),
        group(1, one(1)),
      ],
    });
    expect(tasks(problem, filled(problem))).toEqual([1, 0, 1, 1]);
  });
});

describe('filling by a fractional plan', () => {
  const two = smallProblem({ capacity: { a: 4 }, groups: [group(4, one(3)), group(4, one(2)), group(4, one(1))] });
  const guided = (...wanted: number[]): number[] =>
    tasks(two, filled(two, { guide: { tasks: Float64Array.from(wanted), kills: new Float64Array(0) } }));

  it('starts whole tasks of it first, then those begun in part, then what else fits', () => {
    expect(guided(0, 1, 3)).toEqual([0, 1, 3]);
    expect(guided(0, 2.9, 1.6)).toEqual([0, 3, 1]);
    expect(guided(1.4, 0, 2)).toEqual([2, 0, 2]);
    expect(guided(0, 0.5, 1)).toEqual([2, 1, 1]);
  });

  it('takes a twentieth of a task for noise', () => {
    expect(guided(0, 0.04, 2.96)).toEqual([1, 0, 3]);
    expect(guided(0, 0.06, 2.9)).toEqual([0, 1, 3]);
  });

  const gives = smallProblem({
    capacity: { a: 0 },
    groups: [group(2, one(5))],
    kills: [
      { costUsd: 1, gives: { a: 1 }, atMost: 3 },
      { costUsd: 2, gives: { a: 1 }, atMost: 3 },
    ],
  });
  const stopped = (problem: Problem, ...kills: number[]): number[] => [
    ...filled(problem, { guide: { tasks: Float64Array.of(2), kills: Float64Array.from(kills) } }).kills,
  ];

  it('preempts as planned, then undoes stops whose capacity nobody took, the last first', () => {
    expect(stopped(gives, 0, 2)).toEqual([0, 2]);
    expect(stopped(gives, 1, 0.5)).toEqual([1, 1]);
    expect(stopped(gives, 2, 2)).toEqual([2, 0]);
    expect(stopped(gives, 0, 1.04)).toEqual([1, 1]);
  });

  it('preempts no more than there is', () => {
    const [first, second] = stopped(gives, 0, 9);
    expect([first, second]).toEqual([0, 2]);
  });
});

describe('preemption while filling', () => {
  const stops = (problem: Problem, over: Partial<FillOptions> = {}): number[] => [...filled(problem, over).kills];

  it('stops the cheapest work per amount, and only where what starts brings more', () => {
    const kills = [
      { costUsd: 1.2, gives: { a: 1 } },
      { costUsd: 2, gives: { a: 2 } },
      { costUsd: 0.5, gives: { a: 0.25 } },
    ];
    const with2 = (netUsd: number): number[] =>
      stops(smallProblem({ capacity: { a: 0 }, groups: [group(1, one(netUsd, 2))], kills }));
    expect(with2(2.1)).toEqual([0, 1, 0]);
    expect(with2(2)).toEqual([0, 0, 0]);
    expect(stops(smallProblem({ capacity: { a: 0 }, groups: [group(1, one(9, 3))], kills }))).toEqual([1, 1, 0]);
  });

  it('stops work by the unit, as far as one more start pays', () => {
    const problem = smallProblem({
      capacity: { a: 1 },
      groups: [group(5, one(2))],
      kills: [
        { costUsd: 1, gives: { a: 1 }, atMost: 2 },
        { costUsd: 3, gives: { a: 1 }, atMost: 2 },
      ],
    });
    const selection = filled(problem);
    expect([...selection.kills]).toEqual([2, 0]);
    expect(tasks(problem, selection)).toEqual([3]);
    expect(selection.objectiveUsd).toBe(4);
  });

  it('stops enough for a whole gang, or nothing', () => {
    const gang = (count: number): Problem =>
      smallProblem({
        capacity: { a: 1 },
        groups: [{ count, gang: true, choices: [one(2)] }],
        kills: [{ costUsd: 1, gives: { a: 1 }, atMost: 3 }],
      });
    expect(stops(gang(4))).toEqual([3]);
    expect(stops(gang(5))).toEqual([0]);
  });

  it('stops nothing where another row that the start needs has no room', () => {
    const problem = smallProblem({
      capacity: { a: 0, b: 1 },
      groups: [group(1, { netUsd: 9, members: [{ uses: { a: 1, b: 2 }, atMost: 1 }] })],
      kills: [{ costUsd: 1, gives: { a: 1 } }],
    });
    const selection = filled(problem);
    expect([...selection.kills]).toEqual([0]);
    expect(overdrawn(problem, selection)).toEqual([]);
  });

  it('stops nothing where the released instance takes the room that the start needs', () => {
    const problem = smallProblem({
      capacity: { a: 2, b: 0 },
      groups: [group(1, { netUsd: 9, members: [{ uses: { a: 2, b: 1 }, atMost: 1 }] })],
      kills: [{ costUsd: 1, gives: { a: -1, b: 1 } }],
    });
    expect(stops(problem)).toEqual([0]);
  });

  it('stops nothing that takes more than there is', () => {
    const takes = (there: number): number[] =>
      stops(
        smallProblem({
          capacity: { a: 0, b: there },
          groups: [group(1, one(9))],
          kills: [{ costUsd: 1, gives: { a: 1, b: -2 } }],
        }),
      );
    expect(takes(1)).toEqual([0]);
    expect(takes(2)).toEqual([1]);
  });

  it('stops nothing for starts of later slots', () => {
    const problem = smallProblem({
      capacity: { a: 0 },
      slots: 2,
      groups: [group(1, one(9, 1, { slot: 1 }))],
      kills: [{ costUsd: 1, gives: { a: 1 } }],
    });
    expect(stops(problem)).toEqual([0]);
  });

  it('stops work for deadlines alone where it is told so, and releases idle capacity for all', () => {
    const of = (kind: 'deadline' | 'best-effort', attempts: readonly string[]): number[] =>
      stops(
        smallProblem({
          capacity: { a: 0 },
          groups: [{ ...group(1, one(9)), class: kind }],
          kills: [{ costUsd: 1, gives: { a: 1 }, attempts }],
        }),
        { preemptFor: 'deadlines' },
      );
    expect(of('deadline', ['x'])).toEqual([1]);
    expect(of('best-effort', ['x'])).toEqual([0]);
    expect(of('best-effort', [])).toEqual([1]);
  });

  it('makes room on the member that may hold all that start at once', () => {
    const members = [
      { uses: { a: 1 }, atMost: 1 },
      { uses: { b: 1 }, atMost: 2 },
    ];
    const problem = smallProblem({
      capacity: { a: 0, b: 0 },
      groups: [{ count: 2, gang: true, choices: [{ netUsd: 9, members }] }],
      kills: [
        { costUsd: 1, gives: { a: 1 }, atMost: 2 },
        { costUsd: 2, gives: { b: 1 }, atMost: 2 },
      ],
    });
    expect(stops(problem)).toEqual([0, 2]);
  });
});

describe('a selection', () => {
  const problem = smallProblem({
    capacity: { a: 4 },
    groups: [group(3, one(2, 2)), group(2, one(1))],
    kills: [{ costUsd: 0.5, gives: { a: 1 }, atMost: 4 }],
  });
  const of = (first: number, second: number, kills: number): Selection => {
    const units = new Float64Array(4);
    units[unitsAt(0, 0)] = first;
    units[unitsAt(1, 0)] = second;
    const stopped = Float64Array.of(kills);
    return { units, kills: stopped, objectiveUsd: objectiveOf(problem, units, stopped) };
  };

  it('is worth what its tasks bring less what its stops cost', () => {
    expect(of(3, 1, 2).objectiveUsd).toBe(6);
  });

  it('names the rows that it overdraws', () => {
    expect(overdrawn(problem, of(2, 0, 0))).toEqual([]);
    expect(overdrawn(problem, of(2, 1, 0))).toEqual(['supply_a_units_t0']);
    expect(overdrawn(problem, of(2, 1, 1))).toEqual([]);
    expect(overdrawn(problem, of(3, 2, 3))).toEqual(['supply_a_units_t0']);
  });

  it('does not count what solvers round as overdrawn, in proportion to what a row has', () => {
    const large = smallProblem({ capacity: { a: 1e6 }, groups: [group(1, one(1))] });
    const using = (units: number): Selection => ({
      units: Float64Array.of(units, 0),
      kills: new Float64Array(0),
      objectiveUsd: 0,
    });
    expect(overdrawn(large, using(1e6 + 0.5))).toEqual([]);
    expect(overdrawn(large, using(1e6 + 2))).toHaveLength(1);
    expect(overdrawn(problem, of(2, 5e-6, 0))).toHaveLength(1);
    expect(overdrawn(problem, of(2, 3e-6, 0))).toEqual([]);
  });

  it('can be gone on from: what it left free, and what still waits', () => {
    const filling = Filling.of(problem, of(1, 1, 2));
    expect([...filling.free]).toEqual([3]);
    expect([...filling.waiting]).toEqual([2, 1]);
    expect([...filling.kills]).toEqual([2]);
    filling.choose(1, 1);
    expect(filling.unitsOf(1, 0)).toBe(1);
    filling.choose(1, 2);
    expect(filling.unitsOf(1, 0)).toBe(2);
    filling.choose(0, Infinity);
    expect(filling.unitsOf(0, 0)).toBe(2);
    expect(filling.selection().objectiveUsd).toBe(5);
  });

  it('undoes stops as far as their capacity is free', () => {
    const filling = Filling.of(problem, of(2, 0, 3));
    keepRunning(filling, [0]);
    expect([...filling.kills]).toEqual([0]);
    const used = Filling.of(problem, of(2, 2, 3));
    keepRunning(used, [0]);
    expect([...used.kills]).toEqual([2]);
  });
});
