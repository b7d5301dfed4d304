/** One preset on the jobs of one seed, on a fixed cluster, and what came of it. */
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { epochMs, plus, raw, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { forecastOf } from '../../lib/cli/simulation/compose-simulation.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import { simulate } from '../../lib/drivers/sim/simulation.ts';
import type { Settled } from '../../lib/drivers/sim/collector.ts';
import type { Interference } from '../../lib/drivers/sim/interference/interference.ts';
import type { TrueRuntime } from '../../lib/drivers/sim/truth.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../lib/market/cluster.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { settingsUnder } from '../../lib/policy/preset-chain.ts';
import { deterministic } from '../../lib/policy/solver.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { earlierSuccesses } from '../stratus/earlier.ts';

const SOLVER_NODES = 50;
const FROM = epochMs(Date.UTC(2026, 0, 5));

export interface ClusterRun {
  readonly preset: string;
  readonly own: OwnPresets;
  /** As `--cluster` takes it. */
  readonly cluster: string;
  readonly jobs: readonly WorkloadJob[];
  /** Learned before the first job. */
  readonly earlier: readonly WorkloadJob[];
  readonly runtime: TrueRuntime | null;
  readonly interference?: Interference;
  readonly seed: number;
  readonly gapS: number;
  /** Longest time between two decisions. */
  readonly cycleS: number;
  /** End of the simulation, finished or not. */
  readonly untilS: number;
  readonly settings?: Partial<SchedulerConfig>;
}

export interface ClusterFigures {
  /** Seconds from submission to completion, by key; jobs that are not done are absent. */
  readonly jctS: Readonly<Record<string, number>>;
  /** Seconds from submission to the first start, by key; jobs that never started are absent. */
  readonly waitS: Readonly<Record<string, number>>;
  /** Jobs that ended after their deadline, did not end, or were refused for it. */
  readonly late: readonly string[];
  readonly undone: number;
  readonly attempts: number;
  readonly copies: number;
  /** Slot-seconds of attempts that another attempt of their task beat, as a part of all. */
  readonly superseded: number;
  readonly preempted: number;
  readonly cycles: number;
  readonly tookS: number;
}

export async function runOnCluster({ preset, own, jobs, runtime, seed, ...of }: ClusterRun): Promise<ClusterFigures> {
  const began = performance.now();
  const trace = marketWithCluster(null, of.cluster);
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: 'preset', presets: own });
  const tally = new Tally();
  const config = { ...settingsOfCluster(trace), preset, presets: own, cyclePeriodS: of.cycleS, ...of.settings };
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs: FROM,
      toMs: plus(FROM, seconds(of.untilS)),
      jobs,
      namesJobs: false,
      deciders: decidersNamed(preset, own),
      forecast,
      solver,
      config: settingsUnder(preset, schedulerConfig.parse(config)),
      vcpus: ownVcpus(trace),
      seed,
      minGapS: seconds(of.gapS),
      setupS: ZERO_S,
      runtime,
      ...(of.interference === undefined ? {} : { interference: of.interference }),
      earlier: earlierSuccesses(of.earlier, FROM),
      onSettled: tally.add,
    });
    const { jobs: columns, totals } = outcomeOf(result, { preset, seed, fromMs: FROM });
    const done = columns.key.map((_, i) => columns.state[i] === 'succeeded');
    /** Seconds from submission, by key. */
    const since = (atMs: ArrayLike<number>, is: (i: number) => boolean): Readonly<Record<string, number>> =>
      Object.fromEntries(
        columns.key.flatMap((key, i) => {
          const s = ((atMs[i] ?? NaN) - (columns.submittedMs[i] ?? NaN)) / 1000;
          return is(i) && Number.isFinite(s) ? [[key, s]] : [];
        }),
      );
    const isLate = (i: number): boolean => {
      // NaN: it has none.
      const deadline = columns.deadlineMs[i] ?? NaN;
      return Number.isFinite(deadline) && !(done[i] === true && (columns.finishedMs[i] ?? Infinity) <= deadline);
    };
    // A job that admission refuses is as late as one that is never done.
    const known = new Set(columns.key);
    const refused = jobs.filter(({ key, spec }) => spec.class === 'deadline' && !known.has(key));
    return {
      jctS: since(columns.finishedMs, (i) => done[i] === true),
      waitS: since(columns.startedMs, () => true),
      late: [...columns.key.filter((_, i) => isLate(i)), ...refused.map(({ key }) => key)],
      undone: totals.unfinished + totals.failed + totals.refused,
      ...tally.figures,
      cycles: result.cycles.count,
      tookS: (performance.now() - began) / 1000,
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}

class Tally {
  #attempts = 0;
  #copies = 0;
  #preempted = 0;
  #ranS = 0;
  #supersededS = 0;

  readonly add = ({ attempts }: Settled): void => {
    for (const { startedMs, endedMs, role, outcome } of attempts) {
      if (startedMs === null || endedMs === null) continue;
      const s = (raw(endedMs) - raw(startedMs)) / 1000;
      this.#attempts++;
      this.#ranS += s;
      if (role === 'copy') this.#copies++;
      if (outcome === 'preempted') this.#preempted++;
      if (outcome === 'superseded') this.#supersededS += s;
    }
  };

  get figures(): Pick<ClusterFigures, 'attempts' | 'copies' | 'superseded' | 'preempted'> {
    return {
      attempts: this.#attempts,
      copies: this.#copies,
      superseded: this.#ranS > 0 ? this.#supersededS / this.#ranS : 0,
      preempted: this.#preempted,
    };
  }
}
