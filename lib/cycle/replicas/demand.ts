/**
 * What a service asks of a footprint policy. Units are replicas: an instance to come has as many as fit, a held one
 * those that run on it.
 */
import { milliCpu, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { takesTasks } from '../../domain/instance.ts';
import type { StageSpec } from '../../domain/job.ts';
import { mostTogether } from '../../domain/placement-rules.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import { countFits, type Resources } from '../../domain/resources.ts';
import { SERVICE_LABEL, type ServiceNeed } from '../../domain/service.ts';
import type { InstanceView, Snapshot } from '../../domain/snapshot.ts';
import type { Leftover, ScaleInput } from '../../policy/contracts.ts';
import type {
  FootprintChange,
  FootprintContext,
  FootprintPolicy,
  HeldInstance,
} from '../../policy/services/contracts.ts';
import { unitsOf } from '../../stages/services/units.ts';

/** How a deployment buys for services. */
export interface Acquiring {
  readonly footprint: FootprintPolicy;
  /** Pools in which its preset may buy. Absent: any. */
  readonly buys?: (pool: Pool) => boolean;
}

export type Known = Pick<ScaleInput, 'snapshot' | 'config'> & {
  readonly forecasts: { readonly market: MarketForecast };
};

/** Service of a replica's job; null: it is a job of its own. */
export const serviceOf = (job: Leftover['group']['job'], { jobs }: Pick<Snapshot, 'jobs'>): string | null => {
  const spec = jobs.get(job)?.spec;
  return spec?.class === 'service' ? (spec.labels[SERVICE_LABEL] ?? null) : null;
};

export interface Priced {
  readonly change: FootprintChange;
  readonly fits: (pool: Pool['id']) => number;
  readonly held: readonly HeldInstance[];
}

/** What a service asks a footprint policy, in units of replicas like `stage`. */
export function demandOf(
  need: ServiceNeed,
  stage: StageSpec,
  { snapshot, config, forecasts, buys }: Known & Acquiring,
) {
  const pools = new Map<string, PoolView>();
  for (const view of snapshot.pools) {
    const isAllowed = buys?.(view.pool) !== false && brokenConstraint(stage.constraints, view.pool) === null;
    const units = isAllowed ? Math.min(fitsOn(view.pool, stage), need.together ?? Infinity) : 0;
    if (units > 0) pools.set(view.pool.id, { ...view, pool: inUnits(view.pool, units) });
  }
  const fits = (pool: Pool['id']): number => {
    const view = pools.get(pool);
    return view === undefined ? 0 : unitsOf(view.pool);
  };
  const held = heldBy(need, snapshot, (pool) => pools.get(pool.id)?.pool ?? inUnits(pool, 1));
  const empty = emptyOnes(snapshot, (pool) => pools.get(pool.id)?.pool ?? null);
  const of = contextOf({ need, nowMs: snapshot.nowMs, config, market: forecasts.market });
  const context: FootprintContext = { ...of, pools: [...pools.values()], held };
  return { context, fits, held, empty };
}

const contextOf = (of: {
  readonly need: ServiceNeed;
  readonly nowMs: EpochMs;
  readonly config: SchedulerConfig;
  readonly market: MarketForecast;
}) => ({
  nowMs: of.nowMs,
  config: of.config,
  market: of.market,
  hourlyUsd: (pool: Pool) => of.market.hourlyUsd?.(pool) ?? [],
  demand: {
    utility: utilityOf(of.need),
    target: of.need.target,
    ...(of.need.together === null ? {} : { most: of.need.together }),
  },
});

/**
 * Utility of replicas: those that the load needs serve all requests in time, fewer a share of them, whose worth the
 * service may state.
 */
function utilityOf({ needed, utility }: ServiceNeed): (replicas: number) => number {
  const share = (replicas: number): number => (needed === 0 ? 1 : Math.min(1, replicas / needed));
  if (utility === null) return share;
  return (replicas) => {
    const at = share(replicas);
    const next = utility.findIndex(([s]) => s >= at);
    const [s1, u1] = utility[next === -1 ? utility.length - 1 : next] ?? [1, 1];
    const [s0, u0] = next > 0 ? (utility[next - 1] ?? [0, 0]) : [0, 0];
    if (next === -1 || s1 === s0) return u1;
    return u0 + ((u1 - u0) * (at - s0)) / (s1 - s0);
  };
}

const fitsOn = ({ type }: Pool, { resources, placement = {} }: StageSpec): number =>
  Math.min(countFits(resources, type.capacity), mostTogether(placement));

/** The pool with as many vCPUs as replicas fit on an instance: what policies count. */
const inUnits = (pool: Pool, units: number): Pool => ({
  ...pool,
  type: { ...pool.type, capacity: { ...pool.type.capacity, cpu: milliCpu(1000 * units) } satisfies Resources },
});

/** Replicas of a service on an instance. O(tasks on it). */
export const replicasOn = ({ attempts }: InstanceView, service: string, snapshot: Pick<Snapshot, 'jobs'>): number =>
  attempts.filter((r) => serviceOf(r.attempt.job, snapshot) === service).length;

/** Instances on which the service's replicas run or start, without those that are being lost or left. */
const heldBy = (
  { name, leaving }: ServiceNeed,
  snapshot: Snapshot,
  poolOf: (pool: Pool) => Pool,
): readonly HeldInstance[] =>
  [...snapshot.instances.values()].flatMap((view) => {
    const units = view.instance.id === leaving ? 0 : replicasOn(view, name, snapshot);
    return units === 0 ? [] : serving(view, units, poolOf(view.pool));
  });

/** Instances that came or come and on which nothing runs: bought for replicas that wait, as far as is known. */
const emptyOnes = (snapshot: Snapshot, poolOf: (pool: Pool) => Pool | null): readonly HeldInstance[] =>
  [...snapshot.instances.values()].flatMap((view) => {
    const pool = view.attempts.length > 0 ? null : poolOf(view.pool);
    return pool === null ? [] : serving(view, unitsOf(pool), pool);
  });

function serving({ instance }: InstanceView, units: number, pool: Pool): readonly HeldInstance[] {
  const { id, bid, launchedMs } = instance;
  return takesTasks(instance) ? [{ id, bid, launchedMs, units, pool }] : [];
}
