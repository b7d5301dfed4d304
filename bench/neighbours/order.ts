/** Runs as plain data: a day of mixed work in a world, under a preset. */
import { forecastOf } from '../../lib/cli/simulation/compose-simulation.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import { simulate } from '../../lib/drivers/sim/simulation.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import { epochMs, plus, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { settingsUnder } from '../../lib/policy/preset-chain.ts';
import { deterministic } from '../../lib/policy/solver.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { jobsOf } from '../default/jobs.ts';
import { instantsIn, priceMarket } from '../default/markets.ts';
import type { Part } from '../default/ground.ts';
import { worldOf, type World } from './worlds.ts';

export interface Order {
  readonly preset: string;
  readonly world: World;
  readonly data: string;
  readonly year: string;
  readonly seed: number;
  readonly part: Part;
}

export interface Answer extends Order {
  readonly figures: {
    readonly usd: number;
    readonly late: number;
    readonly deadlines: number;
    readonly undone: number;
    /** Mean seconds from submission to completion. */
    readonly jctS: number;
    readonly launches: number;
    readonly tookS: number;
  };
}

/** ebbtide that does not count who slows whom down. */
export const UNAWARE = 'ebbtide-unaware';
const OWN: OwnPresets = { [UNAWARE]: { extends: 'ebbtide', settings: { neighbours: false } } };
const SOLVER_NODES = 50;
const VCPUS = 2000;
/** A day of jobs, and time for what is late. */
const DAY = 'synthetic:perHour=20,jobs=480,medianRuntimeS=1200,runtimeSigma=0.7,maxTasks=20,templates=24';
const UNTIL_S = 3 * 86_400;
/** Reported days lie in the middle of equal stretches of the prices, those that are tuned on at their beginning. */
const STRETCHES = 6;
const AT = { tune: 0, report: 0.5 } as const;

export async function answerOf(order: Order): Promise<Answer> {
  const began = performance.now();
  const { preset, world, data, year, seed, part } = order;
  const trace = await priceMarket(data, year);
  const { interference, jobs: as } = worldOf(world, data);
  const jobs = as(await jobsOf(DAY, { seed }));
  const fromMs = epochMs(instantsIn(trace, STRETCHES, AT[part])[seed % STRETCHES] ?? NaN);
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: 'preset', presets: OWN });
  const config = schedulerConfig.parse({ preset, presets: OWN });
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs,
      toMs: plus(fromMs, seconds(UNTIL_S)),
      jobs,
      namesJobs: false,
      deciders: decidersNamed(preset, OWN),
      forecast,
      solver,
      config: settingsUnder(preset, config),
      vcpus: VCPUS,
      seed,
      minGapS: seconds(5),
      setupS: ZERO_S,
      interference,
    });
    const { totals, jobs: columns } = outcomeOf(result, { preset, seed, fromMs });
    const done = columns.key.flatMap((_, i) => {
      const s = ((columns.finishedMs[i] ?? NaN) - (columns.submittedMs[i] ?? NaN)) / 1000;
      return columns.state[i] === 'succeeded' && Number.isFinite(s) ? [s] : [];
    });
    return {
      ...order,
      figures: {
        usd: totals.billedUsd,
        late: totals.missed,
        deadlines: totals.deadlines,
        undone: totals.unfinished + totals.failed,
        jctS: done.reduce((a, b) => a + b, 0) / Math.max(1, done.length),
        launches: totals.launches,
        tookS: (performance.now() - began) / 1000,
      },
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}
