/** Jobs in the setting of Hopper's model: many small and few large ones, of one to several phases, at a given load. */
import { randomExponential } from 'd3-random';
import { randomStream } from '../../lib/kernel/random.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { benchJob, type BenchStage } from '../cluster/jobs.ts';

export interface HopperWork {
  readonly jobs: number;
  readonly seed: number;
  /** Mean demand for slots over the slots that there are. */
  readonly load: number;
  readonly slots: number;
  /** Most phases of a job; each has from one to so many. */
  readonly phases: number;
}

/** Mean running time of a task, seconds. */
export const TASK_S = 60;
/** Tasks of a phase: a bounded Pareto distribution; nine of ten have fewer than 50. */
const TASKS = { least: 2, most: 600, tail: 0.7 };

export function hopperJobs({ jobs, seed, load, slots, phases }: HopperWork): readonly WorkloadJob[] {
  const draw = randomStream(seed, 'hopper/jobs');
  const made = Array.from({ length: jobs }, () => {
    const length = 1 + Math.floor(draw() * phases);
    return Array.from({ length }, () => tasksAt(draw()));
  });
  const work = made.flat().reduce((sum, n) => sum + n * TASK_S, 0);
  // Arrivals spread over the time in which the slots do so much work at this load.
  const gap = randomExponential.source(draw)(jobs / (work / (load * slots)));
  let atS = 0;
  return made.map((sizes, n) => {
    const submittedS = atS;
    atS += gap();
    const stages = sizes.map((tasks, i): BenchStage => ({
      name: `p${i}`,
      ...(i === 0 ? {} : { dependsOn: [`p${i - 1}`] }),
      runtimeS: Array.from({ length: tasks }, () => TASK_S),
      expectedRuntimeS: TASK_S,
    }));
    return benchJob({ key: `job-${n}`, submittedS, stages });
  });
}

/** Quantile of the bounded Pareto distribution, whole. */
function tasksAt(u: number): number {
  const { least, most, tail } = TASKS;
  const x = least * (1 - u * (1 - (least / most) ** tail)) ** (-1 / tail);
  return Math.min(most, Math.floor(x));
}
