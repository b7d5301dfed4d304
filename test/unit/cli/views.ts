import type {
  AttemptView,
  CostReport,
  EventView,
  HealthView,
  InstanceView,
  JobCostView,
  JobView,
  TaskCounts,
} from '../../../lib/api/schemas.ts';

/** Builders of API answers: complete views with the fields that a test is about. */
const NOW = '2026-03-01T12:00:00.000Z';

export const tasksOf = (counts: Partial<TaskCounts> & { total: number }): TaskCounts => ({
  pending: 0,
  waiting: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  ...counts,
});

export const jobOf = (of: Partial<JobView> = {}): JobView => ({
  id: 'j-1',
  name: 'render',
  owner: 'ada',
  labels: {},
  class: 'deadline',
  template: 'ada/render/node',
  state: 'running',
  stateReason: null,
  submittedAt: '2026-03-01T11:00:00.000Z',
  deadlineAt: '2026-03-01T14:00:00.000Z',
  startedAt: '2026-03-01T11:02:00.000Z',
  finishedAt: null,
  onTime: null,
  endedLate: false,
  cancelRequested: false,
  submittedBy: { id: 'uid:1000', name: 'ada', requestId: 'r-1' },
  cancelledBy: null,
  tasks: tasksOf({ total: 7, succeeded: 3, running: 2, pending: 2 }),
  asOf: NOW,
  maxCostUsd: null,
  after: [],
  admission: { feasible: true, notes: [] },
  stages: [
    {
      name: 'frames',
      dependsOn: [],
      gang: false,
      command: ['node', 'frames.mjs'],
      workdir: '/data',
      resources: { cpus: 1, memoryMiB: 512, gpus: 0, diskMiB: 0 },
      retries: 0,
      timeoutS: null,
      tasks: tasksOf({ total: 6, succeeded: 3, running: 2, pending: 1 }),
    },
  ],
  headline: null,
  ...of,
});

export const moneyOf = (of: Partial<CostReport['total']> = {}): CostReport['total'] => ({
  workUsd: 0,
  wastedUsd: 0,
  speculativeUsd: 0,
  idleUsd: 0,
  totalUsd: 0,
  onDemandUsd: 0,
  instanceHours: 0,
  ...of,
});

export const jobCostOf = (total: Partial<CostReport['total']> = {}): JobCostView => ({
  job: 'j-1',
  owner: 'ada',
  submittedBy: null,
  asOf: NOW,
  settled: true,
  rows: [],
  accruedUsd: 0,
  total: moneyOf(total),
  maxCostUsd: null,
});

export const attemptOf = (of: Partial<AttemptView> = {}): AttemptView => ({
  id: 'a-1',
  stage: 'frames',
  index: 0,
  number: 1,
  role: 'original',
  instance: 'i-1',
  resources: { cpus: 1, memoryMiB: 512, gpus: 0, diskMiB: 0 },
  state: 'ended',
  outcome: 'succeeded',
  placedAt: '2026-03-01T11:00:00.000Z',
  startedAt: '2026-03-01T11:02:00.000Z',
  endedAt: '2026-03-01T11:12:00.000Z',
  exitCode: 0,
  exitSignal: null,
  reason: null,
  resumedFromS: 0,
  keptS: 600,
  usage: null,
  logUrl: null,
  ...of,
});

export const instanceOf = (of: Partial<InstanceView> = {}): InstanceView => ({
  id: 'i-1',
  allocation: 'l-1',
  pool: 'c5.large/us-east-1a/spot',
  instanceType: 'c5.large',
  zone: 'us-east-1a',
  option: 'spot',
  bid: 'uncapped',
  state: 'ready',
  requestedAt: NOW,
  launchedAt: NOW,
  readyAt: NOW,
  warnedAt: null,
  goneAt: null,
  rebalance: false,
  endedAt: null,
  endCause: null,
  boughtFor: [],
  marketCause: null,
  costUsd: 0.01,
  running: [{ attempt: 'a-1', job: 'j-1', stage: 'frames', index: 4 }],
  ...of,
});

export const HEALTH: HealthView = {
  disk: null,
  status: 'ok',
  detail: null,
  version: '0.1.0',
  now: NOW,
  nowMs: Date.parse(NOW),
  engineStartedAt: NOW,
  lastCycleAt: null,
  market: { name: 'generated', from: NOW, to: NOW, speed: 60 },
  preset: 'ebbtide',
};

export const eventOf = (type: string, text = type): EventView => ({
  sequence: 1,
  at: NOW,
  atMs: Date.parse(NOW),
  type,
  job: 'j-1',
  text,
  data: {},
});
