/**
 * What a limit (`maxCost`) lets a job still do: money set aside for an instance pays for all tasks that it was bought
 * for.
 */
import { describe, expect, it } from '@jest/globals';
import { defaultMarket, defaultMarketStartMs } from '../../../lib/market/default-market.ts';
import { factsOf, scenarioOf, type Facts, type MarketOfScenarios, type Scenario } from '../../support/bills.ts';
import { noSolver } from '../../../bench/load/no-solver.ts';

const market: MarketOfScenarios = { name: 'generated 2', trace: defaultMarket(2), fromMs: defaultMarketStartMs };
const base: Scenario = {
  ...scenarioOf(544, market.trace),
  ...{ tasks: 12, cpu: 1, memoryGiB: 2, runtimeS: 18_000, told: true, slack: 1.87, constraints: {} },
  ...{ checkpoint: false, gang: true, maxCostUsd: null },
};

async function facts(scenario: Partial<Scenario>): Promise<Facts> {
  return factsOf({ ...base, ...scenario }, market, { preset: 'greedy', solver: noSolver });
}

describe('a job with a limit', () => {
  it('as a gang starts on the instances that were bought for it', async () => {
    const { listUsd } = await facts({});
    const maxCostUsd = 1.2 * listUsd;
    const limited = await facts({ maxCostUsd });
    expect({ state: limited.state, unused: limited.unused }).toEqual({ state: 'succeeded', unused: 0 });
    expect(limited.billUsd).toBeLessThan(maxCostUsd);
  });

  it('tries spot where the limit does not pay for capacity that stays, and a deadline would want that', async () => {
    const urgent = { seed: 505, tasks: 1, memoryGiB: 15, runtimeS: 1800, slack: 1.12, gang: false, mustMeet: true };
    const free = await facts(urgent);
    const maxCostUsd = 0.6 * free.listUsd;
    const limited = await facts({ ...urgent, maxCostUsd });
    expect(free.billUsd).toBeGreaterThan(maxCostUsd);
    expect(limited.launches).toBeGreaterThan(0);
    expect(limited.state).toBe('succeeded');
    expect(limited.billUsd).toBeLessThan(maxCostUsd);
  });
});
