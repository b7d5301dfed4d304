import { DecisionMemory } from '../../lib/policy/memory.ts';
import type { Beliefs } from '../../lib/policy/learner.ts';
import { NO_BELIEFS } from '../../bench/load/no-beliefs.ts';
import { effectKey, groupId, instanceId, jobId, type GroupId } from '../../lib/kernel/ids.ts';
import { epochMs, raw, seconds, usdPerHour, type EpochMs } from '../../lib/kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { distribution, type Distribution } from '../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED, type InterruptionCurve, type RuntimeForecast } from '../../lib/domain/forecast.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { StageSpec } from '../../lib/domain/job.ts';
import type { Worth } from '../../lib/domain/plan.ts';
import type { Bid, Pool, PoolView, PurchaseOption } from '../../lib/domain/pool.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import type { InstanceView, PendingGroup, Snapshot } from '../../lib/domain/snapshot.ts';
import type { Forecasts, MarketForecast } from '../../lib/domain/forecasts.ts';
import type { Worths } from '../../lib/policy/contracts.ts';
import * as build from './builders.ts';

/** What a decision starts from: groups, pools, prices, forecasts and worths, for tests of single stages. */
export const NOW: EpochMs = epochMs(1_700_000_000_000);

export const config = (over: Partial<SchedulerConfig> = {}): SchedulerConfig => ({
  ...schedulerConfig.parse({}),
  ...over,
});

export const resources = (vcpus: number, gib: number, gpus = 0): Resources => ({
  ...build.resources(vcpus, gib * 1024),
  gpus,
});

export interface PoolFacts {
  readonly type?: string;
  readonly zone?: string;
  readonly option?: PurchaseOption;
  readonly vcpus?: number;
  readonly gib?: number;
  readonly gpus?: number;
  readonly onDemand?: number;
  readonly arch?: 'x86_64' | 'arm64';
}

export function pool({ vcpus = 2, gib = 8, ...facts }: PoolFacts = {}): Pool {
  return build.pool({
    type: 'm5.large',
    zone: 'us-east-1a',
    onDemand: 0.1,
    ...facts,
    cpus: vcpus,
    memoryMiB: gib * 1024,
  });
}

export const view = (p: Pool, quote: number | null, open = true): PoolView => ({
  pool: p,
  quote: quote === null ? null : usdPerHour(quote),
  open,
  closedReason: open ? null : 'insufficient capacity',
});

export const curve = (points: readonly (readonly [number, number])[]): InterruptionCurve => ({
  horizonS: Float64Array.from(points, ([s]) => s),
  pInterrupted: Float64Array.from(points, ([, p]) => p),
  reason: 'given',
});

/** Constant hazard, tabulated finely enough that linear pieces are exact to four digits. */
export const exponential = (perHour: number): InterruptionCurve =>
  curve(Array.from({ length: 400 }, (_, i) => [(i + 1) * 300, 1 - Math.exp((-perHour * (i + 1) * 300) / 3600)]));

/** A market whose prices stay and whose curves are given per pool id (spot only). */
export function market(
  views: readonly PoolView[],
  curves: (p: Pool, bid: Bid) => InterruptionCurve = () => exponential(0.03),
  correlation: (a: Pool, b: Pool) => number = (a, b) => (a.id === b.id ? 1 : 0),
): MarketForecast {
  const quotes = new Map(views.map((v) => [v.pool.id, v.quote]));
  return {
    interruption: (p, bid) => (p.option === 'spot' ? curves(p, bid) : NEVER_INTERRUPTED),
    expectedPrice: (p) => quotes.get(p.id) ?? null,
    correlation,
  };
}

export const stage = (over: Partial<StageSpec> = {}): StageSpec =>
  build.stage({ workdir: '/', resources: resources(1, 1), expectedRuntimeS: null, ...over });

export interface GroupFacts extends Partial<Omit<PendingGroup, 'id' | 'job' | 'stage'>> {
  readonly id: string;
  readonly job?: string;
  readonly stage?: Partial<StageSpec>;
}

export function group(facts: GroupFacts): PendingGroup {
  const { id, job = id, stage: stageOver = {}, ...over } = facts;
  const spec = stage({ ...stageOver, ...(over.need === undefined ? {} : { resources: over.need }) });
  return {
    class: 'best-effort',
    count: 1,
    members: { freshFrom: 0 },
    keptS: seconds(0),
    submittedMs: NOW,
    deadlineMs: null,
    need: spec.resources,
    ...over,
    id: groupId(id),
    job: jobId(job),
    stage: spec,
  };
}

export const worth = (deadlineInS: number | null, safeInS: number | null = deadlineInS): Worth => ({
  curve: { points: [] },
  taskDeadlineMs: deadlineInS === null ? null : epochMs(raw(NOW) + deadlineInS * 1000),
  latestSafeStartMs: safeInS === null ? null : epochMs(raw(NOW) + safeInS * 1000),
  reason: 'given',
});

export interface WorldFacts {
  readonly groups?: readonly PendingGroup[];
  readonly pools: readonly PoolView[];
  readonly runtime?: (g: PendingGroup) => Distribution;
  readonly basis?: RuntimeForecast['basis'];
  readonly worth?: (g: PendingGroup) => Worth;
  readonly market?: MarketForecast;
  readonly instances?: readonly InstanceView[];
  readonly vcpus?: number;
}

export interface World {
  readonly memory: DecisionMemory;
  readonly beliefs: Beliefs;
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly worths: Worths;
}

export function world(facts: WorldFacts): World {
  const groups = facts.groups ?? [];
  const runtime = facts.runtime ?? (() => distribution([[3600, 1]]));
  return {
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
    snapshot: build.snapshot({
      nowMs: NOW,
      groups,
      instances: new Map((facts.instances ?? []).map((i) => [i.instance.id, i])),
      pools: facts.pools,
      limits: { vcpus: facts.vcpus ?? 1e9 },
    }),
    forecasts: {
      runtime: new Map(
        groups.map((g) => [
          `${g.job}/${g.stage.name}`,
          { runtime: runtime(g), basis: facts.basis ?? 'history', reason: 'given' },
        ]),
      ),
      market: facts.market ?? market(facts.pools),
    },
    worths: {
      groups: new Map<GroupId, Worth>(groups.map((g) => [g.id, (facts.worth ?? (() => worth(null)))(g)])),
      ofRunning: () => undefined,
    },
  };
}

export function instance(id: string, p: Pool, over: Partial<Instance> = {}): InstanceView {
  return {
    instance: build.instance({
      id: instanceId(id),
      allocation: effectKey('a'),
      pool: p.id,
      requestedMs: NOW,
      launchedMs: NOW,
      readyMs: NOW,
      ...over,
    }),
    pool: p,
    free: p.type.capacity,
    attempts: [],
  };
}
