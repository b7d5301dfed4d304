/** Jobs of the grounds. */
import type { StageSpec } from '../../lib/domain/job.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { seconds } from '../../lib/kernel/units.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import type { WorkloadOptions } from '../../lib/workload/options.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { spec, stage } from '../load/values.ts';

export interface LoneJob {
  readonly runtimeS: number;
  /** Submission to deadline. */
  readonly windowS: number;
  readonly resources: StageSpec['resources'];
  readonly saves: boolean;
  readonly spot: boolean;
  /** Running time as the user tells it, set-up included; null: nothing is told. */
  readonly toldS: number | null;
}

/** One job of one task. */
export function loneJob(of: LoneJob): WorkloadJob {
  const task = stage({
    resources: of.resources,
    checkpoint: of.saves ? { signal: 'SIGTERM', graceS: seconds(60), everyS: null } : null,
    expectedRuntimeS: of.toldS === null ? null : seconds(of.toldS),
    constraints: of.spot ? {} : { purchaseOptions: ['on-demand'] },
  });
  const lone = spec({ name: 'lone', class: 'deadline', deadline: { afterS: seconds(of.windowS) }, stages: [task] });
  return {
    key: 'lone',
    submittedS: 0,
    spec: lone,
    truth: new Map([['main', { runtimeS: Float64Array.of(of.runtimeS) }]]),
  };
}

export async function jobsOf(path: string, options: WorkloadOptions): Promise<readonly WorkloadJob[]> {
  const workload = await openWorkload(path, options);
  const jobs: WorkloadJob[] = [];
  for await (const job of workload.jobs()) jobs.push(job);
  return jobs;
}

/** Jobs with `expectedRuntime` within `error` of each stage's mean running time: honest guesses. */
export function guessed(jobs: readonly WorkloadJob[], error: number, seed: number): readonly WorkloadJob[] {
  const random = randomStream(seed, 'guesses');
  return jobs.map((job) => {
    const stages = job.spec.stages.map((of) => {
      const runtimes = [...(job.truth.get(of.name)?.runtimeS ?? [])];
      const meanS = runtimes.reduce((sum, s) => sum + s, 0) / Math.max(1, runtimes.length);
      return { ...of, expectedRuntimeS: seconds(Math.max(1, meanS * (1 + error * (2 * random() - 1)))) };
    });
    return { ...job, spec: { ...job.spec, stages } };
  });
}

/** The last jobs, from time 0 on, and those before them: what a deployment has learned when they come. */
export function divided(
  jobs: readonly WorkloadJob[],
  last: number,
): { readonly jobs: readonly WorkloadJob[]; readonly earlier: readonly WorkloadJob[] } {
  const earlier = jobs.slice(0, -last);
  const later = jobs.slice(-last);
  const fromS = later[0]?.submittedS ?? 0;
  return { jobs: later.map((j) => ({ ...j, submittedS: j.submittedS - fromS })), earlier };
}
