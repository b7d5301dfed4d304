/**
 * Baselines: AWS AutoScale as Tributary describes and implements it (sections 2.1.2 and 2.4.3). As many vCPUs as the
 * load needs, whatever their risk, at the on-demand price as bid; what is dearest now is given back as soon as less is
 * needed.
 */
import { compareText } from '../../kernel/compare.ts';
import { raw } from '../../kernel/units.ts';
import { onDemandUsdOf, usdPerHourOf, type Pool, type PoolView } from '../../domain/pool.ts';
import type { FootprintContext, FootprintPolicy, HeldInstance } from '../../policy/services/contracts.ts';
import { leastUnits, servingUnits, surplus, unitsHeld, unitsOf } from './units.ts';

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
    const has = unitsHeld(context.held);
    if (has >= needed) {
      const release = surplus(has - needed, dearestFirst(context), 'less is needed, and it is the dearest');
      return { buy: [], release };
    }
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

/** By the price of a vCPU now. */
function dearestFirst({ held, pools }: FootprintContext): readonly HeldInstance[] {
  const price = new Map(pools.map(({ pool, quote }) => [pool.id, usdPerHourOf(pool, quote)]));
  const usd = (of: HeldInstance): number =>
    (price.get(of.pool.id) ?? onDemandUsdOf(of.pool)) / Math.max(1, servingUnits(of));
  return held.toSorted((a, b) => usd(b) - usd(a) || compareText(a.id, b.id));
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
