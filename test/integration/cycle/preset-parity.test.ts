import { afterAll, describe, expect, it } from '@jest/globals';
import { deserialize, serialize } from 'node:v8';
import { asData, solve } from '../../../lib/cycle/steps.ts';
import type { ObservedState } from '../../../lib/cycle/decide/decision.ts';
import type { RuntimeForecast } from '../../../lib/domain/forecast.ts';
import type { StageKey } from '../../../lib/domain/forecasts.ts';
import { planId } from '../../../lib/kernel/ids.ts';
import { forecastTable, type ForecastTable, type OutlookForecast } from '../../../lib/market/forecast/forecast-data.ts';
import { bidsAsked, poolsPriced } from '../../../lib/policy/asks.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { Job } from '../../../lib/domain/job.ts';
import type { Bid } from '../../../lib/domain/pool.ts';
import type { Snapshot } from '../../../lib/domain/snapshot.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { simulate } from '../../../lib/drivers/sim/simulation.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { epochMs, plus, raw, seconds, usd, ZERO_S } from '../../../lib/kernel/units.ts';
import type { Stages } from '../../../lib/policy/contracts.ts';
import { deterministic, type Solver } from '../../../lib/policy/solver.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { marketOfPreset } from '../../../lib/market/fargate.ts';
import { traceOf } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { presetList, presetNamed } from '../../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { job, pool, resources, spec, stage } from '../../support/builders.ts';
import { EngineBench, work } from '../../support/engine-bench.ts';
import { after, mixedTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';
import { NO_BELIEFS } from '../../../bench/load/no-beliefs.ts';

/**
 * One small scenario, in which the cheapest spot pool is taken away, decided by the engine in one process, by the cycle
 * in steps with data between them, and by the simulator: the same plans under each preset. How long an instance takes
 * to start follows from its id, which is another in the simulator: there the first plan is compared, and each later one
 * with the plan that the steps make of the same snapshot.
 */
const highs = highsSolver();
const solver = deterministic(highs, 10);
afterAll(() => highs.close());

const OWN = { mixed: { extends: 'ebbtide', plan: 'fcfs', scale: 'cheapest-spot' } } as const;
const SETTINGS = { refundRule: 'none', solverGap: 0, hazardPriorPerHour: 0.01, presets: OWN } as const;
const VCPUS = 8;

interface Wanted {
  readonly name: string;
  readonly tasks: number;
  readonly runtimeS: number;
  readonly deadlineS: number | null;
  readonly submittedS: number;
  readonly saves?: true;
}
/** Those that come at the same time differ in class: the order of their ids, which are drawn, decides nothing. */
const WANTED: readonly Wanted[] = [
  { name: 'late', submittedS: 0, tasks: 2, runtimeS: 1800, deadlineS: 3600, saves: true },
  { name: 'any', submittedS: 0, tasks: 4, runtimeS: 600, deadlineS: null },
  { name: 'long', submittedS: 60, tasks: 3, runtimeS: 1200, deadlineS: 4 * 3600, saves: true },
  { name: 'short', submittedS: 60, tasks: 4, runtimeS: 5, deadlineS: null },
];

const jobSpec = ({ name, tasks, runtimeS, deadlineS, saves }: Wanted) =>
  spec({
    name,
    class: deadlineS === null ? 'best-effort' : 'deadline',
    deadline: deadlineS === null ? null : { afterS: seconds(deadlineS) },
    stages: [
      stage({
        tasks,
        env: work(runtimeS),
        expectedRuntimeS: seconds(runtimeS),
        resources: resources(name === 'short' ? 1 : 2),
        checkpoint: saves === true ? SAVES : null,
      }),
    ],
  });

const bidText = (bid: Bid): string => (bid === 'uncapped' ? bid : String(raw(bid)));

/** What the plan and scale stages answered, cycle by cycle, without the names that a run makes up. */
function recorded(stages: Stages<Solver>, log: string[]): Stages<Solver> {
  const at = ({ nowMs }: Snapshot): string => `${(raw(nowMs) - raw(START_MS)) / 1000} s`;
  return {
    ...stages,
    plan: async (input, of) => {
      const allotment = await stages.plan(input, of);
      const { jobs } = input.snapshot;
      const groups = new Map(input.snapshot.groups.map((g) => [g.id, g]));
      const name = (id: Parameters<typeof jobs.get>[0]): string => jobs.get(id)?.spec.name ?? '?';
      const starts = allotment.starts.map(({ option, count }) => {
        const group = groups.get(option.group);
        return `${group === undefined ? '?' : name(group.job)} x ${count} on ${option.offer.pool} at ${bidText(option.offer.bid)}`;
      });
      const stops = allotment.preemptions.map(({ attempt }) => {
        const of = input.snapshot.running.find((r) => r.attempt.id === attempt);
        return of === undefined ? '?' : `stop ${name(of.attempt.job)}`;
      });
      const moves = allotment.moves.map(
        (m) => `move ${name(m.running.attempt.job)} to ${JSON.stringify(m.to ?? 'on-demand')}`,
      );
      log.push(`${at(input.snapshot)} plan: ${[...starts, ...stops, ...moves].sort().join(', ')}`);
      return allotment;
    },
    scale: (input) => {
      const answer = stages.scale(input);
      const bought = answer.purchases.map((p) => `${p.count} ${p.pool} at ${bidText(p.bid)}`);
      const given = answer.releases.map((r) => `-${input.snapshot.instances.get(r.instance)?.pool.id ?? '?'}`);
      log.push(`${at(input.snapshot)} scale: ${[...bought, ...given].sort().join(', ')}`);
      return answer;
    },
  };
}

interface Outcome {
  readonly log: readonly string[];
  readonly interrupted: number;
  readonly succeeded: number;
}

const jobOf = (w: Wanted): Job =>
  job({
    name: `j-${w.name}`,
    submittedMs: after(w.submittedS),
    deadlineMs: w.deadlineS === null ? null : after(w.submittedS + w.deadlineS),
    spec: jobSpec(w),
  });

async function benched(preset: string, stepped: boolean): Promise<Outcome> {
  const log: string[] = [];
  const bench = new EngineBench({
    trace: marketOfPreset(mixedTrace, presetNamed(preset, OWN).stages),
    startMs: START_MS,
    stepped,
    config: SETTINGS,
    vcpus: VCPUS,
    preset,
    solver,
    stages: (of) => recorded(of, log),
  });
  const [first, later] = [0, 60].map((s) => WANTED.filter((w) => w.submittedS === s).map(jobOf));
  await bench.submit(first ?? []);
  const submits = (store: Store) => store.submit((later ?? []).map((of) => ({ job: of, idempotency: null })));
  await bench.drive({ deeds: [{ atMs: after(60), act: submits }] });
  const types = (await bench.store.events(0, 10_000)).map((e) => e.type);
  return { log, ...counted(types) };
}

/** What a decision of the simulator began from, as data. */
interface Scene {
  readonly snapshot: Snapshot;
  readonly runtime: ReadonlyMap<StageKey, RuntimeForecast>;
  readonly market: ForecastTable;
}

async function simulated(preset: string): Promise<Outcome & { readonly scenes: readonly Scene[] }> {
  const log: string[] = [];
  const types: string[] = [];
  const scenes: Scene[] = [];
  const { stages: own, asks } = presetNamed(preset, OWN);
  const stages: Stages<Solver> = {
    ...own,
    value: (context) => {
      const { snapshot, forecasts } = context;
      // Moves are valued again, in a snapshot of their own.
      if (scenes.at(-1)?.snapshot.nowMs !== snapshot.nowMs) {
        const market = forecastTable(
          forecasts.market as OutlookForecast,
          snapshot.nowMs,
          bidsAsked(snapshot, asks, context.config),
          poolsPriced(snapshot, own),
        );
        const data: Scene = { snapshot: asData(snapshot), runtime: new Map(forecasts.runtime), market };
        scenes.push(deserialize(serialize(data)) as Scene);
      }
      return own.value(context);
    },
  };
  const trace = marketOfPreset(mixedTrace, own);
  await simulate({
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: START_MS,
    toMs: plus(START_MS, seconds(12 * 3600)),
    jobs: WANTED.map((w): WorkloadJob => ({
      key: w.name,
      submittedS: w.submittedS,
      spec: jobSpec(w),
      truth: new Map([['main', { runtimeS: Float64Array.from({ length: w.tasks }, () => w.runtimeS) }]]),
    })),
    namesJobs: false,
    deciders: () => ({ name: preset, stages: recorded(stages, log), asks }),
    solver,
    config: schedulerConfig.parse(SETTINGS),
    vcpus: VCPUS,
    seed: 1,
    minGapS: seconds(1),
    setupS: ZERO_S,
    onEvent: (e) => types.push(e.type),
  });
  return { log, scenes, ...counted(types) };
}

/** The same scenes, decided by the step that decides. */
async function solvedAgain(preset: string, scenes: readonly Scene[]): Promise<readonly string[]> {
  const log: string[] = [];
  const stages = recorded(presetNamed(preset, OWN).stages, log);
  for (const { snapshot, ...forecasts } of scenes) {
    const observed: ObservedState = {
      token: 1,
      plan: planId('p-again'),
      snapshot,
      lastRanMs: new Map(),
      draining: false,
    };
    await solve(observed, forecasts, {
      stages,
      preset,
      solver,
      config: schedulerConfig.parse(SETTINGS),
      beliefs: NO_BELIEFS,
      explains: false,
    });
  }
  return log;
}

const counted = (types: readonly string[]) => ({
  interrupted: types.filter((t) => t === 'attempt-interrupted').length,
  succeeded: types.filter((t) => t === 'attempt-succeeded').length,
});

/** `eva` takes a pool here that is not interrupted. */
const usesSpot = (preset: string): boolean => !['on-demand', 'fargate', 'eva'].includes(preset);
const TASKS = WANTED.reduce((n, w) => n + w.tasks, 0);

describe('every preset, and one that a user mixed', () => {
  it.each([...presetList(OWN).map((p) => p.name)])(
    '%s plans the same in one process, in steps and in the simulator',
    async (preset) => {
      const whole = await benched(preset, false);
      expect(whole.succeeded).toBe(TASKS);
      expect(whole.log.length).toBeGreaterThan(10);
      if (usesSpot(preset)) expect(whole.interrupted).toBeGreaterThan(0);
      expect(await benched(preset, true)).toEqual(whole);
      const { log, scenes, ...ends } = await simulated(preset);
      expect(ends.succeeded).toBe(TASKS);
      if (usesSpot(preset)) expect(ends.interrupted).toBeGreaterThan(0);
      const first = (of: readonly string[]): readonly string[] => of.filter((line) => line.startsWith('0 s'));
      expect(first(log)).toEqual(first(whole.log));
      expect(await solvedAgain(preset, scenes)).toEqual(log);
    },
    60_000,
  );
});

/** Spot at 0.05 USD per hour until the day before, then at 0.16, just below on-demand. */
const dearNow = (): MarketTrace => {
  const [startMs, endMs] = [raw(START_MS) - 7 * 86_400_000, raw(START_MS) + 7 * 86_400_000];
  return traceOf({ name: 'dear now', startMs: epochMs(startMs), endMs: epochMs(endMs) }, [
    {
      type: pool().type,
      zone: 'a',
      onDemandUsdPerHour: 0.17,
      prices: {
        atMs: Float64Array.of(startMs, raw(START_MS) - 60_000),
        usdPerHour: Float64Array.of(0.05, 0.16),
      },
      availability: { atMs: Float64Array.of(startMs), available: Uint8Array.of(1) },
    },
  ]);
};

describe('a job whose budget pays for spot at its mean price alone', () => {
  it.each(['on-demand', 'ebbtide', 'fleet'])('ends alike in one process and in steps under %s', async (preset) => {
    const ends = [false, true].map(async (stepped) => {
      const bench = new EngineBench({ trace: dearNow(), startMs: START_MS, stepped, vcpus: VCPUS, preset });
      const poor = jobOf({ name: 'poor', submittedS: 0, tasks: 1, runtimeS: 7200, deadlineS: null });
      await bench.submit([{ ...poor, spec: { ...poor.spec, maxCostUsd: usd(0.11) } }]);
      await bench
        .drive({ withinS: 3600 })
        .catch((error: unknown) => expect(String(error)).toContain('not done within'));
      return (await bench.jobs()).map(({ state, stateReason }) => ({ state, stateReason }));
    });
    const [whole, steps] = await Promise.all(ends);
    expect(steps).toEqual(whole);
    expect(whole?.[0]?.state).toBe(preset === 'on-demand' ? 'failed' : 'pending');
  });
});
