/** Runs as plain data. */
import { seconds } from '../../lib/kernel/units.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import { CLUSTER, compositionNamed, jamaisVuJobs } from './work.ts';

export interface Order {
  readonly preset: string;
  /** Of table 3 (`compositionNamed`). */
  readonly work: string;
  /** Time until the place of a stopped task is free, seconds. */
  readonly delayS: number;
  /** Error of the estimates that the job files tell, as a part of the running time. */
  readonly error: number;
  readonly seed: number;
  readonly jobs: number;
  readonly load: number;
  readonly data: string;
}

export interface Answer extends Order {
  readonly figures: ClusterFigures;
  readonly deadlineJobs: number;
  /** Machine-hours of best-effort jobs that were done, and their mean completion time. */
  readonly goodputHours: number;
  readonly latencyS: number;
}

/**
 * Parts of JVuSched one by one (figures 14 and 15), and the other back-off (figure 16). Those with `told` know running
 * times from the job file: an oracle, if there is no error in it.
 */
export const OWN: OwnPresets = {
  p: { extends: 'jvusched-base', settings: { preempts: 'all' } },
  'p-u': { extends: 'jvusched', value: 'per-job-sharp' },
  incby1: { extends: 'jvusched', estimate: 'jvupredict-incby1' },
  'oracle-told': { extends: 'jvusched', estimate: 'told-expinc' },
  'told-p': { extends: 'p', estimate: 'told-incby1' },
  'told-p-u': { extends: 'p-u', estimate: 'told-expinc' },
  'told-p-o': { extends: 'jvusched', estimate: 'told-incby1' },
};
const KNOWS = new Set(['oracle-told', 'told-p', 'told-p-u', 'told-p-o']);

/** Jobs whose runs are known before the first one. */
const EARLIER = 2000;
/**
 * The plan looks ten minutes ahead, and decides every ten seconds at least (the paper's cycle takes five). The solver
 * may leave as much as the machines would cost: less than the worth of one best-effort job.
 */
const SETTINGS = {
  slotS: 60,
  lookAheadSlots: 10,
  startDelayMeanS: 0,
  startDelayMaxS: 0,
  impossibleDeadlines: 'admit',
  solverGap: 1,
} as const;

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, seed, load, data } = order;
  const made = await jamaisVuJobs({
    data,
    composition: compositionNamed(order.work),
    seed,
    jobs: order.jobs,
    earlier: EARLIER,
    load,
  });
  const jobs = KNOWS.has(preset) ? made.jobs.map((job) => told(job, order.error)) : made.jobs;
  const figures = await runOnCluster({
    preset,
    own: OWN,
    cluster: CLUSTER,
    jobs,
    earlier: made.earlier,
    runtime: null,
    seed,
    gapS: 5,
    cycleS: 10,
    untilS: 10 * 86_400,
    settings: { ...SETTINGS, preemptionDelayS: order.delayS },
  });
  const bestEffort = jobs.filter((j) => j.spec.class === 'best-effort' && j.key in figures.jctS);
  const hoursOf = ({ truth }: WorkloadJob): number =>
    [...truth.values()].reduce((sum, t) => sum + t.runtimeS.reduce((a, b) => a + b, 0), 0) / 3600;
  return {
    ...order,
    figures,
    deadlineJobs: jobs.filter((j) => j.spec.class === 'deadline').length,
    goodputHours: bestEffort.reduce((sum, j) => sum + hoursOf(j), 0),
    latencyS: bestEffort.reduce((sum, j) => sum + (figures.jctS[j.key] ?? 0), 0) / Math.max(1, bestEffort.length),
  };
}

const told = (job: WorkloadJob, error: number): WorkloadJob => ({
  ...job,
  spec: {
    ...job.spec,
    stages: job.spec.stages.map((stage) => ({
      ...stage,
      expectedRuntimeS: seconds((job.truth.get(stage.name)?.runtimeS[0] ?? 1) * (1 + error)),
    })),
  },
});
