import { describe, expect, it } from '@jest/globals';
import { runOn } from '../../../bench/deadline-case.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { Stages } from '../../../lib/policy/contracts.ts';
import { epochMs, plus, raw, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { oracle } from '../../../lib/drivers/sim/oracle.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { simulate, type Deciders } from '../../../lib/drivers/sim/simulation.ts';
import type { Truth } from '../../../lib/drivers/sim/truth.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { pool, resources, spec, stage } from '../../support/builders.ts';
import { onOffMarket as market, START } from '../../support/on-off-market.ts';
import { noSolver } from '../../../bench/load/no-solver.ts';

const long = (trace: MarketTrace, preset: string, over: { fraction?: number; overheadHours?: number } = {}) =>
  runOn(trace, { window: 0, startMs: START, hours: 24, fraction: 0.8, overheadHours: 0.05, preset, ...over });

describe('a long job with a deadline on spot that comes and goes', () => {
  // 19.2 h of work in 24: 4.8 h of slack. Spot is gone for longer than that, then it is back.
  const outage = market([
    [0, 2],
    [7.5, 40],
  ]);

  it('goes back to spot after an outage under ebbtide, which spot-greedy cannot', async () => {
    const [ebbtide, greedy, bound] = await Promise.all(
      ['ebbtide', 'spot-greedy', 'oracle'].map((preset) => long(outage, preset)),
    );
    expect([ebbtide?.late, greedy?.late, bound?.late]).toEqual([false, false, false]);
    // Greedy: 2 h on spot, then 17.2 h on demand. With the way back: at most some 2 h of the outage on demand.
    expect(greedy?.usd).toBeGreaterThan(17);
    expect(ebbtide?.usd).toBeLessThan(8.5);
    expect(bound?.usd).toBeLessThanOrEqual((ebbtide?.usd ?? 0) + 0.1);
  }, 60_000);

  it('waits for spot in a young outage and pays for none of it, and hedges in one that lasts', async () => {
    const [short, lasting] = await Promise.all(
      [[1, 40] as const, [4, 40] as const].map((up) => long(market([up]), 'ebbtide')),
    );
    expect([short?.late, lasting?.late]).toEqual([false, false]);
    expect(short?.usd).toBeLessThan(0.3 * 19.2 * 1.05);
    // On on-demand for some of the 4.8 h of slack, where waiting for all of it would have been luck.
    expect(lasting?.usd).toBeLessThan(0.3 * 19.2 * 1.35);
  }, 60_000);
});

it('a job waits out an outage of ten minutes at no cost, however much it has saved', async () => {
  const short = market([
    [0, 6],
    [6.17, 40],
  ]);
  const { usd, late, attempts, interruptions } = await long(short, 'ebbtide', { fraction: 0.7 });
  expect([late, attempts, interruptions]).toEqual([false, 2, 1]);
  expect(usd).toBeLessThan(0.3 * 16.8 * 1.03);
}, 60_000);

const ON_OFF = market([
  [0, 0.6],
  [0.8, 40],
]);

async function run(jobs: readonly WorkloadJob[], deciders: (truth: Truth) => Deciders, trace = ON_OFF) {
  const events: { atMs: number; text: string }[] = [];
  const result = await simulate({
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: epochMs(START),
    toMs: plus(epochMs(START), seconds(86_400)),
    jobs,
    namesJobs: false,
    deciders,
    solver: noSolver,
    config: schedulerConfig.parse({}),
    vcpus: 1000,
    seed: 1,
    minGapS: seconds(1),
    setupS: ZERO_S,
    onEvent: (e) => events.push({ atMs: raw(e.atMs), text: `${e.type} ${e.text}` }),
  });
  return { events, outcome: outcomeOf(result, { preset: 'any', seed: 1, fromMs: epochMs(START) }) };
}

const blind = (name: string): ((truth: Truth) => Deciders) => {
  const stages: Stages<Solver> = presetNamed(name).stages;
  return () => ({ name, stages });
};

describe('the fleet preset', () => {
  it('runs one task per instance', async () => {
    const jobs: WorkloadJob[] = [
      {
        key: 'wide',
        submittedS: 0,
        truth: new Map([['main', { runtimeS: new Float64Array(6).fill(600) }]]),
        spec: spec({ name: 'wide', stages: [stage({ tasks: 6, resources: resources(1) })] }),
      },
    ];
    const fleet = await run(jobs, blind('fleet'));
    const packed = await run(jobs, blind('ebbtide'));
    expect(fleet.outcome.totals.launches).toBe(6);
    expect(packed.outcome.totals.launches).toBe(2);
  }, 60_000);
});

describe('the oracle', () => {
  // Spot is gone from 0.6 h to 0.8 h.
  const job = (over: {
    readonly runtimeS: number;
    readonly deadlineS: number;
    readonly submittedS?: number;
  }): WorkloadJob => ({
    key: `at-${over.submittedS ?? 0}`,
    submittedS: over.submittedS ?? 0,
    truth: new Map([['main', { runtimeS: Float64Array.of(over.runtimeS) }]]),
    spec: spec({
      name: `at-${over.submittedS ?? 0}`,
      class: 'deadline',
      deadline: { afterS: seconds(over.deadlineS) },
      stages: [stage({ tasks: 1, resources: resources(1), checkpoint: null, expectedRuntimeS: seconds(60) })],
    }),
  });

  it('runs what saves nothing where it will not be taken', async () => {
    const { outcome } = await run([job({ runtimeS: 3000, deadlineS: 4200 })], oracle);
    expect(outcome.totals).toMatchObject({ succeeded: 1, missed: 0, interruptions: 0, attempts: 1 });
  }, 60_000);

  /** As where other work moves: what that may go to is appraised between the plan and the placing. */
  const appraisingAgain = (truth: Truth): Deciders => {
    const { stages, ...rest } = oracle(truth);
    const plan: typeof stages.plan = async (input, solver) => {
      const planned = await stages.plan(input, solver);
      const { snapshot } = input;
      const worths = { groups: new Map(), ofRunning: () => undefined };
      stages.appraise({ ...input, snapshot: { ...snapshot, groups: [] }, worths });
      return planned;
    };
    return { ...rest, stages: { ...stages, plan } };
  };

  it.each([
    ['', oracle],
    [', also where other work moves', appraisingAgain],
  ])(
    'leaves room alone that will be taken before%s',
    async (_, deciders) => {
      const zone = (name: string, price: number): SpotMarket => ({
        type: pool().type,
        zone: name,
        onDemandUsdPerHour: 1,
        prices: { atMs: Float64Array.of(START - 3_600_000), usdPerHour: Float64Array.of(price) },
        availability: null,
      });
      const soonGone = { atMs: Float64Array.of(START, START + 2_160_000), available: Uint8Array.of(1, 0) };
      const span = { startMs: epochMs(START - 3_600_000), endMs: epochMs(START + 4 * 86_400_000) };
      const cheap = { ...zone('test-1a', 0.3), availability: soonGone };
      const trace = traceOf({ name: 'two zones', ...span }, [cheap, zone('test-1b', 0.4)]);
      // The first is on the cheap machine, with room beside it, when the second comes, which would be taken there.
      const jobs = [job({ runtimeS: 600, deadlineS: 4200 }), job({ runtimeS: 3000, deadlineS: 8000, submittedS: 200 })];
      const { outcome, events } = await run(jobs, deciders, trace);
      expect(outcome.totals).toMatchObject({ succeeded: 2, missed: 0, interruptions: 0, attempts: 2 });
      expect(
        events
          .map((e) => e.text)
          .filter((text) => /spot/.test(text))
          .join(),
      ).toMatch(/test-1a.*test-1b/);
    },
    60_000,
  );

  it('does what can only be late', async () => {
    const { outcome } = await run([job({ runtimeS: 3000, deadlineS: 600 })], oracle);
    expect(outcome.totals).toMatchObject({ succeeded: 1, missed: 1 });
  }, 60_000);
});
