/** Plain domain values for loads of benchmarks. Each call states the relevant fields; all others are minimal. */
import { effectKey, groupId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { ZERO_S, epochMs, mib, milliCpu, usdPerHour, type EpochMs } from '../../lib/kernel/units.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { Attempt, Job, JobSpec, StageSpec } from '../../lib/domain/job.ts';
import { poolKey, type Pool, type PoolView, type PurchaseOption } from '../../lib/domain/pool.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import type { PendingGroup, Snapshot } from '../../lib/domain/snapshot.ts';

export const NOW: EpochMs = epochMs(Date.UTC(2026, 4, 1));

export const needOf = (cpus: number, memMiB: number): Resources => ({
  cpu: milliCpu(cpus * 1000),
  memory: mib(memMiB),
  gpus: 0,
  disk: mib(0),
});

export interface PoolFacts {
  readonly type: string;
  readonly vcpus: number;
  readonly gib: number;
  readonly zone?: string;
  readonly option?: PurchaseOption;
  readonly onDemandUsd?: number;
}

export function poolOf({ type, vcpus, gib, zone = 'us-east-1a', option = 'spot', onDemandUsd = 0.1 }: PoolFacts): Pool {
  const family = type.split('.')[0] ?? '';
  return {
    id: poolKey(type, zone, option),
    type: {
      name: type,
      family,
      generation: Number(/\d/.exec(family)?.[0] ?? 0),
      arch: 'x86_64',
      capacity: { ...needOf(vcpus, gib * 1024), disk: mib(100_000) },
    },
    zone,
    option,
    onDemandUsdPerHour: usdPerHour(onDemandUsd),
  };
}

export const openAt = (pool: Pool, usd: number): PoolView => ({
  pool,
  quote: usdPerHour(usd),
  open: true,
  closedReason: null,
});

export const stage = (over: Partial<StageSpec> = {}): StageSpec => ({
  name: 'main',
  dependsOn: [],
  tasks: 1,
  gang: false,
  command: ['true'],
  env: {},
  workdir: '/',
  inputs: [],
  outputs: [],
  resources: needOf(1, 1024),
  retries: 0,
  timeoutS: null,
  checkpoint: null,
  expectedRuntimeS: null,
  constraints: {},
  preferences: [],
  ...over,
});

export const spec = (over: Partial<JobSpec> = {}): JobSpec => ({
  name: 'load',
  owner: 'bench',
  labels: {},
  class: 'best-effort',
  deadline: null,
  value: { onTimeUsd: null, worthlessAfterS: null },
  after: [],
  maxCostUsd: null,
  stages: [stage()],
  ...over,
});

export function job(id: string, over: Partial<Job> = {}): Job {
  const of = over.spec ?? spec();
  return {
    id: jobId(id),
    spec: of,
    template: `${of.owner}/${of.name}`,
    state: 'pending',
    stateReason: null,
    submittedMs: epochMs(0),
    deadlineMs: null,
    startedMs: null,
    finishedMs: null,
    cancelRequested: false,
    stages: of.stages.map(({ name, tasks }) => ({
      name,
      tasks,
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

/** Tasks of one job that have never run. */
export function group(
  over: Pick<PendingGroup, 'count' | 'need'> & Partial<PendingGroup> & { readonly name: string },
): PendingGroup {
  const { name, ...rest } = over;
  return {
    id: groupId(name),
    job: jobId(name),
    class: 'best-effort',
    stage: stage({ resources: over.need }),
    members: { freshFrom: 0 },
    keptS: ZERO_S,
    submittedMs: NOW,
    deadlineMs: null,
    ...rest,
  };
}

/** A spot instance that is up. */
export const instance = (id: string, pool: Pool['id'], over: Partial<Instance> = {}): Instance => ({
  id: instanceId(id),
  allocation: effectKey(`launch/${id}`),
  pool,
  bid: 'uncapped',
  state: 'ready',
  requestedMs: NOW,
  launchedMs: NOW,
  readyMs: NOW,
  warnedMs: null,
  goneMs: null,
  rebalance: false,
  endedMs: null,
  endCause: null,
  costUsd: null,
  ...over,
});

/** Running first attempt. */
export const attempt = (over: Pick<Attempt, 'id' | 'instance' | 'resources'> & Partial<Attempt>): Attempt => ({
  job: jobId('j-load'),
  stage: 'main',
  index: 0,
  number: 1,
  state: 'running',
  placedMs: NOW,
  startedMs: NOW,
  endedMs: null,
  outcome: null,
  exitCode: null,
  exitSignal: null,
  reason: null,
  resumedFromS: ZERO_S,
  keptS: ZERO_S,
  usage: null,
  ...over,
});

/** Snapshot that is empty except for the given fields. */
export const snapshot = (over: Partial<Snapshot>): Snapshot => ({
  nowMs: NOW,
  jobs: new Map(),
  tasks: [],
  groups: [],
  running: [],
  blocked: [],
  instances: new Map(),
  pools: [],
  spentUsd: new Map(),
  limits: { vcpus: 1e9 },
  ...over,
});
