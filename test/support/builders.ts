import { attemptId, effectKey, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, seconds, usdPerHour, ZERO_S } from '../../lib/kernel/units.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { Attempt, Job, JobSpec, StageSpec } from '../../lib/domain/job.ts';
import { poolKey, type Pool, type PurchaseOption } from '../../lib/domain/pool.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import type { Snapshot } from '../../lib/domain/snapshot.ts';

/** Small valid values; a test names only what it is about. */

export const resources = (cpus = 1, memoryMiB = 512): Resources => ({
  cpu: milliCpu(cpus * 1000),
  memory: mib(memoryMiB),
  gpus: 0,
  disk: mib(0),
});

export function pool(
  over: {
    type?: string;
    zone?: string;
    option?: PurchaseOption;
    cpus?: number;
    memoryMiB?: number;
    gpus?: number;
    arch?: Pool['type']['arch'];
    onDemand?: number;
  } = {},
): Pool {
  const type = over.type ?? 'c5.xlarge';
  const zone = over.zone ?? 'test-1a';
  const option = over.option ?? 'spot';
  const cpus = over.cpus ?? 4;
  const family = type.split('.')[0] ?? type;
  return {
    id: poolKey(type, zone, option),
    type: {
      name: type,
      family,
      generation: Number(/\d/.exec(family)?.[0] ?? 5),
      arch: over.arch ?? 'x86_64',
      capacity: {
        ...resources(cpus, over.memoryMiB ?? cpus * 2048),
        gpus: over.gpus ?? 0,
        disk: mib(100_000),
      },
    },
    zone,
    option,
    onDemandUsdPerHour: usdPerHour(over.onDemand ?? 0.17),
  };
}

export const stage = (over: Partial<StageSpec> = {}): StageSpec => ({
  name: 'main',
  dependsOn: [],
  tasks: 1,
  gang: false,
  command: ['true'],
  env: {},
  workdir: '/nonexistent',
  inputs: [],
  outputs: [],
  resources: resources(),
  retries: 0,
  timeoutS: null,
  checkpoint: null,
  expectedRuntimeS: seconds(600),
  constraints: {},
  preferences: [],
  ...over,
});

export const spec = (over: Partial<JobSpec> = {}): JobSpec => ({
  name: 'test',
  owner: 'tester',
  labels: {},
  class: 'best-effort',
  deadline: null,
  value: { onTimeUsd: null, worthlessAfterS: null },
  after: [],
  maxCostUsd: null,
  stages: [stage()],
  ...over,
});

export function job(over: Partial<Job> & { name?: string } = {}): Job {
  const of = over.spec ?? spec();
  return {
    id: jobId(over.name ?? 'j-test'),
    spec: of,
    template: `${of.owner}/${of.name}`,
    state: 'pending',
    stateReason: null,
    submittedMs: epochMs(0),
    deadlineMs: null,
    startedMs: null,
    finishedMs: null,
    cancelRequested: false,
    stages: of.stages.map((s) => ({
      name: s.name,
      tasks: s.tasks,
      nextFresh: 0,
      waiting: 0,
      running: 0,
      succeeded: 0,
      failed: 0,
      cancelled: 0,
    })),
    after: [],
    admission: { feasible: true, notes: [] },
    ...over,
  };
}

export const instance = (over: Partial<Instance> = {}): Instance => ({
  id: instanceId('i-test'),
  allocation: effectKey('p-test/launch/0'),
  pool: pool().id,
  bid: 'uncapped',
  state: 'ready',
  requestedMs: epochMs(0),
  launchedMs: epochMs(0),
  readyMs: epochMs(0),
  warnedMs: null,
  goneMs: null,
  rebalance: false,
  endedMs: null,
  endCause: null,
  costUsd: null,
  ...over,
});

export const attempt = (over: Partial<Attempt> & { index?: number; number?: number } = {}): Attempt => {
  const index = over.index ?? 0;
  const number = over.number ?? 1;
  return {
    id: attemptId(`j-test.main.${index}.${number}`),
    job: jobId('j-test'),
    stage: 'main',
    index,
    number,
    instance: instanceId('i-test'),
    resources: resources(),
    state: 'running',
    placedMs: epochMs(0),
    startedMs: epochMs(0),
    endedMs: null,
    outcome: null,
    exitCode: null,
    exitSignal: null,
    reason: null,
    resumedFromS: ZERO_S,
    keptS: ZERO_S,
    usage: null,
    ...over,
  };
};

/** Nothing waits, nothing runs and nothing can be had. */
export const snapshot = (over: Partial<Snapshot> = {}): Snapshot => ({
  nowMs: epochMs(1_700_000_000_000),
  jobs: new Map(),
  tasks: [],
  groups: [],
  running: [],
  blocked: [],
  instances: new Map(),
  pools: [],
  spentUsd: new Map(),
  limits: { vcpus: 100 },
  ...over,
});
