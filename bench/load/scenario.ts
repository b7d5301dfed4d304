/**
 * Synthetic planning problems with seeds: a snapshot with pools, instances, running and waiting work, and the worths,
 * offers and forecasts of earlier stages. For tests (small) and bench/plan.ts (large).
 */
import { DecisionMemory } from '../../lib/policy/memory.ts';
import {
  attemptId,
  effectKey,
  groupId,
  instanceId,
  jobId,
  type AttemptId,
  type GroupId,
  type InstanceId,
} from '../../lib/kernel/ids.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import {
  ZERO_S,
  epochMs,
  mib,
  milliCpu,
  plus,
  raw,
  seconds,
  usd,
  usdPerHour,
  type EpochMs,
} from '../../lib/kernel/units.ts';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { distribution, type Distribution, meanS, quantileS } from '../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED, type Offer, type RuntimeForecast } from '../../lib/domain/forecast.ts';
import type { Job, StageSpec } from '../../lib/domain/job.ts';
import type { UtilityCurve, Worth } from '../../lib/domain/plan.ts';
import {
  poolKey,
  type InstanceType,
  type Pool,
  type PoolView,
  poolParts,
  onDemandUsdOf,
} from '../../lib/domain/pool.ts';
import {
  countFits,
  dominantShare,
  minusResources,
  times,
  type Resources,
  milliCpuIn,
} from '../../lib/domain/resources.ts';
import type { InstanceView, PendingGroup, RunningTask } from '../../lib/domain/snapshot.ts';
import type { GroupOffers, PlanInput } from '../../lib/policy/contracts.ts';
import { attempt as attemptOf, instance, needOf, NOW, snapshot, stage } from './values.ts';
import { NO_BELIEFS } from './no-beliefs.ts';

export interface ScenarioShape {
  readonly seed: number;
  readonly groups: number;
  readonly pools: number;
  /** Tasks per group: uniform from 1 to twice this, less one. */
  readonly tasksPerGroup: number;
  readonly instances: number;
  /** vCPU limit as a fraction of the needs of all waiting work. */
  readonly supply: number;
  readonly gangs?: number;
  readonly config?: Partial<SchedulerConfig>;
}

const SIZES = ['large', 'xlarge', '2xlarge', '4xlarge'] as const;
const FAMILIES = [
  'c5',
  'm5',
  'r5',
  'c6i',
  'm6i',
  'r6i',
  'c5d',
  'm5d',
  'c4',
  'm4',
  'r4',
  'm6a',
  'c6a',
  'r6a',
  'c7i',
  'm7i',
];
const MEMORY_PER_CPU = { c: 2048, m: 4096, r: 8192 } as const;

export function scenario(shape: ScenarioShape): PlanInput {
  const draw = randomStream(shape.seed, 'plan-scenario');
  const config = schedulerConfig.parse(shape.config ?? {});
  const pools = poolsOf(shape.pools, draw);
  const groups: PendingGroup[] = [];
  const jobs = new Map<Job['id'], Job>();
  const runtime = new Map<string, RuntimeForecast>();
  const worths = new Map<GroupId, Worth>();
  const offers = new Map<GroupId, GroupOffers>();
  for (let i = 0; i < shape.groups; i++) {
    const job = jobId(`job${String(i).padStart(5, '0')}`);
    const group = groupOf(job, shape, draw);
    const forecast = lognormal(600 * 12 ** draw(), 0.5, draw);
    runtime.set(`${job}/main`, { runtime: forecast, basis: 'history', reason: 'drawn' });
    const slackS = meanS(forecast) + config.slotS * config.lookAheadSlots * 2 * draw();
    const deadlineMs = group.class === 'deadline' ? plus(NOW, seconds(slackS + config.startDelayMaxS)) : null;
    groups.push({ ...group, deadlineMs });
    worths.set(group.id, worthOf(group, forecast, deadlineMs, draw));
    offers.set(group.id, offersOf(group, forecast, pools, { config, draw }));
  }
  const attempts = new Map<AttemptId, Worth>();
  const instances = new Map<InstanceId, InstanceView>();
  for (let i = 0; i < shape.instances; i++) {
    const view = instanceOf(i, pools, { draw, runtime, attempts });
    instances.set(view.instance.id, view);
  }
  const running = [...instances.values()].flatMap((view) => view.attempts);
  const wanted = groups.reduce((sum, g) => sum + (g.count * milliCpuIn(g.need)) / 1000, 0);
  const live = [...instances.values()].reduce((sum, v) => sum + milliCpuIn(v.pool.type.capacity) / 1000, 0);
  return {
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
    snapshot: snapshot({
      nowMs: NOW,
      jobs,
      groups,
      running,
      instances,
      pools,
      limits: { vcpus: Math.ceil(live + wanted * shape.supply) },
    }),
    forecasts: { runtime, market: marketOf(pools) },
    worths: { groups: worths, ofRunning: (r) => attempts.get(r.attempt.id) },
    offers,
    config,
  };
}

/** Spot and on-demand pools in pairs, cycling through types and zones. */
export function poolsOf(count: number, draw: Uniform): readonly PoolView[] {
  const views: PoolView[] = [];
  for (let i = 0; views.length < count; i++) {
    const family = FAMILIES[Math.floor(i / SIZES.length) % FAMILIES.length] ?? 'm5';
    const size = i % SIZES.length;
    const zone = `us-east-1${'abcdef'[Math.floor(i / (SIZES.length * FAMILIES.length))] ?? 'a'}`;
    const type = instanceType(family, size);
    const onDemand = 0.048 * 2 ** size * (0.85 + 0.1 * Math.floor(i / SIZES.length) * 0.1 + 0.05 * draw());
    const spot = onDemand * (0.25 + 0.35 * draw());
    for (const [option, price] of [
      ['spot', spot],
      ['on-demand', onDemand],
    ] as const) {
      if (views.length >= count) break;
      const pool: Pool = {
        id: poolKey(type.name, zone, option),
        type,
        zone,
        option,
        onDemandUsdPerHour: usdPerHour(onDemand),
      };
      views.push({ pool, quote: usdPerHour(price), open: true, closedReason: null });
    }
  }
  return views;
}

function instanceType(family: string, size: number): InstanceType {
  const cpus = 2 * 2 ** size;
  const perCpu = MEMORY_PER_CPU[family[0] as 'c' | 'm' | 'r'];
  return {
    name: `${family}.${SIZES[size]}`,
    family,
    generation: Number(family[1]),
    arch: 'x86_64',
    capacity: { cpu: milliCpu(cpus * 1000), memory: mib(cpus * perCpu), gpus: 0, disk: mib(100_000) },
  };
}

export const stageOf = (need: Resources, tasks: number, gang: boolean): StageSpec =>
  stage({ resources: need, tasks, gang });

function groupOf(job: Job['id'], shape: ScenarioShape, draw: Uniform): PendingGroup {
  const need = needOf(
    [0.5, 1, 1, 2, 4][Math.floor(draw() * 5)] ?? 1,
    [1000, 2000, 4000, 6000][Math.floor(draw() * 4)] ?? 1000,
  );
  const count = 1 + Math.floor(draw() * (2 * shape.tasksPerGroup - 1));
  const gang = draw() < (shape.gangs ?? 0);
  return {
    id: groupId(`${job}/main`),
    job,
    class: draw() < 0.5 ? 'deadline' : 'best-effort',
    stage: stageOf(need, count, gang),
    count,
    members: { freshFrom: 0 },
    keptS: ZERO_S,
    submittedMs: epochMs(raw(NOW) - Math.floor(draw() * 3_600_000)),
    deadlineMs: null,
    need,
  };
}

export function lognormal(medianS: number, sigma: number, draw: Uniform): Distribution {
  const points = Array.from({ length: 20 }, (_, i): [number, number] => {
    const u = (i + 0.25 + 0.5 * draw()) / 20;
    return [medianS * Math.exp(sigma * probit(u)), 1];
  });
  return distribution(points);
}

/** Quantile of the standard normal, to three digits (Bowling et al. 2009, the logistic approximation inverted). */
const probit = (u: number): number => Math.log(u / (1 - u)) / 1.702;

/**
 * Worth of a task: with a deadline ten to a hundred times its on-demand cost, best-effort two to three times, falling
 * over a day.
 */
function worthOf(group: PendingGroup, runtime: Distribution, deadlineMs: EpochMs | null, draw: Uniform): Worth {
  const onDemandUsd = (milliCpuIn(group.need) / 1000) * 0.05 * (meanS(runtime) / 3600);
  if (deadlineMs === null) {
    const worth = onDemandUsd * (2 + draw());
    const curve = {
      points: [
        { atMs: NOW, usd: worth },
        { atMs: epochMs(raw(NOW) + 86_400_000), usd: 0 },
      ],
    };
    return { curve, taskDeadlineMs: null, latestSafeStartMs: null, reason: 'best effort' };
  }
  const worth = onDemandUsd * 10 ** (1 + draw());
  const curve: UtilityCurve = {
    points: [
      { atMs: deadlineMs, usd: worth },
      { atMs: epochMs(raw(deadlineMs) + 1_800_000), usd: 0 },
    ],
  };
  const safe = epochMs(raw(deadlineMs) - (quantileS(runtime, 0.95) + 170) * 1000);
  return { curve, taskDeadlineMs: deadlineMs, latestSafeStartMs: safe, reason: 'deadline' };
}

export function offersOf(
  group: PendingGroup,
  runtime: Distribution,
  pools: readonly PoolView[],
  { config, draw }: { readonly config: SchedulerConfig; readonly draw: Uniform },
): GroupOffers {
  const all = pools.flatMap((view): Offer[] => {
    const { pool } = view;
    if (countFits(group.need, pool.type.capacity) < 1 || view.quote === null) return [];
    const share = dominantShare(group.need, pool.type.capacity);
    const spot = pool.option === 'spot';
    const runS = meanS(runtime);
    const pInterrupted = spot ? Math.min(0.9, (0.02 + 0.1 * draw()) * (runS / 3600)) : 0;
    const durationS = runS * (1 + 0.5 * pInterrupted);
    const slack = group.deadlineMs === null ? Infinity : (raw(group.deadlineMs) - raw(NOW)) / 1000;
    return [
      {
        group: group.id,
        pool: pool.id,
        bid: spot ? pool.onDemandUsdPerHour : 'uncapped',
        priceUsdPerHour: view.quote,
        share,
        roomShare: share,
        newShare: share,
        startDelayS: seconds(config.startDelayMeanS),
        pInterrupted,
        pLate: group.deadlineMs === null ? 0 : Math.min(1, pInterrupted * (durationS > slack * 0.5 ? 0.6 : 0.1)),
        expectedLostS: seconds(0.5 * pInterrupted * runS),
        expectedDurationS: seconds(durationS),
        expectedCostUsd: (share * raw(view.quote) * durationS) / 3600,
      },
    ];
  });
  all.sort((a, b) => a.expectedCostUsd - b.expectedCostUsd);
  const kept = all.slice(0, config.offersPerGroup - 1);
  const onDemand = all.find((offer) => poolParts(offer.pool).option === 'on-demand');
  const offers =
    onDemand === undefined || kept.includes(onDemand) ? all.slice(0, config.offersPerGroup) : [...kept, onDemand];
  return { offers, excluded: [], considered: [] };
}

interface World {
  readonly draw: Uniform;
  readonly runtime: Map<string, RuntimeForecast>;
  readonly attempts: Map<AttemptId, Worth>;
}

/** Spot instance, partly filled with best-effort tasks. */
function instanceOf(index: number, pools: readonly PoolView[], { draw, runtime, attempts }: World): InstanceView {
  const spot = pools.filter((view) => view.pool.option === 'spot');
  const pool = (spot[Math.floor(draw() * spot.length)] ?? pools[0])?.pool;
  if (pool === undefined) throw new Error('a scenario has pools');
  const id = instanceId(`i-${String(index).padStart(6, '0')}`);
  const need = needOf(1, 1500);
  const count = Math.floor(draw() * (1 + countFits(need, pool.type.capacity)));
  const job = jobId(`running${index % 17}`);
  if (!runtime.has(`${job}/main`)) {
    runtime.set(`${job}/main`, { runtime: lognormal(5400, 0.5, draw), basis: 'history', reason: 'drawn' });
  }
  const tasks = Array.from({ length: count }, (_, n): RunningTask => {
    const attempt = attemptId(`${id}/${n}`);
    const doneS = seconds(Math.floor(draw() * 10) * 300);
    attempts.set(attempt, {
      curve: {
        points: [
          { atMs: NOW, usd: 0.1 },
          { atMs: epochMs(raw(NOW) + 86_400_000), usd: 0 },
        ],
      },
      taskDeadlineMs: null,
      latestSafeStartMs: null,
      reason: 'best effort',
    });
    return {
      attempt: attemptOf({ id: attempt, job, index: n, instance: id, resources: need, resumedFromS: doneS }),
      class: 'best-effort',
      stage: stageOf(need, count, false),
      deadlineMs: null,
      readS: ZERO_S,
      savedS: seconds(Math.floor(raw(doneS) / 600) * 600),
    };
  });
  return {
    instance: instance(id, pool.id, { allocation: effectKey(`launch/${index}`), costUsd: usd(0) }),
    pool,
    free: minusResources(pool.type.capacity, times(need, count)),
    attempts: tasks,
  };
}

/** Spot prices fall back to 40 % of on-demand over an hour or so. */
export function marketOf(pools: readonly PoolView[]): PlanInput['forecasts']['market'] {
  const quotes = new Map(pools.map((view) => [view.pool.id, view.quote]));
  return {
    interruption: () => NEVER_INTERRUPTED,
    expectedPrice: (pool, at) => {
      const now = quotes.get(pool.id) ?? null;
      if (now === null || pool.option !== 'spot') return now;
      const usual = 0.4 * onDemandUsdOf(pool);
      const weight = Math.exp(-(raw(at) - raw(NOW)) / 3_600_000);
      return usdPerHour(usual + (raw(now) - usual) * weight);
    },
    correlation: () => 0,
  };
}
