import { afterAll, describe, expect, it } from '@jest/globals';
import { randomStream } from '../../lib/kernel/random.ts';
import type { Milp, SolveLimits, Solver } from '../../lib/policy/solver.ts';
import {
  boundsOnly,
  endless,
  hardKnapsack,
  impossible,
  impossibleWhole,
  knapsack,
  linear,
  marketSplit,
  workshop,
} from './solver-models.ts';

const EXACT: SolveLimits = { relativeGap: 0, maxNodes: null, maxSeconds: null };

/** What every Solver promises (lib/policy/solver.ts), on models whose answers are known by hand. */
export function solverContract(name: string, make: () => Solver): void {
  describe(`solver contract: ${name}`, () => {
    const solver = make();
    afterAll(() => solver.close());

    const known: readonly [Milp, number, readonly number[]][] = [
      [workshop, 1100, [20, 10]],
      [knapsack, 220, [0, 1, 1]],
      [linear, 2.8, [1.6, 1.2]],
      [boundsOnly, 6, [3, 0]],
    ];
    it.each(known.map(([model, ...rest]) => [model.name, model, ...rest] as const))(
      'solves %s to optimality',
      async (_, model, objective, values) => {
        const outcome = await solver.solve(model, EXACT, null);
        expect(outcome.status).toBe('optimal');
        if (outcome.status !== 'optimal') return;
        expect(outcome.objective).toBeCloseTo(objective, 6);
        expect(outcome.bound).toBeCloseTo(objective, 6);
        values.forEach((value, j) => expect(outcome.values[j]).toBeCloseTo(value, 6));
        expect(outcome.elapsedMs).toBeGreaterThan(0);
      },
    );

    it.each([impossible, impossibleWhole].map((model) => [model.name, model] as const))(
      'calls %s infeasible',
      async (_, model) => {
        expect((await solver.solve(model, EXACT, null)).status).toBe('infeasible');
      },
    );

    it('calls an unbounded model failed, and says why', async () => {
      const outcome = await solver.solve(endless, EXACT, null);
      expect(outcome.status).toBe('failed');
      expect(outcome.status === 'failed' && outcome.detail).toMatch(/unbounded/);
    });

    it('says no-solution when the node limit comes before any feasible point', async () => {
      const model = marketSplit(5, 40, randomStream(1, 'market-split'));
      const outcome = await solver.solve(model, { ...EXACT, maxNodes: 1 }, null);
      expect(outcome).toMatchObject({ status: 'no-solution', limit: 'nodes' });
    });

    it('says no-solution when time runs out before any feasible point', async () => {
      const model = marketSplit(6, 50, randomStream(2, 'market-split'));
      const outcome = await solver.solve(model, { ...EXACT, maxSeconds: 0.3 }, null);
      expect(outcome).toMatchObject({ status: 'no-solution', limit: 'time' });
    });

    it('stops at a node limit with a point, a bound and their gap', async () => {
      const model = hardKnapsack(60, 5, randomStream(3, 'knapsack'));
      const outcome = await solver.solve(model, { ...EXACT, maxNodes: 3 }, null);
      expect(outcome).toMatchObject({ status: 'feasible', limit: 'nodes' });
      if (outcome.status !== 'feasible') return;
      expect(outcome.bound).toBeGreaterThan(outcome.objective);
      expect(outcome.gap).toBeCloseTo((outcome.bound - outcome.objective) / outcome.bound, 9);
      expectFeasible(model, outcome.values);
    });

    it('stops at a gap, and gives the same answer each time', async () => {
      const model = hardKnapsack(60, 5, randomStream(4, 'knapsack'));
      const limits = { ...EXACT, relativeGap: 0.05 };
      const first = await solver.solve(model, limits, null);
      const second = await solver.solve(model, limits, null);
      expect(first).toMatchObject({ status: 'feasible', limit: 'gap' });
      if (first.status !== 'feasible' || second.status !== 'feasible') throw new Error('not feasible');
      expect(first.gap).toBeLessThanOrEqual(0.05);
      expect([...second.values]).toEqual([...first.values]);
    });

    it('is never worse than the start it is given', async () => {
      const model = hardKnapsack(60, 5, randomStream(5, 'knapsack'));
      const good = await solver.solve(model, { ...EXACT, relativeGap: 0.02 }, null);
      if (good.status !== 'feasible' && good.status !== 'optimal') throw new Error(good.status);
      const again = await solver.solve(model, { ...EXACT, maxNodes: 0 }, good.values);
      if (again.status !== 'feasible' && again.status !== 'optimal') throw new Error(again.status);
      expect(again.objective).toBeGreaterThanOrEqual(good.objective - 1e-6);
    });

    it('relaxes: the LP bound, and duals that price its rows', async () => {
      const relaxed = await solver.relax(knapsack, EXACT);
      expect(relaxed?.bound).toBeCloseTo(240, 6);
      expect(relaxed?.values[2]).toBeCloseTo(2 / 3, 6);
      // Room is worth the density of the item that is cut: 120 / 30 per unit.
      expect(Math.abs(relaxed?.rowDuals[0] ?? 0)).toBeCloseTo(4, 6);
      expect(await solver.relax(impossible, EXACT)).toBeNull();
    });

    it('writes models with their names', async () => {
      const lp = await solver.write(knapsack, 'lp');
      expect(lp).toMatch(/limit_0/);
      expect(lp).toMatch(/x_2/);
      expect(lp.toLowerCase()).toMatch(/max/);
      const mps = await solver.write(knapsack, 'mps');
      expect(mps).toMatch(/ROWS/);
      expect(mps).toMatch(/limit_0/);
    });

    it('serves calls made at once, each with its own answer', async () => {
      const [a, b, c] = await Promise.all([
        solver.solve(workshop, EXACT, null),
        solver.solve(knapsack, EXACT, null),
        solver.relax(linear, EXACT),
      ]);
      expect(a.status === 'optimal' && a.objective).toBeCloseTo(1100, 6);
      expect(b.status === 'optimal' && b.objective).toBeCloseTo(220, 6);
      expect(c?.bound).toBeCloseTo(2.8, 6);
    });
  });
}

function expectFeasible(model: Milp, values: Float64Array): void {
  for (let row = 0; row < model.rows; row++) {
    let activity = 0;
    for (let i = model.rowStart[row] ?? 0; i < (model.rowStart[row + 1] ?? 0); i++) {
      activity += (model.coefficient[i] ?? 0) * (values[model.columnIndex[i] ?? 0] ?? 0);
    }
    expect(activity).toBeLessThanOrEqual((model.rowUpper[row] ?? 0) + 1e-6);
    expect(activity).toBeGreaterThanOrEqual((model.rowLower[row] ?? 0) - 1e-6);
  }
}
