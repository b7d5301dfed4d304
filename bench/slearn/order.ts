/** Runs as plain data. */
import { seconds } from '../../lib/kernel/units.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import { cutOf, type SLearnWork } from './work.ts';

export interface Order extends SLearnWork {
  readonly preset: string;
}

export interface Answer extends Order {
  readonly tasks: number;
  readonly figures: ClusterFigures;
}

/** Presets of the comparison that are not shipped: they are told the mean of each stage. */
const OWN: OwnPresets = {
  oracle: { extends: '3sigma', estimate: 'told' },
  'srpt-oracle': { extends: 'srpt', estimate: 'told' },
};

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, seed, slots } = order;
  const { earlier, jobs } = await cutOf(order);
  const own = OWN[preset];
  const figures = await runOnCluster({
    preset: own === undefined ? preset : `told-${preset}`,
    own: own === undefined ? {} : { [`told-${preset}`]: own },
    cluster: `${slots}x{cpu: 1, memory: 4GiB}`,
    jobs: own === undefined ? jobs : jobs.map(withMeans),
    earlier,
    runtime: null,
    seed,
    gapS: 5,
    cycleS: 60,
    untilS: 60 * 86_400,
  });
  return {
    ...order,
    tasks: jobs.reduce((n, { spec }) => n + spec.stages.reduce((m, s) => m + s.tasks, 0), 0),
    figures,
  };
}

const withMeans = (job: WorkloadJob): WorkloadJob => ({
  ...job,
  spec: {
    ...job.spec,
    stages: job.spec.stages.map((stage) => {
      const times = job.truth.get(stage.name)?.runtimeS ?? new Float64Array();
      return { ...stage, expectedRuntimeS: seconds(times.reduce((a, b) => a + b, 0) / Math.max(1, times.length)) };
    }),
  },
});
