/** Views of domain values for API answers: plain numbers, instants as ISO strings. Pure. */
import { lte, raw, rawOrNull, vcpusIn, type EpochMs } from '../kernel/units.ts';
import type { Caller } from '../domain/caller.ts';
import { isOver, type Attempt, type Job, type MoveUsd, type StageProgress, type Task } from '../domain/job.ts';
import type { ForecastOrigin, PoolForecast } from '../domain/forecast.ts';
import type { Instance } from '../domain/instance.ts';
import type { Effect, Explanation, Plan } from '../domain/plan.ts';
import { bidNumber, poolParts, type Pool, onDemandUsdOf } from '../domain/pool.ts';
import type { Resources } from '../domain/resources.ts';
import type { EventRecord } from '../ports/store.ts';
import type {
  AttemptView,
  CallerView,
  EventView,
  ExplanationView,
  InstanceView,
  JobSummary,
  JobView,
  PlanView,
  PoolForecastView,
  PoolView,
  ResourcesView,
  StageView,
  TaskCounts,
  TaskView,
} from './schemas.ts';

/** Largest instant of a JavaScript date; `FOREVER` is later. */
const MAX_DATE_MS = 8.64e15;

export const isoOf = (ms: number): string =>
  new Date(Math.min(Math.max(Math.trunc(ms), -MAX_DATE_MS), MAX_DATE_MS)).toISOString();
export const iso = (t: EpochMs): string => isoOf(raw(t));
const isoOrNull = (t: EpochMs | null): string | null => (t === null ? null : iso(t));

export const resourcesView = (r: Resources): ResourcesView => ({
  cpus: vcpusIn(r.cpu),
  memoryMiB: raw(r.memory),
  gpus: r.gpus,
  diskMiB: raw(r.disk),
});

function counts(stages: readonly StageProgress[]): TaskCounts {
  const sum = { total: 0, pending: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  for (const s of stages) {
    sum.total += s.tasks;
    sum.pending += s.tasks - s.nextFresh;
    sum.waiting += s.waiting;
    sum.running += s.running;
    sum.succeeded += s.succeeded;
    sum.failed += s.failed;
    sum.cancelled += s.cancelled;
  }
  return sum;
}

export const callerView = (caller: Caller | undefined): CallerView | null =>
  caller === undefined ? null : { id: caller.id, name: caller.name ?? null, requestId: caller.requestId };

/** False for a job that failed, was cancelled or succeeded late; null for open jobs. */
function onTime(job: Job): boolean | null {
  if (job.deadlineMs === null || job.finishedMs === null) return null;
  return job.state === 'succeeded' && lte(job.finishedMs, job.deadlineMs);
}

export const jobSummary = (job: Job): JobSummary => ({
  id: job.id,
  name: job.spec.name,
  owner: job.spec.owner,
  labels: job.spec.labels,
  class: job.spec.class,
  template: job.template,
  state: job.state,
  stateReason: job.held?.reason ?? job.stateReason,
  submittedAt: iso(job.submittedMs),
  deadlineAt: isoOrNull(job.deadlineMs),
  startedAt: isoOrNull(job.startedMs),
  finishedAt: isoOrNull(job.finishedMs),
  onTime: onTime(job),
  endedLate: job.endedLate ?? false,
  cancelRequested: job.cancelRequested,
  submittedBy: callerView(job.submittedBy),
  cancelledBy: callerView(job.cancelledBy),
  tasks: counts(job.stages),
});

export function jobView(job: Job, explanation: Explanation | null, asOf: EpochMs): JobView {
  const progress = new Map(job.stages.map((s) => [s.name, s]));
  return {
    ...jobSummary(job),
    asOf: iso(asOf),
    maxCostUsd: rawOrNull(job.spec.maxCostUsd),
    after: [...job.after],
    admission: admissionView(job),
    ...(job.remarks === undefined ? {} : { remarks: job.remarks.map((r) => ({ ...r })) }),
    stages: job.spec.stages.map((stage): StageView => {
      const own = progress.get(stage.name);
      return {
        name: stage.name,
        dependsOn: [...stage.dependsOn],
        gang: stage.gang,
        command: [...stage.command],
        workdir: stage.workdir,
        resources: resourcesView(stage.resources),
        retries: stage.retries,
        timeoutS: rawOrNull(stage.timeoutS),
        tasks: counts(own === undefined ? [] : [own]),
      };
    }),
    headline: headlineOf(job, explanation),
  };
}

export const admissionView = (job: Job): { feasible: boolean; notes: string[] } => ({
  feasible: job.admission.feasible,
  notes: [...job.admission.notes],
});

export const taskView = (task: Task): TaskView => ({
  stage: task.stage,
  index: task.index,
  state: task.state,
  attempts: task.attempts,
  failures: task.failures,
  keptS: raw(task.keptS),
  notBeforeAt: isoOrNull(task.notBeforeMs),
});

/** Task without an attempt: it has no record, only its index. */
export const freshTaskView = (stage: string, index: number, cancelled: boolean): TaskView => ({
  stage,
  index,
  state: cancelled ? 'cancelled' : 'pending',
  attempts: 0,
  failures: 0,
  keptS: 0,
  notBeforeAt: null,
});

export const attemptView = (a: Attempt, logUrl?: (log: string) => string): AttemptView => ({
  id: a.id,
  stage: a.stage,
  index: a.index,
  number: a.number,
  role: a.role ?? 'original',
  instance: a.instance,
  resources: resourcesView(a.resources),
  state: a.state,
  outcome: a.outcome,
  placedAt: iso(a.placedMs),
  startedAt: isoOrNull(a.startedMs),
  endedAt: isoOrNull(a.endedMs),
  exitCode: a.exitCode,
  exitSignal: a.exitSignal,
  reason: a.reason,
  resumedFromS: raw(a.resumedFromS),
  keptS: raw(a.keptS),
  goesTo: a.goesTo ?? null,
  leavingAt: isoOrNull(a.leaving?.sinceMs ?? null),
  movedFrom: a.movedFrom ?? null,
  reservedAt: isoOrNull(a.reservedMs ?? null),
  usage: a.usage === null ? null : { maxRssMiB: raw(a.usage.maxRss), cpuS: raw(a.usage.cpuS) },
  logUrl: a.log === undefined ? null : (logUrl?.(a.log) ?? null),
});

export interface PoolPrices {
  readonly now: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

export const poolView = (pool: Pool, prices: PoolPrices, liveInstances: number): PoolView => ({
  id: pool.id,
  instanceType: pool.type.name,
  family: pool.type.family,
  generation: pool.type.generation,
  arch: pool.type.arch,
  zone: pool.zone,
  option: pool.option,
  capacity: resourcesView(pool.type.capacity),
  priceUsdPerHour: prices.now,
  lowUsdPerHour: prices.low,
  highUsdPerHour: prices.high,
  onDemandUsdPerHour: onDemandUsdOf(pool),
  liveInstances,
  ...(pool.reservedInstances === undefined ? {} : { reservedInstances: pool.reservedInstances }),
});

export interface InstanceExtras {
  readonly pool: Pool | undefined;
  readonly costUsd: number | null;
  readonly running: readonly Attempt[];
  /** Jobs for which it was bought, as far as they are kept. */
  readonly jobs: ReadonlyMap<string, Job>;
}

export function instanceView(i: Instance, extras: InstanceExtras): InstanceView {
  // A pool that has left the market is described by its id.
  const { type, zone, option } = poolParts(i.pool);
  return {
    id: i.id,
    allocation: i.allocation,
    pool: i.pool,
    instanceType: extras.pool?.type.name ?? type,
    zone: extras.pool?.zone ?? zone,
    option: extras.pool?.option ?? (option === 'spot' || option === 'reserved' ? option : 'on-demand'),
    bid: bidNumber(i.bid),
    state: i.state,
    requestedAt: iso(i.requestedMs),
    launchedAt: isoOrNull(i.launchedMs),
    readyAt: isoOrNull(i.readyMs),
    warnedAt: isoOrNull(i.warnedMs),
    goneAt: isoOrNull(i.goneMs),
    rebalance: i.rebalance,
    endedAt: isoOrNull(i.endedMs),
    endCause: i.endCause,
    marketCause: i.marketCause ?? null,
    costUsd: extras.costUsd,
    running: extras.running.map((a) => ({ attempt: a.id, job: a.job, stage: a.stage, index: a.index })),
    boughtFor: (i.boughtFor ?? [])
      .map(({ job, part }) => ({ job, name: extras.jobs.get(job)?.spec.name ?? null, part }))
      .sort((a, b) => b.part - a.part),
  };
}

const moveUsdView = (of: MoveUsd = {}) => ({ savedUsd: of.savedUsd ?? null, riskUsd: of.riskUsd ?? null });

function effectView(e: Effect): PlanView['effects'][number] {
  switch (e.kind) {
    case 'launch':
      return { kind: e.kind, instance: e.instance, pool: e.pool, bid: bidNumber(e.bid), reason: e.reason };
    case 'start': {
      const { job, stage, index } = e.task;
      return {
        kind: e.kind,
        attempt: e.attempt,
        task: { job, stage, index },
        instance: e.instance,
        role: e.role ?? 'original',
        reason: e.reason,
      };
    }
    case 'stop':
      return {
        kind: e.kind,
        attempt: e.attempt,
        why: e.why,
        to: e.to ?? null,
        ...moveUsdView(e.usd),
        reason: e.reason,
      };
    case 'release':
      return { kind: e.kind, instance: e.instance, reason: e.reason };
  }
}

export function forecastOriginView(origin: ForecastOrigin | null): PlanView['forecast'] {
  if (origin === null) return null;
  const { capacity, byHistory, ...prices } = origin;
  const view = { ...prices, byHistory: byHistory.map((by) => ({ ...by })) };
  if (capacity === undefined) return view;
  return { ...view, capacity: { ...capacity, byObserved: capacity.byObserved.map((by) => ({ ...by })) } };
}

export const poolForecastView = ({ pool, priceUsdPerHour, bids }: PoolForecast): PoolForecastView => ({
  pool,
  priceUsdPerHour: raw(priceUsdPerHour),
  bids: bids.map(({ bid, curve, drivers }) => ({
    bid: bidNumber(bid),
    horizonS: [...curve.horizonS],
    pInterrupted: [...curve.pInterrupted],
    reason: curve.reason,
    drivers,
  })),
});

export const planView = (p: Plan): PlanView => ({
  id: p.id,
  at: iso(p.atMs),
  token: p.token,
  preset: p.preset,
  effects: p.effects.map(effectView),
  jobs: p.explanations.map((e) => e.job),
  forecast: forecastOriginView(p.forecast ?? null),
  solve: { ...p.solve },
});

/** Sentence of the latest plan; for a finished job, its end. */
function headlineOf(job: Job, e: Explanation | null): string | null {
  if (job.held !== undefined) return `held: ${job.held.reason}`;
  if (!isOver(job.state)) return e?.headline ?? job.stateReason;
  return job.stateReason === null ? job.state : `${job.state}: ${job.stateReason}`;
}

const NOT_PLANNED = 'No plan covers this job yet.';

export const explanationView = (job: Job, e: Explanation | null): ExplanationView => ({
  job: job.id,
  name: job.spec.name,
  state: job.state,
  at: e === null ? null : iso(e.atMs),
  headline: headlineOf(job, e) ?? NOT_PLANNED,
  waiting: (isOver(job.state) ? [] : (e?.waiting ?? [])).map((w) => ({
    stage: w.stage,
    tasks: w.tasks,
    why: w.why,
    detail: w.detail,
    wouldChange: w.wouldChange,
    expectedStartAt: isoOrNull(w.expectedStartMs),
  })),
  placed: (isOver(job.state) ? [] : (e?.placed ?? [])).map((p) => ({ ...p })),
  copies: (isOver(job.state) ? [] : (e?.copies ?? [])).map((c) => ({ ...c })),
  moves: (isOver(job.state) ? [] : (e?.moves ?? [])).map((m) => ({ ...m, ...moveUsdView(m) })),
  considered: (e?.considered ?? []).map((c) => ({ ...c, bid: bidNumber(c.bid) })),
  excluded: (e?.excluded ?? []).map((x) => ({ ...x })),
  forecast: (isOver(job.state) ? [] : (e?.forecast ?? [])).map((f) => ({ ...f, bid: bidNumber(f.bid) })),
  runtime:
    e === null || e.runtime === null
      ? null
      : { medianS: raw(e.runtime.medianS), p90S: raw(e.runtime.p90S), basis: e.runtime.basis },
  admission: admissionView(job),
});

export const eventView = (e: EventRecord): EventView => ({
  sequence: e.sequence,
  at: iso(e.atMs),
  atMs: raw(e.atMs),
  type: e.type,
  job: e.job,
  text: e.text,
  data: e.data,
});
