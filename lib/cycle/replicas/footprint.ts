/**
 * Instances for replicas of services, beside those for jobs: which pools, which bids, and how many replicas beyond
 * those that the load needs, because some may be lost (Tributary, sections 2.2.2 and 2.2.3). One acquirer buys for all:
 * what a service asks for here is bought by the same plan, within the same limits, as instances for jobs; and replicas
 * first take room on instances that are there.
 * Units are replicas: an instance to come has as many as fit, a held one those that run on it.
 */
import { milliCpu, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { takesTasks } from '../../domain/instance.ts';
import type { StageSpec } from '../../domain/job.ts';
import { mostTogether } from '../../domain/placement-rules.ts';
import type { Purchase } from '../../domain/plan.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import { countFits, type Resources } from '../../domain/resources.ts';
import { SERVICE_LABEL, type ServiceNeed, type Spare } from '../../domain/service.ts';
import type { InstanceView, Snapshot } from '../../domain/snapshot.ts';
import type { Leftover, ScaleInput, ScalePolicy } from '../../policy/contracts.ts';
import type { FootprintChange, FootprintPolicy, HeldInstance } from '../../policy/services/contracts.ts';

/** Most spare replicas, over those that the load needs: beyond that a market is no place for a service. */
const MOST_SPARE = 1;

/** How a deployment buys for services. */
export interface Acquiring {
  readonly footprint: FootprintPolicy;
  /** Pools in which its preset may buy. Absent: any. */
  readonly buys?: (pool: Pool) => boolean;
}

type Known = Pick<ScaleInput, 'snapshot' | 'config'> & { readonly forecasts: { readonly market: MarketForecast } };

/** The same policy for jobs; replicas without room get instances as the footprint policy says, as far as it says. */
export const scaleReplicas =
  (scale: ScalePolicy, { footprint, buys }: Acquiring): ScalePolicy =>
  (input) => {
    const byService = Map.groupBy(input.leftovers, (l) => serviceOf(l.group.job, input.snapshot));
    const bought: Purchase[] = [];
    const left: Leftover[] = [...(byService.get(null) ?? [])];
    for (const [name, of] of byService) {
      if (name === null) continue;
      const need = input.snapshot.services?.get(name);
      const [first] = of;
      if (need === undefined || first === undefined) left.push(...of);
      else {
        const covered = cover(of, changeFor(need, first.group.stage, { ...input, footprint, ...(buys && { buys }) }));
        bought.push(...covered.purchases);
        left.push(...covered.left);
      }
    }
    if (bought.length === 0) return scale(input);
    const rest = scale({ ...input, leftovers: left });
    return { ...rest, purchases: [...bought, ...rest.purchases] };
  };

/** Service of a replica's job; null: it is a job of its own. */
const serviceOf = (job: Leftover['group']['job'], { jobs }: Pick<Snapshot, 'jobs'>): string | null => {
  const spec = jobs.get(job)?.spec;
  return spec?.class === 'service' ? (spec.labels[SERVICE_LABEL] ?? null) : null;
};

interface Priced {
  readonly change: FootprintChange;
  readonly fits: (pool: Pool['id']) => number;
  readonly held: readonly HeldInstance[];
}

/** Purchases in the order of the policy until all replicas have room; replicas beyond are left. */
function cover(of: readonly Leftover[], { change, fits }: Priced) {
  let open = of.reduce((n, l) => n + l.count, 0);
  const purchases: Purchase[] = [];
  for (const { pool, bid, count, reason } of change.buy) {
    const each = fits(pool);
    const instances = Math.min(count, Math.ceil(open / Math.max(1, each)));
    if (instances < 1 || each < 1) continue;
    open = Math.max(0, open - instances * each);
    purchases.push({ pool, bid, count: instances, reason: `for replicas of a service: ${reason}` });
  }
  const left: Leftover[] = [];
  for (const l of [...of].reverse()) {
    const count = Math.min(open, l.count);
    if (count > 0) left.unshift({ ...l, count });
    open -= count;
  }
  return { purchases, left };
}

/** Spare replicas of each service that runs. O(services x pools x bids x instances). */
export function sparesOf(known: Known, acquiring: Acquiring): readonly Spare[] {
  const { snapshot } = known;
  const stages = new Map<string, StageSpec>();
  for (const { spec } of snapshot.jobs.values()) {
    const name = spec.class === 'service' ? spec.labels[SERVICE_LABEL] : undefined;
    const [stage] = spec.stages;
    // Of several revisions the last submitted one: what comes next is like it.
    if (name !== undefined && stage !== undefined) stages.set(name, stage);
  }
  return [...stages].flatMap(([name, stage]): Spare[] => {
    const need = snapshot.services?.get(name);
    if (need === undefined || need.needed === 0) return [];
    return [spareOf(need, changeFor(need, stage, { ...known, ...acquiring }))];
  });
}

function spareOf({ name, needed }: ServiceNeed, { change, fits, held }: Priced): Spare {
  const released = new Set(change.release.map((r) => r.instance));
  const stays = held.reduce((sum, h) => (released.has(h.id) ? sum : sum + (h.units ?? 0)), 0);
  const comes = change.buy.reduce((sum, { pool, count }) => sum + count * fits(pool), 0);
  // A last instance may have room for more than is asked for.
  const largest = change.buy.reduce((most, { pool }) => Math.max(most, fits(pool)), 1);
  const wanted = stays + Math.max(0, comes - (largest - 1));
  const replicas = Math.min(Math.ceil(MOST_SPARE * needed), Math.max(0, wanted - needed));
  return { service: name, replicas };
}

function changeFor(
  need: ServiceNeed,
  stage: StageSpec,
  { snapshot, config, forecasts, footprint, buys }: Known & Acquiring,
): Priced {
  const pools = new Map<string, PoolView>();
  for (const view of snapshot.pools) {
    const isAllowed = buys?.(view.pool) !== false && brokenConstraint(stage.constraints, view.pool) === null;
    const units = isAllowed ? fitsOn(view.pool, stage) : 0;
    if (units > 0) pools.set(view.pool.id, { ...view, pool: inUnits(view.pool, units) });
  }
  const fits = (pool: Pool['id']): number => {
    const view = pools.get(pool);
    return view === undefined ? 0 : unitsIn(view.pool);
  };
  const held = heldBy(need.name, snapshot, (pool) => pools.get(pool.id)?.pool ?? inUnits(pool, 1));
  const context = contextOf({ need, nowMs: snapshot.nowMs, config, market: forecasts.market });
  return { change: footprint({ ...context, pools: [...pools.values()], held }), fits, held };
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
  demand: { utility: utilityOf(of.need), target: of.need.target },
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
const unitsIn = ({ type }: Pool): number => Math.round(Number(type.capacity.cpu) / 1000);

/** Instances on which the service's replicas run or start, without those that are being lost. */
function heldBy(name: string, snapshot: Snapshot, poolOf: (pool: Pool) => Pool): readonly HeldInstance[] {
  return [...snapshot.instances.values()].flatMap((view: InstanceView): HeldInstance[] => {
    const units = view.attempts.filter((r) => serviceOf(r.attempt.job, snapshot) === name).length;
    if (units === 0 || !takesTasks(view.instance)) return [];
    const { id, bid, launchedMs } = view.instance;
    return [{ id, bid, launchedMs, units, pool: poolOf(view.pool) }];
  });
}
