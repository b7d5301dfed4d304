import { hoursIn, most, raw, seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Offer } from '../../domain/forecast.ts';
import { vcpusOf, type Pool } from '../../domain/pool.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';

/** An offer that a leftover may be bought on, with its pool. */
export interface EligibleOffer {
  readonly offer: Offer;
  readonly pool: Pool;
}

/**
 * Offers that serve a leftover as well as the one its plan chose: not spot where the plan chose capacity that stays,
 * and not late with a higher probability than allowed (or than the chosen one, where nothing was within the allowed).
 * The plan's own offer is always among them, last. Offers of pools that are closed or have no price any more are left
 * out.
 */
export function eligibleOffers(
  leftover: Leftover,
  input: AcquireInput,
  pools: ReadonlyMap<string, Pool>,
): readonly EligibleOffer[] {
  const chosen = leftover.option.offer;
  const allowedLate = Math.max(input.config.maxLateProbability, chosen.pLate);
  const spotAllowed = pools.get(chosen.pool)?.option === 'spot';
  const offers = [...(input.offers.get(leftover.group.id)?.offers ?? [])].filter((o) => !sameOffer(o, chosen));
  return [...offers, chosen].flatMap((offer) => {
    const pool = pools.get(offer.pool);
    if (pool === undefined || (pool.option === 'spot' && !spotAllowed) || offer.pLate > allowedLate) return [];
    return [{ offer, pool }];
  });
}

const sameOffer = (a: Offer, b: Offer): boolean => a.pool === b.pool && a.bid === b.bid;

/** Pools that can be bought from now, by id. */
export const openPools = (input: AcquireInput): ReadonlyMap<string, Pool> =>
  new Map(input.snapshot.pools.filter((v) => v.open && v.quote !== null).map((v) => [v.pool.id, v.pool]));

/** vCPUs that may still be bought: the limit less all live instances, those still starting included. */
export function vcpusLeft(input: AcquireInput): number {
  let left = input.snapshot.limits.vcpus;
  for (const { pool } of input.snapshot.instances.values()) left -= vcpusOf(pool);
  return left;
}

/**
 * US dollars per instance-hour that a task pays for useful work: expected cost, preferences taken off, over its share
 * and running time.
 */
export function effectiveUsdPerHour(offer: Offer, leftover: Leftover, config: SchedulerConfig): number {
  const hours = hoursIn(most(leftover.runtimeS, seconds(1)));
  const net = offer.expectedCostUsd - (offer.preferenceUsd ?? 0);
  // Start-up is paid once per instance whatever runs on it: it weighs most where the work is short.
  const startUp = (raw(offer.priceUsdPerHour) * config.startDelayMeanS) / 3600 / hours;
  return Math.max(net / (offer.chargedShare * hours) + startUp, 1e-6);
}
