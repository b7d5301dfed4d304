import { attemptId, effectKey, instanceId, jobId, planId, poolId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, seconds, usd } from '../../lib/kernel/units.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { Attempt, Job, JobSpec, Task } from '../../lib/domain/job.ts';
import type { LedgerRow } from '../../lib/domain/ledger.ts';
import type { Explanation, Plan } from '../../lib/domain/plan.ts';
import type { EffectRecord, Submission } from '../../lib/ports/store.ts';

/** Small whole entities for store tests: what a test does not care about is filled in. */

export const spec = (over: Partial<JobSpec> = {}): JobSpec => ({
  name: 'nightly',
  owner: 'ana',
  labels: {},
  class: 'deadline',
  deadline: { afterS: seconds(3600) },
  value: { onTimeUsd: null, worthlessAfterS: seconds(600) },
  after: [],
  maxCostUsd: usd(12.5),
  stages: [
    {
      name: 'main',
      dependsOn: [],
      tasks: 4,
      gang: false,
      command: ['sh', '-c', 'echo "{index}"; echo ünïcode 🌊'],
      env: { MODE: 'fast' },
      workdir: '/data',
      inputs: ['in/*.csv'],
      outputs: ['out/**'],
      resources: { cpu: milliCpu(500), memory: mib(512), gpus: 0, disk: mib(0) },
      retries: 2,
      timeoutS: null,
      checkpoint: { signal: 'SIGUSR1', graceS: seconds(20), everyS: null },
      expectedRuntimeS: seconds(90.5),
      constraints: { arch: ['x86_64'], families: ['c5*'] },
      preferences: [{ prefer: { zones: ['us-east-1a'] }, weight: 0.1 }],
    },
  ],
  ...over,
});

export const job = (id: string, over: Partial<Job> = {}): Job => ({
  id: jobId(id),
  spec: spec(),
  template: 'ana/nightly/sh',
  state: 'pending',
  stateReason: null,
  submittedMs: epochMs(1_700_000_000_000),
  deadlineMs: epochMs(1_700_003_600_000),
  startedMs: null,
  finishedMs: null,
  cancelRequested: false,
  stages: [{ name: 'main', tasks: 4, nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 }],
  after: [],
  admission: { feasible: true, notes: ['on-demand now would take 12 min'] },
  ...over,
});

export const submission = (id: string, key: string | null = null, digest = 'd1'): Submission => ({
  job: job(id),
  idempotency: key === null ? null : { key, digest },
});

export const task = (of: string, index: number, over: Partial<Task> = {}): Task => ({
  job: jobId(of),
  stage: 'main',
  index,
  state: 'running',
  attempts: 1,
  failures: 0,
  keptS: seconds(0),
  notBeforeMs: null,
  ...over,
});

export const attempt = (id: string, over: Partial<Attempt> = {}): Attempt => ({
  id: attemptId(id),
  job: jobId('j1'),
  stage: 'main',
  index: 0,
  number: 1,
  instance: instanceId('i-1'),
  resources: { cpu: milliCpu(500), memory: mib(512), gpus: 0, disk: mib(0) },
  state: 'running',
  placedMs: epochMs(1_700_000_010_000),
  startedMs: epochMs(1_700_000_011_000.25),
  endedMs: null,
  outcome: null,
  exitCode: null,
  exitSignal: null,
  reason: null,
  resumedFromS: seconds(0),
  keptS: seconds(0),
  usage: { maxRss: mib(100), cpuS: seconds(3.5) },
  ...over,
});

export const instance = (id: string, over: Partial<Instance> = {}): Instance => ({
  id: instanceId(id),
  allocation: effectKey('launch-1'),
  pool: poolId('c5.large/us-east-1a/spot'),
  bid: 'uncapped',
  state: 'ready',
  requestedMs: epochMs(1_700_000_000_000),
  launchedMs: epochMs(1_700_000_001_000),
  readyMs: null,
  warnedMs: null,
  goneMs: null,
  rebalance: false,
  endedMs: null,
  endCause: null,
  costUsd: null,
  ...over,
});

export const explanation = (of: string, headline: string): Explanation => ({
  job: jobId(of),
  atMs: epochMs(1_700_000_000_000),
  headline,
  waiting: [],
  placed: [],
  considered: [],
  excluded: [{ constraint: 'arch', pools: 3 }],
  runtime: null,
});

export const plan = (id: string, explanations: readonly Explanation[] = []): Plan => ({
  id: planId(id),
  token: 1,
  atMs: epochMs(1_700_000_000_000),
  preset: 'ebbtide',
  effects: [effect(`${id}/e`, id).effect],
  explanations,
  solve: {
    used: 'milp',
    status: 'optimal',
    objective: 1.5,
    greedyObjective: 1.25,
    bound: 1.5,
    boundKind: 'lagrangian',
    gap: 0,
    gapOfCost: 0.1,
    variables: 10,
    constraints: 4,
    elapsedMs: 12.5,
  },
});

export const effect = (key: string, of = 'p1', outcome: EffectRecord['outcome'] = null): EffectRecord => ({
  key: effectKey(key),
  plan: planId(of),
  atMs: epochMs(1_700_000_000_000),
  effect: {
    kind: 'release',
    key: effectKey(key),
    instance: instanceId('i-1'),
    reason: 'no longer worth it',
  },
  outcome,
});

export const ledgerRow = (over: Partial<LedgerRow> = {}): LedgerRow => ({
  instance: instanceId('i-1'),
  pool: poolId('c5.large/us-east-1a/spot'),
  kind: 'work',
  attempt: attemptId('j1.main.0.1'),
  job: jobId('j1'),
  owner: 'ana',
  template: 'ana/nightly/sh',
  caller: 'uid:1000',
  fromMs: epochMs(0),
  toMs: epochMs(3_600_000),
  usd: 0.02,
  onDemandUsd: 0.085,
  ...over,
});

export const idleRow = (over: Partial<LedgerRow> = {}): LedgerRow =>
  ledgerRow({ kind: 'idle', attempt: null, job: null, owner: null, template: null, caller: null, ...over });
