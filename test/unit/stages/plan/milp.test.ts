import { describe, expect, it } from '@jest/globals';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { modelOf, planProblem, type Planned } from '../../../../lib/stages/plan/milp.ts';
import type { Milp, SolveLimits, SolveOutcome, Solver } from '../../../../lib/policy/solver.ts';
import { smallProblem, type SmallGroup, type SmallProblem } from '../../../support/small-problem.ts';

/** Remembers what it was asked, and answers with what is written here. */
class Answering implements Solver {
  readonly #answer: (model: Milp) => SolveOutcome;
  readonly asked: { readonly model: Milp; readonly limits: SolveLimits; readonly start: Float64Array | null }[] = [];

  constructor(answer: (model: Milp) => SolveOutcome) {
    this.#answer = answer;
  }

  solve(...[model, limits, start]: Parameters<Solver['solve']>): Promise<SolveOutcome> {
    this.asked.push({ model, limits, start });
    return Promise.resolve(this.#answer(model));
  }
  relax(): ReturnType<Solver['relax']> {
    return Promise.resolve(null);
  }
  write(): Promise<string> {
    return Promise.resolve('');
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}

const failing = (): Answering => new Answering(() => ({ status: 'failed', detail: 'broken' }));

const one = (netUsd: number, uses: number, costUsd = 1): SmallGroup => ({
  count: 1,
  choices: [{ netUsd, costUsd, members: [{ uses: { a: uses }, atMost: 1 }] }],
});

/**
 * A knapsack whose dense items leave a gap: fills find 7 + 6 = 13 at best, the best is 8 + 6 = 14, and a fraction more
 * would be worth up to 14.5.
 */
const knapsack = (over: Partial<SmallProblem> = {}): SmallProblem => ({
  capacity: { a: 10 },
  groups: [one(10, 6), one(7.8, 5), one(7.7, 5), one(1, 4)],
  ...over,
});

/** Values by the names of columns; all others 0. */
const valued = (model: Milp, units: Readonly<Record<string, number>>): Float64Array =>
  Float64Array.from({ length: model.columns }, (_, column) => units[model.columnName(column)] ?? 0);

const planned = (small: SmallProblem, solver: Solver): Promise<Planned> => planProblem(smallProblem(small), solver);

/** Starts of the second and the third, the best there is. */
const BEST = { 'P_g1.o0.s0.room': 1, 'P_g2.o0.s0.room': 1 };
const optimal = (bound: number, units: Readonly<Record<string, number>> = BEST) =>
  new Answering((model) => ({
    status: 'optimal',
    values: valued(model, units),
    objective: bound,
    bound,
    elapsedMs: 7,
  }));

describe('a plan that needs no solver', () => {
  const free = { groups: [one(2, 3), one(3, 4, 2)] };

  it('is the greedy one where each group has its best option', async () => {
    const solver = failing();
    const { selection, report } = await planned({ capacity: { a: 7 }, ...free }, solver);
    expect(selection.objectiveUsd).toBe(5);
    expect(report).toMatchObject({
      used: 'greedy',
      status: 'not-needed',
      objective: 5,
      bound: 5,
      gap: 0,
      gapOfCost: 0,
    });
    expect(solver.asked).toEqual([]);
    expect((await planned({ capacity: { a: 6 }, ...free }, solver)).report.status).not.toBe('not-needed');
  });

  it('is a fill where the bound shows that it leaves next to nothing', async () => {
    // The fill leaves up to 5.24 dollars, 2.62 times the 2 dollars that it spends.
    const allowed = async (solverGap: number): Promise<boolean> => {
      const solver = failing();
      await planned(knapsack({ config: { solverGap } }), solver);
      return solver.asked.length === 0;
    };
    expect([await allowed(2.6), await allowed(2.7)]).toEqual([false, true]);
  });

  it('is a fill where there are more options than the solver is to look at, and says what it may leave', async () => {
    const solver = failing();
    const kills = [{ costUsd: 90, gives: { a: 1 } }];
    const most = (solverMaxOptions: number) => planned(knapsack({ kills, config: { solverMaxOptions } }), solver);
    const { report } = await most(4);
    expect(solver.asked).toEqual([]);
    // The relaxation fills the rest with four fifths of the second.
    const bound = invariant(report.bound, 'a bound');
    expect(bound).toBeGreaterThanOrEqual(16.24 - 1e-9);
    expect(bound).toBeLessThan(16.3);
    expect(report).toMatchObject({ used: 'greedy', status: 'feasible', objective: 11, greedyObjective: 11 });
    expect(report).toMatchObject({ boundKind: 'lagrangian', variables: 5, constraints: 1, elapsedMs: 0 });
    expect(report.gap).toBeCloseTo((bound - 11) / bound, 9);
    expect(report.gapOfCost).toBeCloseTo((bound - 11) / 2, 9);
    await most(5);
    expect(solver.asked).toHaveLength(1);
  });

  it('is called optimal where the bound says so', async () => {
    // Both take all there is: the better one is the best, though each group has its own best option.
    const { report } = await planned({ capacity: { a: 4 }, groups: [one(3, 4), one(1, 4)] }, failing());
    expect(report).toMatchObject({ used: 'greedy', objective: 3, status: 'optimal' });
    expect(report.gap).toBeLessThanOrEqual(1e-6);
  });
});

describe('a plan that asks the solver', () => {
  it('gives it the best fill to begin from, and the dollars that may be left as a share of the bound', async () => {
    const solver = failing();
    await planned(knapsack({ config: { solverGap: 0.05, solverSeconds: 3 } }), solver);
    const { model, limits, start } = invariant(solver.asked[0], 'asked once');
    expect(start).toEqual(valued(model, { 'P_g0.o0.s0.room': 1, 'P_g3.o0.s0.room': 1 }));
    expect(limits).toMatchObject({ maxNodes: null, maxSeconds: 3 });
    // 5 % of the 2 dollars that the fill spends, of a bound of 16.24.
    expect(limits.relativeGap).toBeCloseTo((0.05 * 2) / 16.24, 5);
  });

  it('is the solver’s where that is better, with its bound', async () => {
    const { selection, report } = await planned(knapsack(), optimal(15.5));
    expect(selection.objectiveUsd).toBe(15.5);
    expect(report).toMatchObject({ used: 'milp', status: 'optimal', objective: 15.5, greedyObjective: 11 });
    expect(report).toMatchObject({ bound: 15.5, boundKind: 'mip', gap: 0, gapOfCost: 0, elapsedMs: 7 });
    expect(report).toMatchObject({ variables: 4, constraints: 1 });
  });

  it('is also the solver’s where it stopped before the end; a worse bound than the Lagrangian one is not told', async () => {
    const stopped = (bound: number) =>
      new Answering((model) => ({
        status: 'feasible',
        values: valued(model, BEST),
        objective: 15.5,
        bound,
        gap: 0.1,
        limit: 'time',
      }));
    const near = await planned(knapsack(), stopped(16));
    expect(near.report).toMatchObject({ used: 'milp', status: 'feasible', bound: 16, boundKind: 'mip' });
    expect(near.report.gap).toBeCloseTo(0.5 / 16, 9);
    expect(near.report.gapOfCost).toBeCloseTo(0.5 / 2, 9);
    const far = await planned(knapsack(), stopped(99));
    expect(far.report.boundKind).toBe('lagrangian');
    expect(far.report.bound).toBeLessThan(16.3);
  });

  it('stays the fill where the solver has nothing better', async () => {
    const fill = { used: 'greedy', objective: 11 };
    expect(
      (await planned(knapsack(), optimal(11, { 'P_g0.o0.s0.room': 1, 'P_g3.o0.s0.room': 1 }))).report,
    ).toMatchObject(fill);
    expect(
      (await planned(knapsack(), optimal(8.8, { 'P_g1.o0.s0.room': 1, 'P_g3.o0.s0.room': 1 }))).report,
    ).toMatchObject(fill);
  });

  it('stays the fill where the solver’s plan takes more than there is', async () => {
    const { report } = await planned(knapsack(), optimal(17.8, { 'P_g0.o0.s0.room': 1, 'P_g1.o0.s0.room': 1 }));
    expect(report).toMatchObject({ used: 'greedy', objective: 11 });
  });

  it('stays the fill where the solver found nothing, with the bound that it proved', async () => {
    const none = (bound: number | null) => new Answering(() => ({ status: 'no-solution', bound, limit: 'time' }));
    const unknown = await planned(knapsack(), none(null));
    expect(unknown.report).toMatchObject({
      used: 'greedy',
      status: 'no-solution',
      boundKind: 'lagrangian',
      elapsedMs: 0,
    });
    expect((await planned(knapsack(), none(16))).report).toMatchObject({ used: 'greedy', bound: 16, boundKind: 'mip' });
  });

  it('is whole in what starts now only: later slots are decided again', () => {
    const groups = [
      one(3, 2),
      { count: 1, choices: [{ netUsd: 1, slot: 1, members: [{ uses: { a: 1 }, atMost: 1 }] }] },
    ];
    const { milp } = modelOf(smallProblem({ capacity: { a: 1 }, slots: 2, groups }));
    expect([...milp.integer]).toEqual([1, 0]);
  });
});
