import type { GroupId, JobId } from '../../kernel/ids.ts';
import {
  ZERO_S,
  isPositive,
  minus,
  raw,
  scale,
  seconds,
  secondsBetween,
  type EpochMs,
  type Seconds,
} from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { mean, meanS, quantileS, type Distribution } from '../../domain/distribution.ts';
import type { Job, StageSpec } from '../../domain/job.ts';
import type { UtilityCurve, Worth } from '../../domain/plan.ts';
import { begunBy, doneOnceS, meanToDo, type Begun } from '../../domain/work-to-do.ts';
import { slowed } from '../../domain/slowdown.ts';
import { workKeptS, type RunningTask } from '../../domain/snapshot.ts';
import { forecastFor, type Forecasts } from '../../domain/forecasts.ts';
import { chargedAloneS } from '../../market/billing.ts';
import type { ValuePolicy, Worths } from '../../policy/contracts.ts';
import { slot } from '../../policy/memory.ts';
import { stageDurationS, stageGraph, wavesBefore, type StageSize } from './critical-path.ts';
import { rememberedPrices, type TaskPrice } from './on-demand-price.ts';
import { restartQuantileS } from './work-left.ts';

/** Facts for the curve of one task of a stage. */
export interface CurveFacts {
  readonly job: Job;
  /**
   * Part of the job that depends on this task: its own work and that of the stages behind it; 1 = all remaining work.
   */
  readonly part: number;
  /** Expected on-demand cost of the unfinished stages, US dollars. */
  readonly onDemandUsd: number;
  /** Deadline of this stage's tasks; null without one. */
  readonly taskDeadlineMs: EpochMs | null;
}
/** The curve, and in words how it came about: put into words when they are read, for most are not. */
export type DrawCurve = (facts: CurveFacts) => {
  readonly curve: UtilityCurve;
  readonly reason: string;
  /** False: it is no multiple of the expected cost. Absent: it is one, unless the user stated it. */
  readonly followsCost?: boolean;
};

/**
 * Common part of the value policies: the job's worth split over its unfinished tasks, deadlines of inner stages, the
 * last safe start. They differ in the curve that they draw.
 * - Split: by expected work. A stage inherits the worth of all stages behind it: without it they never run. Within a
 *   stage the worth is shared by the tasks that are not done yet, so the last straggler carries what the stage is
 *   worth.
 * - Task deadline: the job's deadline less the longest path of the stages behind, each at the safety quantile (the
 *   slowest of its parallel tasks, in waves under the vCPU limit) plus the mean start-up delay.
 * - Last safe start: the task deadline less start-up, restore, the waves before the stage's last and the safety
 *   quantile of the work left: for a pending group from its checkpoint, for a running attempt from the progress it can
 *   take elsewhere (with a checkpoint signal all it has done, plus the time to save it), under-estimates backed off
 *   (work-left.ts).
 * O(groups + stages^2 of each job that has one or is asked about), plus O(1) for each running attempt that is asked
 * about, plus pools per distinct need for the on-demand price.
 */
export function valuePolicy(draw: DrawCurve): ValuePolicy {
  const kept = slot(() => ({ pricesOf: rememberedPrices(), assessed: new WeakMap<Job, Assessment>() }));
  return ({ snapshot, forecasts, config, memory }) => {
    const { pricesOf, assessed } = memory.of(kept);
    const prices = pricesOf(snapshot.pools);
    const { vcpus } = snapshot.limits;
    const assess = (job: Job): ReadonlyMap<string, StageWorth> => {
      const runtimes = runtimesOf(job, forecasts);
      let known = assessed.get(job);
      if (known === undefined || !stillHolds(known, { runtimes, prices, vcpus, config })) {
        const context: JobContext = { job, runtimes, vcpus, config, prices, draw };
        assessed.set(job, (known = { ...context, stages: assessJob(context) }));
      }
      return known.stages;
    };
    const stageOf = onceAsked(snapshot.jobs, assess);

    const groups = new Map<GroupId, Worth>();
    for (const g of snapshot.groups) {
      const stage = stageOf(g.job, g.stage);
      if (stage === undefined) continue;
      const { slowdown, wavesBeforeS } = stage;
      const begun = { ranS: scale(doneOnceS(g), slowdown), keptS: scale(g.keptS, slowdown) };
      groups.set(g.id, worthOf(grownBy(stage, begun), { done: begun.ranS, kept: begun.keptS, wavesBeforeS }, config));
    }
    const ofRunning = (r: RunningTask): Worth | undefined => {
      const stage = stageOf(r.attempt.job, r.stage);
      // Without a deadline it is the same for all tasks of a stage.
      return (
        stage?.lasting ??
        (stage && worthOf(stage, { ...carried(r, stage.slowdown, snapshot.nowMs), wavesBeforeS: ZERO_S }, config))
      );
    };
    const mayBeDue = (r: RunningTask, withinS: number): boolean => {
      const stage = stageOf(r.attempt.job, r.stage);
      if (stage === undefined || stage.taskDeadlineMs === null) return false;
      const slackS = secondsBetween(snapshot.nowMs, stage.taskDeadlineMs);
      return slackS <= withinS + mostNeededS(stage, scale(begunBy(r, snapshot.nowMs).ranS, stage.slowdown), config);
    };
    return { groups, ofRunning, mayBeDue } satisfies Worths;
  };
}

type StageOf = (job: JobId, stage: Pick<StageSpec, 'name'>) => StageWorth | undefined;

/**
 * Stages of jobs, assessed on first use, because most are never asked about. Keyed by the stage's record, so that
 * repeated questions hash no text.
 */
function onceAsked(jobs: ReadonlyMap<JobId, Job>, assess: (job: Job) => ReadonlyMap<string, StageWorth>): StageOf {
  const byJob = new Map<JobId, ReadonlyMap<string, StageWorth>>();
  const known = new Map<object, { readonly job: JobId; readonly worth: StageWorth | undefined }>();
  const stagesOf = (id: JobId): ReadonlyMap<string, StageWorth> | undefined => {
    let stages = byJob.get(id);
    const job = stages === undefined ? jobs.get(id) : undefined;
    if (job !== undefined) byJob.set(id, (stages = assess(job)));
    return stages;
  };
  return (job, stage) => {
    let of = known.get(stage);
    // Jobs that were submitted with one specification share its records.
    if (of?.job !== job) known.set(stage, (of = { job, worth: stagesOf(job)?.get(stage.name) }));
    return of.worth;
  };
}

/**
 * Progress that an attempt takes to another instance, in seconds of that one. A program with a checkpoint signal saves
 * when told to stop, by an interruption's warning or by a move; without one only its own saves count. Counting all work
 * since the last checkpoint as lost would send half-done jobs to on-demand with hours to spare.
 */
function carried(running: RunningTask, slowdown: number, nowMs: EpochMs): Pick<Progress, 'done' | 'kept'> {
  const { keptS, ranS } = begunBy(running, nowMs);
  const kept = running.stage.checkpoint === null ? workKeptS(running, nowMs) : keptS;
  return { done: scale(ranS, slowdown), kept: scale(kept, slowdown) };
}

/** Parts of a worth's reason. */
interface Why {
  readonly drawn: ReturnType<DrawCurve>;
  /** Stages that hang on it, and the time that they need before the deadline; null without one. */
  readonly behind: ReadonlySet<string>;
  readonly behindS: Seconds | null;
}

interface StageWorth {
  readonly curve: UtilityCurve;
  readonly why: Why;
  readonly taskDeadlineMs: EpochMs | null;
  /** On the pool that worth is reckoned with: the cheapest at its on-demand price (on-demand-price.ts). */
  readonly runtime: Distribution;
  /** Its running time there over that where all soft constraints are met. */
  readonly slowdown: number;
  readonly wavesBeforeS: Seconds;
  /** True if the worth is a multiple of the expected cost, not stated by the user. */
  readonly followsCost: boolean;
  /** Worth of each of its tasks, however far it is; null with a deadline. */
  readonly lasting: Worth | null;
}

/** Inputs to the worth of a job's stages; none depends on the time. */
interface JobContext {
  readonly job: Job;
  /** Running time by stage; undefined for a finished one. */
  readonly runtimes: readonly (Distribution | undefined)[];
  readonly vcpus: number;
  readonly config: SchedulerConfig;
  readonly prices: TaskPrice;
  readonly draw: DrawCurve;
}

/** Kept as long as the job's record, which is another one as soon as one of its tasks starts or ends. */
interface Assessment extends JobContext {
  readonly stages: ReadonlyMap<string, StageWorth>;
}

const stillHolds = (known: Assessment, now: Pick<JobContext, 'runtimes' | 'prices' | 'vcpus' | 'config'>): boolean =>
  known.prices === now.prices &&
  known.vcpus === now.vcpus &&
  known.config === now.config &&
  known.runtimes.every((runtime, i) => runtime === now.runtimes[i]);

const runtimesOf = (job: Job, { runtime }: Forecasts): (Distribution | undefined)[] =>
  job.spec.stages.map((stage) => forecastFor(runtime, { attempt: { job: job.id, stage: stage.name }, stage })?.runtime);

/** An unfinished stage, with the cost of its tasks. */
interface OpenStage extends StageSize {
  readonly total: number;
  readonly taskUsd: number;
  readonly slowdown: number;
}

function assessJob(context: JobContext): Map<string, StageWorth> {
  const stages = new Map<string, StageWorth>();
  const { job, vcpus, config, draw } = context;
  const open = openStages(context);
  const durations = new Map(
    open.map((s) => [s.name, config.startDelayMeanS + stageDurationS(s, vcpus, config.safetyQuantile)]),
  );
  const graph = stageGraph(open, (name) => durations.get(name) ?? 0);
  const leftUsd = new Map(open.map((s) => [s.name, s.tasks * s.taskUsd]));
  const allLeftUsd = open.reduce((sum, s) => sum + s.tasks * s.taskUsd, 0);
  const onDemandUsd = open.reduce((sum, s) => sum + s.total * s.taskUsd, 0);

  for (const stage of open) {
    const behind = graph.descendants(stage.name);
    let hangs = leftUsd.get(stage.name) ?? 0;
    for (const name of behind) hangs += leftUsd.get(name) ?? 0;
    const behindS = graph.behindS(stage.name);
    const taskDeadlineMs = job.deadlineMs === null ? null : minus(job.deadlineMs, behindS);
    const part = hangs / allLeftUsd / stage.tasks;
    const drawn = draw({ job, part, onDemandUsd, taskDeadlineMs });
    const why = { drawn, behind, behindS: job.deadlineMs === null ? null : behindS };
    stages.set(stage.name, {
      curve: drawn.curve,
      why,
      taskDeadlineMs,
      followsCost: drawn.followsCost ?? job.spec.value.onTimeUsd === null,
      lasting: taskDeadlineMs === null ? new StagesWorth({ curve: drawn.curve, taskDeadlineMs, why }, null) : null,
      runtime: stage.runtime,
      slowdown: stage.slowdown,
      wavesBeforeS: scale(mean(stage.runtime), wavesBefore(stage, vcpus)),
    });
  }
  return stages;
}

function openStages({ job, runtimes, prices, config }: JobContext): OpenStage[] {
  return job.spec.stages.flatMap((spec: StageSpec, i) => {
    const progress = job.stages[i];
    const tasks = spec.tasks - (progress?.succeeded ?? 0);
    const runtime = runtimes[i];
    if (tasks <= 0 || runtime === undefined) return [];
    const { usdPerHour, slowdown } = prices(spec);
    const there = slowed(runtime, slowdown);
    const taskUsd = Math.max((usdPerHour * chargedAloneS(there, config)) / 3600, MIN_TASK_USD);
    const { name, dependsOn, resources } = spec;
    return [{ name, dependsOn, tasks, total: spec.tasks, runtime: there, slowdown, cpu: resources.cpu, taskUsd }];
  });
}

/** Tasks that ask for nothing are still worth something. */
const MIN_TASK_USD = 1e-9;

function inherited(behind: ReadonlySet<string>, behindS: Seconds | null): string {
  if (behind.size === 0) return '';
  const names = [...behind].sort().join(', ');
  const early = behindS === null ? '' : `, which need the last ${Math.ceil(raw(behindS))} s before the deadline`;
  return `; carries the worth of ${behind.size === 1 ? 'stage' : 'stages'} ${names} behind it${early}`;
}

interface Progress {
  readonly done: Seconds;
  readonly kept: Seconds;
  readonly wavesBeforeS: Seconds;
}

/** Quantile of a forecast that counts as all of it: forecasts with a back-off have a long tail of next to no weight. */
const ALL_OUTLIVED = 0.995;

/**
 * The same stage for tasks that outlived all of its forecast. A worth that is a multiple of the cost of the job's work
 * grows with the work: else a job whose running time was thought much too short is not worth its own cost, and waits
 * for ever once it is stopped.
 */
function grownBy(stage: StageWorth, group: Required<Begun>): StageWorth {
  const { runtime, curve } = stage;
  const ranS = raw(doneOnceS(group));
  if (!stage.followsCost || ranS === 0 || ranS < quantileS(runtime, ALL_OUTLIVED)) return stage;
  const factor = meanToDo(runtime, group) / meanS(runtime);
  if (!(factor > 1)) return stage;
  return { ...stage, curve: { points: curve.points.map(({ atMs, usd }) => ({ atMs, usd: usd * factor })) } };
}

function worthOf(stage: StageWorth, progress: Progress, config: SchedulerConfig): Worth {
  const { taskDeadlineMs } = stage;
  if (taskDeadlineMs === null) return new StagesWorth(stage, null);
  const restartS = restartQuantileS({
    runtime: stage.runtime,
    done: progress.done,
    kept: progress.kept,
    cycle: seconds(config.cyclePeriodS),
    p: config.safetyQuantile,
  });
  const restoreS = isPositive(progress.kept) ? config.restoreS : 0;
  const neededS = config.startDelayMaxS + restoreS + raw(progress.wavesBeforeS) + restartS;
  return new StagesWorth(stage, minus(taskDeadlineMs, seconds(neededS)));
}

/**
 * Upper bound of the time that `worthOf` takes off the deadline of a running attempt that has done `done`. If `done` is
 * less than the longest run of the forecast, at most that run is left and redone; else the back-off adds at most the
 * excess and one cycle, and at most `done` is redone (restartQuantileS).
 */
const mostNeededS = ({ runtime }: StageWorth, done: Seconds, config: SchedulerConfig): number =>
  config.startDelayMaxS +
  config.restoreS +
  Math.max(runtime.atS.at(-1) ?? 0, 2 * raw(done) + config.cyclePeriodS) +
  ROUNDING_S;

const ROUNDING_S = 1;

/**
 * A class, because an object literal would create its getter anew each time: every cycle makes a worth for each running
 * task.
 */
class StagesWorth implements Worth {
  readonly curve: UtilityCurve;
  readonly taskDeadlineMs: EpochMs | null;
  readonly latestSafeStartMs: EpochMs | null;
  readonly #why: Why;

  constructor(stage: Pick<StageWorth, 'curve' | 'taskDeadlineMs' | 'why'>, latestSafeStartMs: EpochMs | null) {
    this.curve = stage.curve;
    this.taskDeadlineMs = stage.taskDeadlineMs;
    this.latestSafeStartMs = latestSafeStartMs;
    this.#why = stage.why;
  }

  get reason(): string {
    const { drawn, behind, behindS } = this.#why;
    return drawn.reason + inherited(behind, behindS);
  }
}
