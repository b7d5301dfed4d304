/** Jobs of benchmarks, made by hand: what is not given is as plain as it can be. */
import { seconds } from '../../lib/kernel/units.ts';
import type { JobSpec, StageSpec } from '../../lib/domain/job.ts';
import type { StageTruth, WorkloadJob } from '../../lib/workload/workload.ts';
import { request } from '../../lib/workload/spec.ts';

export interface BenchStage {
  readonly name: string;
  readonly dependsOn?: readonly string[];
  readonly runtimeS: readonly number[];
  readonly expectedRuntimeS?: number;
  readonly over?: Partial<StageSpec>;
}

export interface BenchJob {
  readonly key: string;
  readonly submittedS: number;
  readonly stages: readonly BenchStage[];
  readonly over?: Partial<JobSpec>;
}

export const benchJob = ({ key, submittedS, stages, over = {} }: BenchJob): WorkloadJob => ({
  key,
  submittedS,
  spec: {
    name: key,
    owner: 'bench',
    labels: {},
    class: 'best-effort',
    deadline: null,
    value: { onTimeUsd: null, worthlessAfterS: null },
    after: [],
    maxCostUsd: null,
    stages: stages.map(stageOf),
    ...over,
  },
  truth: new Map(
    stages.map(({ name, runtimeS }): [string, StageTruth] => [name, { runtimeS: Float64Array.from(runtimeS) }]),
  ),
});

const stageOf = ({ name, dependsOn = [], runtimeS, expectedRuntimeS, over = {} }: BenchStage): StageSpec => ({
  name,
  dependsOn,
  tasks: runtimeS.length,
  gang: false,
  command: ['work'],
  env: {},
  workdir: '/',
  inputs: [],
  outputs: [],
  resources: request(1, 1024),
  retries: 3,
  timeoutS: null,
  checkpoint: null,
  expectedRuntimeS: expectedRuntimeS === undefined ? null : seconds(expectedRuntimeS),
  constraints: {},
  preferences: [],
  ...over,
});
