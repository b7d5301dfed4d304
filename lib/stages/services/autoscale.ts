/**
 * Baselines: AWS AutoScale as Tributary describes and implements it (sections 2.1.2 and 2.4.3). As many vCPUs as the
 * load needs, whatever their risk, at the on-demand price as bid; what is dearest now is given back as soon as less is
 * needed.
 */
import { compareText } from '../../kernel/compare.ts';
import { raw } from '../../kernel/units.ts';
import { onDemandUsdOf, type Pool, type PoolView } from '../../domain/pool.ts';
import type { FootprintContext, FootprintPolicy, HeldInstance } from '../../policy/services/contracts.ts';
import { leastUnits, unitsOf } from './units.ts';

/** Pools of a purchase of so many vCPUs, one name for each instance. */
type Chooser = (missing: number, offers: readonly Offered[], context: FootprintContext) => readonly Offered[];

interface Offered {
  readonly pool: Pool;
  /** US dollars per hour of a vCPU. */
  readonly usd: number;
}

/** O(pools + instances x log instances). */
const autoscale =
  (option: 'spot' | 'on-demand', choose: Chooser): FootprintPolicy =>
  (context) => {
    const needed = leastUnits(context.demand.utility, 1) ?? 0;
    const has = context.held.reduce((sum, { pool }) => sum + unitsOf(pool), 0);
    if (has >= needed) return { buy: [], release: surplus(has - needed, context) };
    const offers = context.pools.flatMap((view) => offered(view, option)).sort(byPrice);
    const chosen = Map.groupBy(choose(needed - has, offers, context), ({ pool }) => pool);
    const buy = [...chosen].map(([pool, of]) => ({
      pool: pool.id,
      bid: option === 'spot' ? pool.onDemandUsdPerHour : ('uncapped' as const),
      count: of.length,
      reason: `${needed - has} vCPUs are missing`,
    }));
    return { buy, release: [] };
  };

function offered({ pool, quote, open }: PoolView, option: 'spot' | 'on-demand'): readonly Offered[] {
  const units = unitsOf(pool);
  if (pool.option !== option || !open || quote === null || units < 1) return [];
  return option === 'spot' && raw(quote) >= onDemandUsdOf(pool) ? [] : [{ pool, usd: raw(quote) / units }];
}

const byPrice = (a: Offered, b: Offered): number => a.usd - b.usd || compareText(a.pool.id, b.pool.id);

/** The dearest per vCPU, as far as they are too many. */
function surplus(tooMany: number, { held, pools }: FootprintContext): ReturnType<FootprintPolicy>['release'] {
  const price = new Map(pools.map(({ pool, quote }) => [pool.id, raw(quote ?? pool.onDemandUsdPerHour)]));
  const usd = ({ pool }: HeldInstance): number => (price.get(pool.id) ?? onDemandUsdOf(pool)) / unitsOf(pool);
  let left = tooMany;
  return held
    .toSorted((a, b) => usd(b) - usd(a) || compareText(a.id, b.id))
    .flatMap(({ id, pool }) => {
      if (unitsOf(pool) > left) return [];
      left -= unitsOf(pool);
      return [{ instance: id, reason: 'less is needed, and it is the dearest' }];
    });
}

const cheapest: Chooser = (missing, [first]) =>
  first === undefined ? [] : new Array<Offered>(Math.ceil(missing / unitsOf(first.pool))).fill(first);

/** Instances one by one, each in the pool with the fewest, the cheapest of those. */
const evenly: Chooser = (missing, offers, { held }) => {
  const counts = new Map(offers.map(({ pool }) => [pool.id, 0]));
  for (const { pool } of held) counts.set(pool.id, (counts.get(pool.id) ?? 0) + 1);
  const chosen: Offered[] = [];
  for (let left = missing; left > 0 && offers.length > 0;) {
    const next = offers.reduce((fewest, of) =>
      (counts.get(of.pool.id) ?? 0) < (counts.get(fewest.pool.id) ?? 0) ? of : fewest,
    );
    counts.set(next.pool.id, (counts.get(next.pool.id) ?? 0) + 1);
    chosen.push(next);
    left -= unitsOf(next.pool);
  }
  return chosen;
};

/** The pool with the lowest price per vCPU (the strategy lowestPrice). */
export const autoscaleLowest = autoscale('spot', cheapest);
/** As many instances from each pool (the strategy diversified). */
export const autoscaleDiversified = autoscale('spot', evenly);
export const onDemandAutoscale = autoscale('on-demand', cheapest);

/** More than what the load needs, by this share (AutoScale+Buffer of section 2.4.3: 0.5 asks for 15 instead of 10). */
export const withBuffer =
  (policy: FootprintPolicy, share: number): FootprintPolicy =>
  (context) => {
    const { utility } = context.demand;
    return policy({ ...context, demand: { ...context.demand, utility: (vcpus) => utility(vcpus / (1 + share)) } });
  };
