/** One preset on one window of one workload and market, and what came of it. */
import { schedulerConfig } from '../../lib/domain/config.ts';
import type { Attempt } from '../../lib/domain/job.ts';
import { milliCpuIn } from '../../lib/domain/resources.ts';
import { plus, raw, seconds, ZERO_S, type EpochMs } from '../../lib/kernel/units.ts';
import { forecastOf } from '../../lib/cli/simulation/compose-simulation.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import { simulate } from '../../lib/drivers/sim/simulation.ts';
import type { Settled } from '../../lib/drivers/sim/collector.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { deterministic } from '../../lib/policy/solver.ts';
import type { JobColumns } from '../../lib/report/outcome.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { earlierSuccesses } from './earlier.ts';
import { billingOf } from './markets.ts';
import { idealS, jobOf } from './work.ts';

/** A scheduling event each minute (Stratus, section 3.2.4); events in between are at least GAP_S apart. */
const CYCLE_S = 60;
const SOLVER_NODES = 50;
/** Effectively no limit: "valid instance requests are always fulfilled" (section 3.3.1). */
const VCPUS = 1e6;

export interface Setting {
  readonly trace: MarketTrace;
  readonly fromMs: EpochMs;
  readonly windowS: number;
  readonly gapS: number;
  readonly seed: number;
  /** Presets beside the shipped ones. */
  readonly own: OwnPresets;
}

export interface Figures {
  readonly usd: number;
  /** Requested part of what was rented, by resource: vCPU and memory. */
  readonly usedCpu: number;
  readonly usedMemory: number;
  /** Time from submission to completion over the ideal running time, one per job of the trace. */
  readonly latencies: readonly number[];
  readonly launches: number;
  /** Instances on which no task ever ran. */
  readonly unused: number;
  readonly moves: number;
  readonly interruptions: number;
  readonly tasks: number;
  /** Jobs of the simulation that did not succeed. */
  readonly undone: number;
  readonly onDemandUsd: number;
  readonly tookS: number;
}

/** Time for jobs that take longer than the window. */
const AFTER_S = 6 * 3600;

export async function runOf(
  preset: string,
  jobs: readonly WorkloadJob[],
  { earlier, ...setting }: Setting & { readonly earlier: readonly WorkloadJob[] },
): Promise<Figures> {
  const { trace, fromMs, windowS, seed, own } = setting;
  const began = performance.now();
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: 'preset', presets: own });
  const tally = new Tally();
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs,
      toMs: plus(fromMs, seconds(windowS + AFTER_S)),
      jobs,
      namesJobs: false,
      deciders: decidersNamed(preset, own),
      forecast,
      solver,
      config: schedulerConfig.parse({ billing: billingOf(trace), cyclePeriodS: CYCLE_S }),
      vcpus: VCPUS,
      seed,
      minGapS: seconds(setting.gapS),
      setupS: ZERO_S,
      earlier: earlierSuccesses(earlier, fromMs),
      onSettled: tally.add,
    });
    const { totals, jobs: columns } = outcomeOf(result, { preset, seed, fromMs });
    return {
      usd: totals.billedUsd,
      ...tally.figures,
      latencies: latenciesOf(columns, jobs),
      launches: totals.launches,
      interruptions: totals.interruptions,
      tasks: totals.tasks,
      undone: totals.unfinished + totals.failed + totals.refused,
      onDemandUsd: totals.onDemandUsd,
      tookS: (performance.now() - began) / 1000,
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}

class Tally {
  #moves = 0;
  #unused = 0;
  readonly #rented = { cpu: 0, memory: 0 };
  readonly #requested = { cpu: 0, memory: 0 };

  readonly add = ({ instance, pool, rows, attempts }: Settled): void => {
    if (instance.launchedMs === null) return;
    const endMs = raw(instance.endedMs ?? rows.at(-1)?.toMs ?? instance.launchedMs);
    const hours = (endMs - raw(instance.launchedMs)) / 3_600_000;
    this.#rented.cpu += hours * milliCpuIn(pool.type.capacity);
    this.#rented.memory += hours * raw(pool.type.capacity.memory);
    for (const a of attempts) this.#attempt(a, endMs);
    if (!attempts.some((a) => a.startedMs !== null)) this.#unused++;
  };

  #attempt({ startedMs, endedMs, resources, outcome }: Attempt, endMs: number): void {
    if (startedMs === null) return;
    const hours = Math.max(0, raw(endedMs ?? startedMs) - raw(startedMs)) / 3_600_000;
    const ranHours = endedMs === null ? Math.max(0, endMs - raw(startedMs)) / 3_600_000 : hours;
    this.#requested.cpu += ranHours * milliCpuIn(resources);
    this.#requested.memory += ranHours * raw(resources.memory);
    if (MOVED.has(outcome ?? '')) this.#moves++;
  }

  get figures(): Pick<Figures, 'usedCpu' | 'usedMemory' | 'moves' | 'unused'> {
    return {
      usedCpu: this.#requested.cpu / Math.max(this.#rented.cpu, 1e-9),
      usedMemory: this.#requested.memory / Math.max(this.#rented.memory, 1e-9),
      moves: this.#moves,
      unused: this.#unused,
    };
  }
}

/** Outcomes of attempts that our own decision stopped: nothing else stops work here. */
const MOVED: ReadonlySet<string> = new Set(['preempted', 'moved']);

/** One per job of the trace, also where its tasks are jobs of their own; jobs that are not done are left out. */
function latenciesOf(columns: JobColumns, jobs: readonly WorkloadJob[]): readonly number[] {
  const ideals = new Map<string, number>();
  for (const job of jobs) ideals.set(jobOf(job.key), Math.max(ideals.get(jobOf(job.key)) ?? 0, idealS(job)));
  const times = new Map<string, { fromMs: number; toMs: number }>();
  columns.key.forEach((key, i) => {
    const of = times.get(jobOf(key)) ?? { fromMs: Infinity, toMs: -Infinity };
    of.fromMs = Math.min(of.fromMs, columns.submittedMs[i] ?? NaN);
    of.toMs = columns.state[i] === 'succeeded' ? Math.max(of.toMs, columns.finishedMs[i] ?? NaN) : NaN;
    times.set(jobOf(key), of);
  });
  return [...times].flatMap(([key, { fromMs, toMs }]) => {
    const latency = (toMs - fromMs) / 1000 / Math.max(1, ideals.get(key) ?? NaN);
    return Number.isFinite(latency) ? [latency] : [];
  });
}
