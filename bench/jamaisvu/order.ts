/** Runs as plain data. */
import { seconds } from '../../lib/kernel/units.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import { CLUSTER, deadlineN, jamaisVuJobs } from './work.ts';

export interface Order {
  readonly preset: string;
  /** Deadline slack, per cent: the workload DEADLINE-n. */
  readonly slack: number;
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

/** Figures 14 and 16: parts of JVuSched, one by one, and the other back-off; `oracle` is told running times. */
export const OWN: OwnPresets = {
  p: { extends: 'jvusched-base', settings: { preempts: 'all' } },
  'p-u': { extends: 'jvusched', value: 'sharp-deadline' },
  incby1: { extends: 'jvusched', estimate: 'jvupredict-incby1' },
  'oracle-told': { extends: 'jvusched', estimate: 'told' },
};

/** Jobs whose runs are known before the first one. */
const EARLIER = 2000;
/** The plan looks ten minutes ahead, and decides every ten seconds at least (the paper's cycle takes five). */
const SETTINGS = { slotS: 60, lookAheadSlots: 10, startDelayMeanS: 0, startDelayMaxS: 0 };

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, slack, seed, load, data } = order;
  const made = await jamaisVuJobs({
    data,
    composition: deadlineN(slack),
    seed,
    jobs: order.jobs,
    earlier: EARLIER,
    load,
  });
  const jobs = preset === 'oracle-told' ? made.jobs.map(told) : made.jobs;
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
    settings: SETTINGS,
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

const told = (job: WorkloadJob): WorkloadJob => ({
  ...job,
  spec: {
    ...job.spec,
    stages: job.spec.stages.map((stage) => ({
      ...stage,
      expectedRuntimeS: seconds(job.truth.get(stage.name)?.runtimeS[0] ?? 1),
    })),
  },
});
