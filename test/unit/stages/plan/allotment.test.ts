import { describe, expect, it } from '@jest/globals';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { attemptId } from '../../../../lib/kernel/ids.ts';
import { unsolved, type Allotment } from '../../../../lib/domain/plan.ts';
import { allotmentOf } from '../../../../lib/stages/plan/allotment.ts';
import { unitsAt } from '../../../../lib/stages/plan/fill.ts';
import type { Problem } from '../../../../lib/stages/plan/problem.ts';
import { ON_DEMAND, handmade } from '../../../support/handmade-plan.ts';
import { smallProblem, type SmallChoice, type SmallKill } from '../../../support/small-problem.ts';

const choice = (costUsd: number, more: Partial<SmallChoice> = {}): SmallChoice => ({
  netUsd: 1,
  costUsd,
  members: [
    { uses: {}, atMost: 9 },
    { uses: {}, atMost: 9 },
  ],
  ...more,
});

/** Units by choice and member. */
function allotted(problem: Problem, units: readonly (readonly number[])[], kills: readonly number[] = []): Allotment {
  const all = new Float64Array(2 * problem.choices.length);
  units.forEach((of, c) => of.forEach((n, m) => (all[unitsAt(c, m)] = n)));
  return allotmentOf(problem, { units: all, kills: Float64Array.from(kills), objectiveUsd: 0 }, unsolved(0));
}

describe('an allotment', () => {
  it('has what starts now apart from what starts later, members of a choice together, nothing that starts none', () => {
    const problem = smallProblem({
      capacity: { a: 1 },
      slots: 2,
      groups: [{ count: 9, choices: [choice(1), choice(2, { slot: 1 }), choice(3), choice(4)] }],
    });
    const { starts, deferred } = allotted(problem, [[2, 1], [0.7], [0, 1], [0.4]]);
    expect(starts.map((s) => [s.option.costUsd, s.count])).toEqual([
      [1, 3],
      [3, 1],
    ]);
    expect(deferred.map((s) => [s.option.costUsd, s.count])).toEqual([[2, 1]]);
  });

  it('rounds parts of tasks that start later to no more than wait', () => {
    const problem = smallProblem({
      capacity: { a: 1 },
      slots: 3,
      groups: [{ count: 1, choices: [choice(1, { slot: 1 }), choice(2, { slot: 2 })] }],
    });
    const { deferred } = allotted(problem, [[0.5], [0.5]]);
    expect(deferred.map((s) => s.count)).toEqual([1]);
  });

  it('says what a start is worth and costs, and what it risks', () => {
    const reasonOf = (of: 'deadline' | 'best-effort', more: Partial<SmallChoice> = {}): string => {
      const problem = smallProblem({
        capacity: { a: 1 },
        groups: [{ count: 1, class: of, choices: [choice(2, more)] }],
      });
      return invariant(allotted(problem, [[1]]).starts[0], 'one starts').reason;
    };
    expect(reasonOf('best-effort')).toBe(
      'a task is worth $3.00 and costs $2.00 on c5.xlarge/us-east-1a/spot, interrupted with probability 0.0 %',
    );
    expect(reasonOf('deadline')).toMatch(/, interrupted with probability 0\.0 %, late with 0\.0 %$/);
    expect(reasonOf('best-effort', { pool: ON_DEMAND })).toMatch(/, not interruptible$/);
  });

  const kill = (attempts: readonly string[], more: Partial<SmallKill> = {}): SmallKill => ({
    costUsd: 0.3,
    gives: {},
    atMost: attempts.length,
    attempts,
    ...more,
  });
  const stopped = (kills: readonly SmallKill[], units: readonly number[]) =>
    allotted(smallProblem({ capacity: { a: 1 }, groups: [], kills }), [], units).preemptions;

  it('stops as many of the attempts alike as it has units, in their order', () => {
    expect(stopped([kill(['c', 'b', 'a']), kill(['d'])], [2, 0]).map((p) => p.attempt)).toEqual(['b', 'c']);
  });

  it('stops all of a whole with its one unit, and none of them twice', () => {
    const kills = [kill(['a', 'b', 'c']), kill(['b', 'a'], { whole: true, costUsd: 0.8 })];
    const both = stopped(kills, [1, 1]);
    expect(both.map((p) => p.attempt)).toEqual(['a', 'b', 'c']);
    expect(both.map((p) => /about (\S+) in worth/.exec(p.reason)?.[1])).toEqual(['$0.40', '$0.40', '$0.30']);
    expect(stopped(kills, [1, 0]).map((p) => p.attempt)).toEqual(['a']);
  });

  it('moves what was to move, and does not stop it besides', () => {
    const problem = smallProblem({ capacity: { a: 1 }, groups: [], kills: [kill(['m.0', 'n'])] });
    const { snapshot } = handmade({ running: [{ name: 'm', instance: 'i-1', tasks: 1 }] });
    const running = invariant(snapshot.running[0], 'one runs');
    const to = 'spot';
    const view = invariant(snapshot.instances.get(running.attempt.instance), 'on an instance');
    const move = { attempt: attemptId('m.0'), running, view, reason: 'its deadline' };
    const at = (more: { readonly to?: 'spot' }): Problem => ({ ...problem, moves: [{ ...move, ...more }] });
    const bare = allotted(at({}), [], [2]);
    expect(bare.moves).toEqual([{ running, reason: 'its deadline' }]);
    expect(bare.preemptions.map((p) => p.attempt)).toEqual(['n']);
    expect(allotted(at({ to }), []).moves).toEqual([{ running, reason: 'its deadline', to }]);
  });
});
