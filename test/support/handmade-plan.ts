/** Small planning inputs written by hand: one type of machine (4 vCPUs, 8 GiB), one spot and one on-demand pool. */
import { DecisionMemory } from '../../lib/policy/memory.ts';
import { attemptId, effectKey, groupId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { ZERO_S, ZERO_USD, epochMs, raw, seconds, usd, usdPerHour } from '../../lib/kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { certain, type Distribution } from '../../lib/domain/distribution.ts';
import type { Offer } from '../../lib/domain/forecast.ts';
import type { InstanceState } from '../../lib/domain/instance.ts';
import type { Job, StageSpec } from '../../lib/domain/job.ts';
import type { Worth } from '../../lib/domain/plan.ts';
import type { Pool, PoolView } from '../../lib/domain/pool.ts';
import { minusResources } from '../../lib/domain/resources.ts';
import type { InstanceView, PendingGroup, RunningTask } from '../../lib/domain/snapshot.ts';
import type { PlanInput } from '../../lib/policy/contracts.ts';
import * as build from './builders.ts';
import { NO_BELIEFS } from '../../bench/load/no-beliefs.ts';

export const HOUR_S = 3600;
const NOW = epochMs(Date.UTC(2026, 4, 1));

export const at = (s: number): ReturnType<typeof epochMs> => epochMs(raw(NOW) + s * 1000);

const poolOf = (option: Pool['option']): Pool => build.pool({ zone: 'us-east-1a', option, onDemand: 0.2 });
export const SPOT = poolOf('spot');
export const ON_DEMAND = poolOf('on-demand');
const view = (pool: Pool, price: number): PoolView => ({
  pool,
  quote: usdPerHour(price),
  open: true,
  closedReason: null,
});

export interface Waiting {
  readonly name: string;
  readonly count?: number;
  readonly gang?: boolean;
  readonly cpus?: number;
  /** Worth of one task now; falls to nothing over a day unless there is a deadline. */
  readonly worthUsd: number;
  readonly deadlineS?: number;
  readonly safeStartS?: number;
  readonly runtimeS?: number;
  /** Default: that for certain. */
  readonly runtime?: Distribution;
  readonly offers?: readonly ('spot' | 'on-demand')[];
  readonly pLate?: number;
  readonly maxCostUsd?: number;
  readonly spentUsd?: number;
  /** Of the spot pool: the next try, from now, and its chance. */
  readonly opens?: { readonly inS: number; readonly p: number };
  readonly stage?: Partial<StageSpec>;
  readonly keptS?: number;
  readonly submittedS?: number;
}

export interface Running {
  readonly name: string;
  readonly instance: string;
  readonly pool?: Pool;
  readonly state?: InstanceState;
  readonly tasks: number;
  readonly cpus?: number;
  readonly class?: 'deadline' | 'best-effort';
  readonly runtime?: Distribution;
  readonly doneS?: number;
  readonly keptS?: number;
  /** Of its attempt, and how long ago that began. */
  readonly number?: number;
  readonly ranS?: number;
  readonly worth?: Worth;
  readonly gang?: boolean;
}

export interface Handmade {
  readonly waiting?: readonly Waiting[];
  readonly running?: readonly Running[];
  readonly vcpus?: number;
  readonly spotUsd?: number;
  /** Spot price expected at a later time; default: as now. */
  readonly expectedSpotUsd?: (s: number) => number;
  readonly pInterrupted?: number;
  readonly config?: Partial<SchedulerConfig>;
  readonly spotOpen?: boolean;
  /** Of every pool. */
  readonly quota?: PoolView['quota'];
}

export const flat = (worthUsd: number): Worth => ({
  curve: { points: [{ atMs: NOW, usd: worthUsd }] },
  taskDeadlineMs: null,
  latestSafeStartMs: null,
  reason: 'test',
});

/** Worth until the deadline, nothing ten minutes after. */
export const due = (worthUsd: number, deadlineS: number, safeStartS: number): Worth => ({
  curve: {
    points: [
      { atMs: at(deadlineS), usd: worthUsd },
      { atMs: at(deadlineS + 600), usd: 0 },
    ],
  },
  taskDeadlineMs: at(deadlineS),
  latestSafeStartMs: at(safeStartS),
  reason: 'test',
});

export function handmade(h: Handmade): PlanInput {
  const spotUsd = h.spotUsd ?? 0.08;
  const pools = [
    {
      ...view(SPOT, spotUsd),
      open: h.spotOpen ?? true,
      closedReason: h.spotOpen === false ? 'insufficient capacity' : null,
    },
    view(ON_DEMAND, 0.2),
  ].map((of) => (h.quota === undefined ? of : { ...of, quota: h.quota }));
  const waiting = h.waiting ?? [];
  const running = h.running ?? [];
  const views = running.map(viewOf);
  const runtime = new Map(
    [
      ...waiting.map((w) => [`${w.name}/main`, w.runtime ?? certain(seconds(w.runtimeS ?? HOUR_S))] as const),
      ...running.map((r) => [`${r.name}/main`, r.runtime ?? certain(seconds(HOUR_S))] as const),
    ].map(([key, d]) => [key, { runtime: d, basis: 'history' as const, reason: 'test' }]),
  );
  return {
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
    snapshot: build.snapshot({
      nowMs: NOW,
      jobs: new Map(waiting.map((w) => [jobId(w.name), jobOf(w)])),
      groups: waiting.map(groupOf),
      running: views.flatMap((v) => v.attempts),
      instances: new Map(views.map((v) => [v.instance.id, v])),
      pools,
      spentUsd: new Map(waiting.map((w) => [jobId(w.name), usd(w.spentUsd ?? 0)])),
      limits: { vcpus: h.vcpus ?? 1000 },
    }),
    forecasts: {
      runtime,
      market: {
        interruption: () => ({
          horizonS: Float64Array.of(HOUR_S),
          pInterrupted: Float64Array.of(h.pInterrupted ?? 0),
          reason: 'test',
        }),
        expectedPrice: (pool, t) =>
          pool.option === 'spot'
            ? usdPerHour(h.expectedSpotUsd?.((raw(t) - raw(NOW)) / 1000) ?? spotUsd)
            : pool.onDemandUsdPerHour,
        correlation: () => 0,
      },
    },
    worths: {
      groups: new Map(waiting.map((w) => [groupId(w.name), worthOf(w)])),
      ofRunning: ({ attempt: { id } }) => {
        const i = views.findIndex((view) => view.attempts.some((a) => a.attempt.id === id));
        return i < 0 ? undefined : (running[i]?.worth ?? flat(0.05));
      },
    },
    offers: new Map(
      waiting.map((w) => [
        groupId(w.name),
        {
          offers: (w.offers ?? ['spot', 'on-demand']).map((option) => offerOf(w, option, h, spotUsd)),
          excluded: [],
          considered: [],
        },
      ]),
    ),
    config: schedulerConfig.parse(h.config ?? {}),
  };
}

const worthOf = (w: Waiting): Worth =>
  w.deadlineS === undefined
    ? flat(w.worthUsd)
    : due(w.worthUsd, w.deadlineS, w.safeStartS ?? w.deadlineS - (w.runtimeS ?? HOUR_S) - 200);

function offerOf(w: Waiting, option: 'spot' | 'on-demand', h: Handmade, spotUsd: number): Offer {
  const price = option === 'spot' ? spotUsd : 0.2;
  const share = (w.cpus ?? 1) / 4;
  const runtimeS = w.runtimeS ?? HOUR_S;
  return {
    group: groupId(w.name),
    pool: option === 'spot' ? SPOT.id : ON_DEMAND.id,
    bid: option === 'spot' ? usdPerHour(0.2) : 'uncapped',
    priceUsdPerHour: usdPerHour(price),
    share,
    roomShare: share,
    newShare: share,
    startDelayS: seconds(95),
    pInterrupted: option === 'spot' ? (h.pInterrupted ?? 0) : 0,
    pLate: option === 'spot' ? (w.pLate ?? 0) : 0,
    expectedLostS: ZERO_S,
    expectedDurationS: seconds(runtimeS),
    expectedCostUsd: (share * price * runtimeS) / HOUR_S,
    ...(w.opens === undefined || option !== 'spot' ? {} : { opens: { atMs: at(w.opens.inS), p: w.opens.p } }),
  };
}

function groupOf(w: Waiting): PendingGroup {
  const need = build.resources(w.cpus ?? 1, 1024);
  return {
    id: groupId(w.name),
    job: jobId(w.name),
    class: w.deadlineS === undefined ? 'best-effort' : 'deadline',
    stage: build.stage({
      workdir: '/',
      tasks: w.count ?? 1,
      gang: w.gang ?? false,
      resources: need,
      expectedRuntimeS: null,
      ...w.stage,
    }),
    count: w.count ?? 1,
    members: { freshFrom: 0 },
    keptS: seconds(w.keptS ?? 0),
    submittedMs: at(w.submittedS ?? 0),
    deadlineMs: w.deadlineS === undefined ? null : at(w.deadlineS),
    need,
  };
}

function jobOf(w: Waiting): Job {
  return build.job({
    id: jobId(w.name),
    spec: build.spec({
      name: w.name,
      owner: 'test',
      maxCostUsd: w.maxCostUsd === undefined ? null : usd(w.maxCostUsd),
      stages: [groupOf(w).stage],
    }),
    submittedMs: NOW,
    stages: [],
  });
}

function viewOf(r: Running): InstanceView {
  const pool = r.pool ?? SPOT;
  const need = build.resources(r.cpus ?? 1, 1024);
  const id = instanceId(r.instance);
  const attempts = Array.from({ length: r.tasks }, (_, index): RunningTask => ({
    attempt: build.attempt({
      id: attemptId(`${r.name}.${index}`),
      job: jobId(r.name),
      index,
      number: r.number ?? 1,
      instance: id,
      resources: need,
      placedMs: NOW,
      startedMs: at(-(r.ranS ?? 0)),
      resumedFromS: seconds(r.doneS ?? 0),
    }),
    class: r.class ?? 'best-effort',
    stage: build.stage({
      workdir: '/',
      tasks: r.tasks,
      gang: r.gang ?? false,
      resources: need,
      expectedRuntimeS: null,
    }),
    deadlineMs: r.worth?.taskDeadlineMs ?? null,
    // All of its running time is reading: it is as far as it was when it began.
    readS: seconds(r.ranS ?? 0),
    savedS: seconds(r.keptS ?? 0),
  }));
  return {
    instance: build.instance({
      id,
      allocation: effectKey('a'),
      pool: pool.id,
      bid: pool.option === 'spot' ? usdPerHour(0.2) : 'uncapped',
      state: r.state ?? 'ready',
      requestedMs: NOW,
      launchedMs: NOW,
      readyMs: NOW,
      costUsd: ZERO_USD,
    }),
    pool,
    free: attempts.reduce((free) => minusResources(free, need), pool.type.capacity),
    attempts,
  };
}
