import { describe, expect, it } from '@jest/globals';
import {
  byDensity,
  byPricedDensity,
  byQuotaDensity,
  byReducedWorth,
  byWorth,
  firstComeFirstServed,
  pricedUse,
} from '../../../../lib/stages/plan/order.ts';
import { smallProblem, type Amounts, type SmallChoice } from '../../../support/small-problem.ts';

const by = (netUsd: number, uses: Amounts, more: Partial<SmallChoice> = {}): SmallChoice => ({
  netUsd,
  members: [{ uses, atMost: 1 }],
  ...more,
});
const alone = (...choices: SmallChoice[]) => choices.map((choice) => ({ count: 1, choices: [choice] }));

describe('the order of choices', () => {
  it('by density is what a task brings per share of all supply that it takes', () => {
    // Shares of a and b: 0.1 + 0.5, 0.4 + 0, 0.2 + 0.25; of what each brings: 10, 12.5, 20 per whole.
    const problem = smallProblem({
      capacity: { a: 10, b: 4 },
      groups: alone(by(6, { a: 1, b: 2 }), by(5, { a: 4 }), by(9, { a: 2, b: 1 })),
    });
    expect(byDensity(problem)).toEqual([2, 1, 0]);
  });

  it('by density counts what a task takes after the window, so that late starts do not look small', () => {
    const problem = smallProblem({
      capacity: { a: 10 },
      slots: 3,
      groups: alone(
        by(6, { a: 1 }, { slot: 0, slots: 3 }),
        by(5, { a: 1 }, { slot: 2, slots: 3 }),
        by(1.9, { a: 1 }, { slot: 1, slots: 1 }),
      ),
    });
    // A third of 6, of 5 and 1.9 per slot.
    expect(byDensity(problem)).toEqual([0, 2, 1]);
  });

  it('by density against the quota takes first what needs none of it, in any slot', () => {
    const problem = smallProblem({
      capacity: { quota: 10, room: 10 },
      slots: 2,
      groups: alone(
        by(8, { quota: 2 }),
        by(9, { quota: 2 }, { slots: 2 }),
        by(1, { room: 9 }),
        by(6, { quota: 1 }, { slot: 1 }),
      ),
    });
    expect(byQuotaDensity(problem)).toEqual([2, 3, 0, 1]);
  });

  it('by prices is what a task brings per dollar that it pays', () => {
    const problem = smallProblem({
      capacity: { a: 10, b: 10 },
      groups: alone(by(8, { a: 2 }), by(9, { a: 1, b: 1 }), by(1, { b: 0 })),
    });
    const [first] = problem.choices;
    if (first === undefined) throw new Error('three choices');
    expect(pricedUse(first, Float64Array.of(3, 1))).toBe(6);
    expect(byPricedDensity(problem, Float64Array.of(3, 1))).toEqual([2, 1, 0]);
    expect(byPricedDensity(problem, Float64Array.of(1, 4))).toEqual([2, 0, 1]);
  });

  it('by worth is what a task brings; choices that bring as much keep their order', () => {
    const problem = smallProblem({ capacity: { a: 1 }, groups: alone(by(2, {}), by(3, {}), by(2, {}), by(3, {})) });
    expect(byWorth(problem)).toEqual([1, 3, 0, 2]);
  });

  it('by reduced worth puts choices far below the best of their group late', () => {
    const problem = smallProblem({
      capacity: { a: 1 },
      groups: [{ count: 1, choices: [by(10, {}), by(10, {})] }, ...alone(by(10, {}), by(20, {}))],
    });
    // The second is 1 below its group's best: it counts 3 - 5 x 1. The last keeps 6 of 20.
    expect(byReducedWorth(problem, Float64Array.of(4, 3, 2, 6))).toEqual([0, 3, 2, 1]);
    expect(byReducedWorth(problem, Float64Array.of(4, 3.9, 2, 6))).toEqual([0, 1, 3, 2]);
    expect(byReducedWorth(problem, Float64Array.of(4, 4, 2, 9))).toEqual([3, 0, 1, 2]);
    // Nobody is measured against a best below nothing.
    expect(byReducedWorth(problem, Float64Array.of(-1, -9, -5, -9))).toEqual([0, 3, 2, 1]);
  });

  it('by arrival is deadline work first, then who came first, with what can start now', () => {
    const now = by(1, {});
    const later = by(9, {}, { slot: 1 });
    const problem = smallProblem({
      capacity: { a: 1 },
      slots: 2,
      groups: [
        { count: 1, submittedS: 10, choices: [now, later] },
        { count: 1, submittedS: 5, choices: [later, now] },
        { count: 1, submittedS: 9, class: 'deadline', choices: [now, now] },
        { count: 1, submittedS: 8, class: 'deadline', choices: [now] },
        { count: 1, submittedS: 5, choices: [now] },
      ],
    });
    expect(firstComeFirstServed(problem)).toEqual([6, 4, 5, 3, 7, 0]);
  });
});
