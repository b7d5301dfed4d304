/** Runs one case under each preset, on the jobs that all of them take, with the references of these jobs. */
import { schedulerConfig } from '../../lib/domain/config.ts';
import { certain } from '../../lib/domain/distribution.ts';
import { seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { forecastOf } from '../../lib/cli/simulation/compose-simulation.ts';
import { newJob } from '../../lib/cycle/admit/new-job.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../lib/drivers/sim/outcome-of-run.ts';
import { referencesOf } from '../../lib/drivers/sim/reference/references.ts';
import { ORACLE } from '../../lib/report/hindsight.ts';
import { simulate, type Deciders } from '../../lib/drivers/sim/simulation.ts';
import type { Truth } from '../../lib/drivers/sim/truth.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { highsSolver } from '../../lib/drivers/solver/highs-solver.ts';
import { jobId } from '../../lib/kernel/ids.ts';
import type { EstimatePolicy } from '../../lib/policy/contracts.ts';
import type { AttemptEnded, LearningEvent } from '../../lib/policy/learner.ts';
import { deterministic } from '../../lib/policy/solver.ts';
import { forecastStages } from '../../lib/stages/estimate/stage-forecasts.ts';
import { PartsTally, type CostParts } from '../cost-parts.ts';
import type { GroundCase, Scene } from './ground.ts';

const SOLVER_NODES = 50;

/** What one preset made of one case. */
export interface CaseResult extends Omit<GroundCase, 'of'> {
  readonly preset: string;
  readonly usd: number;
  /** Before refunds. */
  readonly grossUsd: number;
  readonly deadlines: number;
  /** Jobs with a deadline that were not done by it, and other jobs that were not done. */
  readonly missed: number;
  readonly undone: number;
  readonly onDemandUsd: number | null;
  readonly lowerBoundUsd: number | null;
  readonly parts: CostParts;
  readonly tookS: number;
}

/** Running times as the job file tells them, which is right. */
const known: EstimatePolicy = ({ snapshot }) =>
  forecastStages(snapshot, (_, stage) => ({
    runtime: certain(stage.expectedRuntimeS ?? ZERO_S),
    basis: 'hint',
    reason: 'the running time is known',
  }));

/** Runs of tasks that succeeded before, as learners were told of them. */
export const earlierRuns = ({ earlier, fromMs }: Pick<Scene, 'earlier' | 'fromMs'>): readonly LearningEvent[] =>
  earlier.flatMap((given, n) => {
    const job = newJob(given.spec, {
      id: jobId(`j-earlier-${n}`),
      at: fromMs,
      after: [],
      admission: { feasible: true, notes: [] },
    });
    return given.spec.stages.flatMap((stage) =>
      Array.from(given.truth.get(stage.name)?.runtimeS ?? [], (s, index) => {
        const attempt = { job: job.id, stage: stage.name, index, number: 1, resources: stage.resources };
        const event = {
          kind: 'attempt-ended',
          atMs: fromMs,
          outcome: 'succeeded',
          job,
          stage,
          attempt,
          neighbours: [],
        };
        // No instance and no pool: learners of running times ask for none.
        return { ...event, runtimeS: seconds(s), usage: null } as unknown as AttemptEnded;
      }),
    );
  });

/** Null: not one job that all presets take. */
export async function runCase(
  given: Omit<GroundCase, 'of'>,
  scene: Scene,
  presets: readonly string[],
): Promise<readonly CaseResult[] | null> {
  const refused = new Set<string>();
  for (;;) {
    const jobs = scene.jobs.filter((j) => !refused.has(j.key));
    if (jobs.length === 0) return null;
    const results: CaseResult[] = [];
    for (const preset of presets) {
      const { result, refusedKeys } = await runPreset({ ...scene, jobs }, preset);
      for (const key of refusedKeys) refused.add(key);
      // The others would run what has just been found to be refused.
      if (refusedKeys.length > 0) break;
      results.push({ ...given, preset, ...result });
    }
    if (results.length < presets.length) continue;
    const { trace, fromMs, toMs, setupS } = scene;
    const config = schedulerConfig.parse(scene.config);
    const references = referencesOf(jobs, { trace, config, fromMs, toMs, setupS });
    return withHindsight(results).map((r) => ({ ...r, ...references }));
  }
}

/** As in reports of simulations (lib/report/hindsight.ts): the oracle is no dearer than another preset. */
function withHindsight(results: readonly CaseResult[]): readonly CaseResult[] {
  const left = (r: CaseResult): number => r.missed + r.undone;
  return results.map((result) => {
    if (result.preset !== ORACLE) return result;
    const best = results.reduce(
      (a, b) => (left(b) < left(a) || (left(b) === left(a) && b.usd < a.usd) ? b : a),
      result,
    );
    return { ...best, preset: ORACLE, tookS: result.tookS };
  });
}

type Ran = Omit<CaseResult, keyof Omit<GroundCase, 'of'> | 'preset'>;

async function runPreset(
  scene: Scene,
  preset: string,
): Promise<{ readonly result: Ran; readonly refusedKeys: readonly string[] }> {
  const { trace, fromMs, toMs, jobs, setupS, minGapS, vcpus, seed } = scene;
  const began = performance.now();
  const solver = deterministic(highsSolver(), SOLVER_NODES);
  const forecast = await forecastOf({ preset, dir: '.ebb', forecast: 'preset', presets: {} });
  const tally = new PartsTally();
  try {
    const result = await simulate({
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs,
      toMs,
      jobs,
      namesJobs: false,
      deciders: decidersFor(scene, preset),
      forecast,
      solver,
      config: schedulerConfig.parse(scene.config),
      vcpus,
      seed,
      minGapS,
      setupS,
      earlier: earlierRuns(scene),
      onSettled: tally.add,
    });
    const { totals, refused } = outcomeOf(result, { preset, seed, fromMs });
    const undone = totals.unfinished + totals.failed;
    return {
      result: {
        usd: totals.billedUsd,
        grossUsd: totals.billedUsd + totals.refundedUsd,
        deadlines: totals.deadlines,
        missed: totals.missed,
        undone,
        onDemandUsd: null,
        lowerBoundUsd: null,
        parts: tally.parts,
        tookS: (performance.now() - began) / 1000,
      },
      refusedKeys: refused.map((r) => r.key),
    };
  } finally {
    await solver.close();
    await forecast.close();
  }
}

function decidersFor({ known: isKnown }: Scene, preset: string): (truth: Truth) => Deciders {
  const make = decidersNamed(preset);
  if (!isKnown || preset === ORACLE) return make;
  return (truth) => {
    const deciders = make(truth);
    return { ...deciders, stages: { ...deciders.stages, estimate: known } };
  };
}
