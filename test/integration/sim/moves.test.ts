import { expect, it } from '@jest/globals';
import { epochMs } from '../../../lib/kernel/units.ts';
import { factsOf, type Scenario } from '../../support/bills.ts';
import { noSolver } from '../../../bench/load/no-solver.ts';
import { onOffMarket, START } from '../../support/on-off-market.ts';

/** Ten hours of work that saves its state: it leaves spot for want of it, and goes back when there is some. */
const scenario = (seed: number): Scenario => ({
  seed,
  tasks: 1,
  cpu: 4,
  memoryGiB: 2,
  runtimeS: 36_000,
  told: true,
  slack: 2.6,
  mustMeet: true,
  constraints: {},
  checkpoint: true,
  gang: false,
  maxCostUsd: null,
  startH: 0,
});

it('a task that is stopped for a move starts on the instance that the move names', async () => {
  const trace = onOffMarket([
    [0, 2],
    [8, 40],
  ]);
  let moved = 0;
  for (const seed of [1, 2, 3, 4]) {
    const market = { name: 'on and off', trace, fromMs: epochMs(START) };
    const { events, state } = await factsOf(scenario(seed), market, { preset: 'greedy', solver: noSolver });
    expect(state).toBe('succeeded');
    const target = new Map<string, string>();
    for (const e of events) {
      const { attempt = '', instance } = e.data as { attempt?: string; instance?: string };
      const task = attempt.split('.').slice(0, 3).join('.');
      const named = /; (i-[0-9a-f]+) \([^)]+\) is ready to take it/.exec(e.text)?.[1];
      if (e.type === 'attempt-stopping' && named !== undefined) target.set(task, named);
      if (e.type === 'attempt-starting' && target.has(task)) {
        expect(instance).toBe(target.get(task));
        target.delete(task);
        moved++;
      }
      if (e.type === 'attempt-interrupted') target.delete(task);
    }
  }
  expect(moved).toBeGreaterThan(0);
}, 300_000);
