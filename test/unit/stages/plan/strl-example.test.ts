import { afterAll, describe, expect, it } from '@jest/globals';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { compile } from '../../../../lib/stages/plan/milp/compile.ts';
import { interpret } from '../../../../lib/stages/plan/milp/interpret.ts';
import { killnCk, max, nCk, sum, type Member } from '../../../../lib/stages/plan/strl/expression.ts';
import { print } from '../../../../lib/stages/plan/strl/print.ts';
import type { Supply } from '../../../../lib/stages/plan/strl/supply.ts';
import { valueOf, violations } from '../../../../lib/stages/plan/strl/value.ts';

/**
 * JamaisVu section 4.1.3, figure 6. Slots of 10 s: slot 0 is t = 10, slot 1 is t = 20, slot 2 is t = 30. Four machines,
 * each a partition of one. Job 1 holds m2 and m3 until t = 20.
 */
const machine = (name: string): Member => ({
  name,
  draws: [{ partition: name, perUnit: [1] }],
  atMost: 1,
});
const on = (...names: string[]): readonly Member[] => names.map(machine);
const supply: Supply = {
  slots: 3,
  partitions: ['m1', 'm2', 'm3', 'm4'].map((id) => ({
    id,
    renewable: true,
    kinds: ['machine'],
    capacity: id === 'm2' || id === 'm3' ? [[0], [1], [1]] : [[1], [1], [1]],
  })),
};
const job1 = killnCk({ id: 'job1', set: on('m2', 'm3'), k: 2, start: 0, duration: 1, cost: 11 });
const job2 = max(
  nCk({ id: 'job2.rack1', set: on('m1', 'm2'), k: 2, start: 0, duration: 2, value: 100 }),
  nCk({ id: 'job2.rack2', set: on('m3', 'm4'), k: 2, start: 0, duration: 2, value: 100 }),
  nCk({ id: 'job2.later', set: on('m1', 'm2', 'm3', 'm4'), k: 2, start: 1, duration: 2, value: 1 }),
);
const job3 = max(
  nCk({ id: 'job3.gpu', set: on('m1', 'm2'), k: 2, start: 0, duration: 2, value: 100 }),
  nCk({ id: 'job3.later', set: on('m1', 'm2', 'm3', 'm4'), k: 2, start: 1, duration: 2, value: 1 }),
);
const EXACT = { relativeGap: 0, maxNodes: null, maxSeconds: null };

describe('the worked example of JamaisVu 4.1.3', () => {
  const solver = highsSolver();
  afterAll(() => solver.close());

  it('preempts job 1 and places both others: 100 + 100 - 11', async () => {
    const expression = sum(job1, job2, job3);
    const compiled = compile(expression, supply, { name: 'example', integerThrough: Infinity });
    const outcome = await solver.solve(compiled.milp, EXACT, null);
    if (outcome.status !== 'optimal') throw new Error(outcome.status);
    const assignment = interpret(compiled, outcome.values);
    expect(outcome.objective).toBeCloseTo(189, 9);
    expect(valueOf(expression, assignment)).toBeCloseTo(189, 9);
    expect(violations(expression, supply, assignment)).toEqual([]);
    expect([...assignment.keys()].sort()).toEqual(['job1', 'job2.rack2', 'job3.gpu']);
  });

  it('waits when preemption costs more than it brings', async () => {
    const dear = sum({ ...job1, cost: 300 }, job2, job3);
    const compiled = compile(dear, supply, { name: 'dear', integerThrough: Infinity });
    const outcome = await solver.solve(compiled.milp, EXACT, null);
    if (outcome.status !== 'optimal') throw new Error(outcome.status);
    expect(outcome.objective).toBeCloseTo(2, 9);
  });

  it('prints in the notation of the papers', () => {
    expect(print(sum(job1, job3))).toBe(
      [
        'sum(',
        '  killnCk({m2, m3}, k=2, start=0, dur=1, c=11) "job1",'.replace('m2, m3', 'm2<=1, m3<=1'),
        '  max(',
        '    nCk({m1<=1, m2<=1}, k=2, start=0, dur=2, v=100) "job3.gpu",',
        '    nCk({m1<=1, m2<=1, m3<=1, m4<=1}, k=2, start=1, dur=2, v=1) "job3.later"',
        '  )',
        ')',
      ].join('\n'),
    );
  });

  it('names rows and columns after the formulation', async () => {
    const compiled = compile(sum(job1, job2, job3), supply, { name: 'example', integerThrough: Infinity });
    const text = await solver.write(compiled.milp, 'lp');
    for (const name of ['I_job3.gpu', 'P_job1_m2', 'demand_job2.rack1', 'supply_m2_machine_t0', 'choose_job2.rack1']) {
      expect(text).toContain(name);
    }
  });
});
