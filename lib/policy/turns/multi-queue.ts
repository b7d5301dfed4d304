/**
 * Multi-level queues: GS of SLearn (section 5.1). Jobs are in queues by size, first in, first out in each; queues share
 * the slots by weights that fall from queue to queue, so that no job starves.
 */
import { z } from 'zod';
import { raw } from '../../kernel/units.ts';
import type { JobId } from '../../kernel/ids.ts';
import { meanS } from '../../domain/distribution.ts';
import type { Job, StageSpec } from '../../domain/job.ts';
import { workDoneS, type RunningTask } from '../../domain/snapshot.ts';
import { workOfJobs } from '../job-work.ts';
import { jobsAtWork } from './by-job.ts';
import { samplingRatioLearner } from './sampling-ratio.ts';
import type { Entry, Line, TurnContext, TurnTaking } from './turns.ts';

/** Number of queues, and the factor between their thresholds and between their weights (section 5.2.1). */
const QUEUES = 10;
const GROWTH = 10;

export const multiQueueSettings = z.strictObject({
  by: z
    .enum(['estimate', 'attained', 'pilots'])
    .default('estimate')
    .describe(
      'Size of a job: its tasks times their estimated running time, the time that its tasks have run so far (least attained service), or the same as `estimate` once pilots have ended.',
    ),
  thinLimit: z
    .int()
    .min(0)
    .max(1000)
    .default(0)
    .describe('Jobs of fewer tasks go to the first queue at once (SLearn: 3). 0: none does.'),
  ratio: z
    .number()
    .gt(0)
    .max(1)
    .nullable()
    .default(null)
    .describe(
      'Part of the tasks that are pilots, at least one. null: from 1 to 5 %, as recent jobs suggest (figure 3).',
    ),
  firstQueueS: z
    .number()
    .positive()
    .default(1000)
    .describe(
      'Largest job of the first queue, seconds of running time over all tasks. Each next queue takes ten times that.',
    ),
});
export type MultiQueueSettings = z.output<typeof multiQueueSettings>;

/** Lines of GS: a queue each, and a last one for what waits for its pilots, where slots are left. */
export const multiQueue = (settings: MultiQueueSettings): TurnTaking => ({
  copies: null,
  lines: ({ context, used }) => {
    const jobs = jobsAtWork(context.snapshot, used);
    const sizeOf = sizes(context, settings);
    const pilots = settings.by === 'pilots' ? new Pilots(context, settings) : null;
    const queues = Array.from({ length: QUEUES }, (): Entry[] => []);
    const sampled: Entry[] = [];
    const unsampled: Entry[] = [];
    for (const job of jobs) {
      if (isThin(job, settings)) queues[0]?.push({ job: job.id });
      else {
        const sampling = pilots?.of(job) ?? null;
        const queue = queueOf(sampling?.leastS ?? sizeOf(job), settings.firstQueueS);
        if (sampling === null || queue > 1) queues[queue]?.push({ job: job.id });
        else {
          sampled.push({ job: job.id, most: sampling.toStart, pilots: true });
          unsampled.push({ job: job.id });
        }
      }
    }
    const line = (entries: readonly Entry[], n: number): Line => ({
      entries,
      // Queues that use nothing come in their order.
      key: (mine) => (mine + 1) * GROWTH ** n,
    });
    // Pilots have the second highest priority (section 5.1.2).
    const ranked = pilots === null ? queues : queues.toSpliced(1, 0, sampled);
    return [...ranked.map(line), { entries: unsampled, key: () => Infinity }];
  },
});

/** Queue 0 is the first. */
function queueOf(sizeS: number, firstS: number): number {
  let queue = 0;
  for (let highest = firstS; sizeS > highest && queue < QUEUES - 1; highest *= GROWTH) queue++;
  return queue;
}

const isThin = ({ spec }: Job, { thinLimit }: MultiQueueSettings): boolean =>
  spec.stages.reduce((sum, s) => sum + s.tasks, 0) < thinLimit;

/** Size of a job as far as it is known, seconds of running time over all of its tasks. */
function sizes(context: TurnContext, { by }: MultiQueueSettings): (job: Job) => number {
  if (by === 'attained') {
    const work = workOfJobs(context);
    return ({ id }) => work.get(id)?.attainedS ?? 0;
  }
  return (job) => job.spec.stages.reduce((sum, stage) => sum + stageS(job, stage, context), 0);
}

/** Stages that are over have taken what they took. */
function stageS(job: Job, stage: StageSpec, { forecasts }: TurnContext): number {
  const forecast = forecasts.runtime.get(`${job.id}/${stage.name}`);
  if (forecast !== undefined) return stage.tasks * meanS(forecast.runtime);
  const times = job.stages.find((s) => s.name === stage.name)?.times;
  return times === undefined ? 0 : raw(times.sumS);
}

/** A job whose pilots have not all ended. */
interface Sampling {
  /** Pilots that have not begun. */
  readonly toStart: number;
  /** Its size at least, seconds: the longest time that one of its tasks has run, for all of them. */
  readonly leastS: number;
}

/**
 * Pilots are the first tasks of stages that wait for no other (section 6). A stage that starts together has none. A
 * pilot that does not end tells that its job is a long one: the job goes on in the queue of that size.
 */
class Pilots {
  readonly #context: TurnContext;
  readonly #settings: MultiQueueSettings;
  readonly #running: ReadonlyMap<JobId, readonly RunningTask[]>;

  constructor(context: TurnContext, settings: MultiQueueSettings) {
    this.#context = context;
    this.#settings = settings;
    this.#running = Map.groupBy(context.snapshot.running, (r) => r.attempt.job);
  }

  /** Null: its size is known. */
  of(job: Job): Sampling | null {
    let [toStart, isSampling] = [0, false];
    for (const stage of job.spec.stages) {
      const progress = job.stages.find((s) => s.name === stage.name);
      if (stage.dependsOn.length > 0 || stage.gang || progress === undefined || progress.succeeded >= stage.tasks)
        continue;
      const wanted = Math.max(1, Math.round(this.#ratio(job.id) * stage.tasks));
      if (progress.succeeded >= wanted) continue;
      isSampling = true;
      toStart += Math.max(0, wanted - progress.succeeded - progress.running);
    }
    return isSampling ? { toStart, leastS: this.#leastS(job) } : null;
  }

  #ratio(job: JobId): number {
    const { ratio } = this.#settings;
    return ratio ?? this.#context.beliefs.of(samplingRatioLearner).ratioOf(job) / 100;
  }

  #leastS({ id, spec }: Job): number {
    const { nowMs } = this.#context.snapshot;
    const longestS = (this.#running.get(id) ?? []).reduce((most, r) => Math.max(most, raw(workDoneS(r, nowMs))), 0);
    return longestS * spec.stages.reduce((sum, s) => sum + s.tasks, 0);
  }
}
