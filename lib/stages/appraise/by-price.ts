import type { GroupId } from '../../kernel/ids.ts';
import { seconds, usdPerHour } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { ConsideredOffer } from '../../domain/plan.ts';
import { usdPerHourOf, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { dominantShare, vector, type Resources } from '../../domain/resources.ts';
import { instanceParts, type PendingGroup } from '../../domain/snapshot.ts';
import { slowdownOn, slowsAnywhere } from '../../domain/slowdown.ts';
import { meanToDo } from '../../domain/work-to-do.ts';
import type { AppraiseContext, AppraisePolicy, GroupOffers } from '../../policy/contracts.ts';
import { isAboveOnDemand } from './pools.ts';

/** A pool that holds a task, at its price now. */
interface PricedPool {
  readonly view: PoolView;
  readonly bid: Bid;
  readonly usdPerHour: number;
  /** Dominant share of one task. */
  readonly share: number;
  /** Running time there over that where all soft constraints are met. */
  readonly slowdown: number;
}

interface PricedPools {
  /** Lowest price of an instance first. */
  readonly byPrice: readonly PricedPool[];
  readonly excluded: GroupOffers['excluded'];
}

/**
 * Baseline: pools by the price of an instance now, as a fleet request sees them; no forecast of risk, lateness or
 * prices. Pools whose instances take tasks are always among the offers. A fleet knows no soft
 * constraints: it does not choose by them, but a task takes as long as they say.
 * O(classes of need and constraints x pools log pools + groups x offers).
 */
export const appraiseByPrice: AppraisePolicy = (context) => byPriceAt(() => 'uncapped', context);

/** The same with bids at the on-demand price, for schedulers that pay no more (Stratus, section 3.2.3). */
export const appraiseByPriceAtOnDemand: AppraisePolicy = (context) =>
  byPriceAt(({ option, onDemandUsdPerHour }) => (option === 'spot' ? onDemandUsdPerHour : 'uncapped'), context);

function byPriceAt(bidOf: (pool: Pool) => Bid, context: AppraiseContext): ReturnType<AppraisePolicy> {
  const classes = new Map<string, PricedPools>();
  const result = new Map<GroupId, GroupOffers>();
  for (const group of context.snapshot.groups) {
    const { constraints, preferences } = group.stage;
    const soft = slowsAnywhere(preferences) ? JSON.stringify(preferences) : '';
    const key = `${vector(group.need).join(',')} ${JSON.stringify(constraints)} ${soft}`;
    let pools = classes.get(key);
    if (pools === undefined) classes.set(key, (pools = pricedPools(group, bidOf, context)));
    const offers = offersOf(group, pools, context);
    if (offers !== null) result.set(group.id, offers);
  }
  return result;
}

function pricedPools(
  { need, stage }: Pick<PendingGroup, 'need' | 'stage'>,
  bidOf: (pool: Pool) => Bid,
  { snapshot }: AppraiseContext,
): PricedPools {
  const held = instanceParts(snapshot).takingTasks;
  const excluded = new Map<string, number>();
  const priced = snapshot.pools.flatMap((view): PricedPool[] => {
    const why = exclusion(view, { need, stage, isHeld: held.has(view.pool.id) });
    if (why !== null) {
      excluded.set(why, (excluded.get(why) ?? 0) + 1);
      return [];
    }
    const { pool, quote } = view;
    const share = dominantShare(need, pool.type.capacity);
    const slowdown = slowdownOn(stage.preferences, pool);
    return [{ view, bid: bidOf(pool), usdPerHour: usdPerHourOf(pool, quote), share, slowdown }];
  });
  return {
    byPrice: priced.sort((a, b) => a.usdPerHour - b.usdPerHour || (a.view.pool.id < b.view.pool.id ? -1 : 1)),
    excluded: [...excluded].map(([constraint, pools]) => ({ constraint, pools })),
  };
}

function exclusion(
  view: PoolView,
  of: { readonly need: Resources; readonly stage: StageSpec; readonly isHeld: boolean },
): string | null {
  const broken = brokenConstraint(of.stage.constraints, view.pool);
  if (broken !== null) return broken;
  if (dominantShare(of.need, view.pool.type.capacity) > 1) return 'resources';
  if (of.isHeld) return null;
  if (view.quote === null) return 'no price';
  if (isAboveOnDemand(view)) return 'price above on-demand';
  return view.open ? null : 'closed';
}

function offersOf(
  group: PendingGroup,
  { byPrice, excluded }: PricedPools,
  { snapshot, forecasts, config }: AppraiseContext,
): GroupOffers | null {
  const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
  if (forecast === undefined) return null;
  const held = instanceParts(snapshot).takingTasks;
  const durationS = meanToDo(forecast.runtime, group);
  const isKept = (p: PricedPool, rank: number): boolean => rank < config.offersPerGroup || held.has(p.view.pool.id);
  const costUsd = (p: PricedPool): number => (p.share * p.usdPerHour * durationS * p.slowdown) / 3600;
  const offers = byPrice.filter(isKept).map((p): Offer => ({
    group: group.id,
    pool: p.view.pool.id,
    bid: p.bid,
    priceUsdPerHour: usdPerHour(p.usdPerHour),
    share: p.share,
    roomShare: p.share,
    newShare: p.share,
    startDelayS: seconds(config.startDelayMeanS),
    pInterrupted: 0,
    pLate: 0,
    expectedLostS: seconds(0),
    expectedDurationS: seconds(durationS * p.slowdown),
    expectedCostUsd: costUsd(p),
    ...(p.slowdown === 1 ? {} : { slowdown: p.slowdown }),
  }));
  return {
    offers,
    excluded,
    get considered() {
      return byPrice.slice(0, MOST_CONSIDERED).map((p, rank) => considered(p, { rank, costUsd: costUsd(p) }));
    },
  };
}

/** Pools that an explanation lists. */
const MOST_CONSIDERED = 12;

const considered = (
  { view, bid, usdPerHour: price }: PricedPool,
  { rank, costUsd }: { readonly rank: number; readonly costUsd: number },
): ConsideredOffer => ({
  pool: view.pool.id,
  bid,
  priceUsdPerHour: price,
  pInterrupted: 0,
  pLate: 0,
  expectedCostUsd: costUsd,
  verdict: rank === 0 ? 'best: lowest price now' : 'dearer now; risks are not considered',
});
