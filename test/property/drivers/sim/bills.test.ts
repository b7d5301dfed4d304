/**
 * Bills of generated jobs: constraints x deadlines x budgets x sizes x gangs x checkpoints x markets, through the whole
 * scheduler in the simulator. A bill of twice the on-demand list price or beyond the budget is a defect, as is an
 * instance that the job may not use, and work that we stop again and again. `test/support/bills.ts` has the
 * combinations and the list price, which shares no code with the scheduler.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';
import { openMarket } from '../../../../lib/drivers/local/market/import.ts';
import { defaultMarket, defaultMarketStartMs } from '../../../../lib/market/default-market.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { deterministic, type Solver } from '../../../../lib/policy/solver.ts';
import { factsOf, scenarioOf, type Facts, type MarketOfScenarios, type Scenario } from '../../../support/bills.ts';
import { noSolver } from '../../../../bench/load/no-solver.ts';

/** Combinations per preset: the greedy plan takes a tenth of a second, the solver several times that. */
const GREEDY = 1700;
const SOLVED = 300;
/** Seeds of the markets that combinations are spread over. */
const MARKETS = 5;
/** Of a job's running time, what stops of our own making may lose, and how often they may come per hour and task. */
const MOST_LOST = 0.1;
const STOPS_PER_HOUR = 2;

const DAY_MS = 86_400_000;
const data = process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../../../../shared/data');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-bills-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let solver: Solver;
beforeAll(() => {
  solver = deterministic(highsSolver(), 50);
});
afterAll(() => solver.close());

const markets = Array.from({ length: MARKETS }, (_, i): MarketOfScenarios => ({
  name: `generated ${i + 1}`,
  trace: defaultMarket(i + 1),
  fromMs: defaultMarketStartMs,
}));

/** What is wrong with a job's history; nothing: all invariants hold. */
function wrongs(s: Scenario, f: Facts): readonly string[] {
  const hours = f.workS / 3600;
  return [
    ...(f.billUsd > 2 * f.listUsd ? [`bill ${f.billUsd.toFixed(4)} USD, list price ${f.listUsd.toFixed(4)} USD`] : []),
    ...(s.maxCostUsd !== null && f.billUsd > s.maxCostUsd + 1e-9
      ? [`bill ${f.billUsd.toFixed(4)} USD, maxCost ${s.maxCostUsd} USD`]
      : []),
    ...f.purchasesBroken.map((pool) => `bought ${pool}, which the job may not use`),
    ...(f.unused > 2 * s.tasks + 2 ? [`${f.unused} instances bought and given back unused`] : []),
    // A gang stops as a whole when the market takes one of its instances.
    ...(!s.gang && f.preempted > s.tasks + STOPS_PER_HOUR * hours ? [`stopped ${f.preempted} times by us`] : []),
    ...(!s.gang && f.preemptedLostS > MOST_LOST * f.workS
      ? [`${f.preemptedLostS.toFixed(0)} s lost to our stops`]
      : []),
  ];
}

const generated = (seed: number): MarketOfScenarios => markets[seed % MARKETS] as MarketOfScenarios;

async function run(preset: string, seeds: readonly number[], marketOf = generated) {
  const broken: string[] = [];
  const seen = { run: 0, refused: 0, late: 0, interrupted: 0, preempted: 0, billUsd: 0, listUsd: 0 };
  for (const seed of seeds) {
    const market = marketOf(seed);
    const scenario = scenarioOf(seed, market.trace);
    const facts = await factsOf(scenario, market, { preset, solver: preset === 'ebbtide' ? solver : noSolver });
    if (facts.refused !== null) {
      seen.refused++;
      continue;
    }
    seen.run++;
    seen.late += Number(facts.late);
    seen.interrupted += Number(facts.interruptions > 0);
    seen.preempted += Number(facts.preempted > 0);
    seen.billUsd += facts.billUsd;
    seen.listUsd += facts.listUsd;
    for (const wrong of wrongs(scenario, facts)) broken.push(`${market.name} ${JSON.stringify(scenario)}: ${wrong}`);
  }
  return { broken, seen };
}

const seedsFrom = (first: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => first + i);

describe('the bill of a generated job', () => {
  it('stays below twice the list price, and no invariant breaks, under the greedy plan', async () => {
    const { broken, seen } = await run('greedy', seedsFrom(1, GREEDY));
    expect(broken).toEqual([]);
    // Not vacuous: work runs, is interrupted, is moved, and is cheaper than on demand.
    expect(seen.run).toBeGreaterThan(0.8 * GREEDY);
    expect(seen.interrupted).toBeGreaterThan(0.02 * GREEDY);
    expect(seen.preempted).toBeGreaterThan(0);
    expect(seen.billUsd).toBeLessThan(seen.listUsd);
  }, 1_800_000);

  it('does so under the default preset', async () => {
    const { broken, seen } = await run('ebbtide', seedsFrom(100_001, SOLVED));
    expect(broken).toEqual([]);
    expect(seen.run).toBeGreaterThan(0.8 * SOLVED);
    expect(seen.billUsd).toBeLessThan(seen.listUsd);
  }, 1_800_000);

  // 2016 was billed by the hour, and its spot prices rose above on-demand. Days after the first week, for ten days of
  // prices are to come.
  describe.each([
    ['2016', 90, 45],
    ['2021', 30, 60],
  ])('at published prices of %s', (year, count, days) => {
    const file = join(data, `spot-prices-us-east-1-${year}`, 'spot_price_changes.csv.gz');
    const present = existsSync(file);
    if (!present) console.warn(`skipped: no ${file} (set EBB_DATA_DIR)`);
    (present ? it : it.skip)(
      'does so',
      async () => {
        const { trace } = await openMarket(file, scratch);
        const dayMs = (seed: number): number => raw(trace.startMs) + (10 + (seed % days)) * DAY_MS;
        const { broken, seen } = await run('greedy', seedsFrom(1, count), (seed) => ({
          name: year,
          trace,
          fromMs: epochMs(dayMs(seed)),
        }));
        expect(broken).toEqual([]);
        expect(seen.run).toBeGreaterThan(0.8 * count);
        expect(seen.billUsd).toBeLessThan(0.5 * seen.listUsd);
      },
      1_800_000,
    );
  });

  it.each(['greedy', 'spot-greedy', 'uniform-progress', 'fleet', 'spot-fleet'])(
    'is for spot alone where the job allows nothing else, and the job ends, under %s',
    async (preset) => {
      const [market] = markets;
      if (market === undefined) throw new Error('there is a market');
      for (const seed of seedsFrom(1, 5)) {
        const scenario: Scenario = {
          ...scenarioOf(seed, market.trace),
          ...{ tasks: 1, cpu: 1, memoryGiB: 1, runtimeS: 3600, told: true, slack: 1.5, checkpoint: true, gang: false },
          constraints: { purchaseOptions: ['spot'] },
        };
        const facts = await factsOf(scenario, market, { preset, solver: noSolver });
        expect({ seed, state: facts.state, broken: facts.purchasesBroken }).toEqual({
          seed,
          state: 'succeeded',
          broken: [],
        });
      }
    },
    300_000,
  );
});
