import { hoursIn, most, raw, seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Offer } from '../../domain/forecast.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Pool } from '../../domain/pool.ts';
import { fits } from '../../domain/resources.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { AcquireInput, FurtherOffers, Leftover } from '../../policy/contracts.ts';

/** An offer that may be bought for a leftover, with its pool. */
export interface EligibleOffer {
  readonly offer: Offer;
  readonly pool: Pool;
}

/**
 * Offers as good for a leftover as the plan's choice: no spot if the plan chose non-interruptible capacity, and no
 * higher P(late) than allowed (or than the chosen one's, if none was within the allowed). The plan's own offer is
 * always among them, last. Offers of pools that are closed or have lost their price are left out.
 */
export function eligibleOffers(
  leftover: Leftover,
  input: AcquireInput,
  pools: ReadonlyMap<string, Pool>,
): readonly EligibleOffer[] {
  const chosen = leftover.option.offer;
  const offers = (input.offers.get(leftover.group.id)?.offers ?? []).filter((o) => !sameOffer(o, chosen));
  return eligible([...offers, chosen], leftover, { input, pools });
}

/** Further offers that are as good (contracts.ts). */
export const furtherOffers = (
  which: keyof FurtherOffers,
  leftover: Leftover,
  { input, pools }: Eligibility,
): readonly EligibleOffer[] =>
  eligible(input.offers.get(leftover.group.id)?.further?.[which]() ?? [], leftover, { input, pools });

interface Eligibility {
  readonly input: AcquireInput;
  readonly pools: ReadonlyMap<string, Pool>;
}

function eligible(
  offers: readonly Offer[],
  { option: { offer: chosen } }: Leftover,
  { input, pools }: Eligibility,
): readonly EligibleOffer[] {
  const allowedLate = Math.max(input.config.maxLateProbability, chosen.pLate);
  const spotAllowed = pools.get(chosen.pool)?.option === 'spot';
  return offers.flatMap((offer) => {
    const pool = pools.get(offer.pool);
    if (pool === undefined || (pool.option === 'spot' && !spotAllowed) || offer.pLate > allowedLate) return [];
    return [{ offer, pool }];
  });
}

const sameOffer = (a: Offer, b: Offer): boolean => a.pool === b.pool && a.bid === b.bid;

/** True for a group whose tasks fit on an instance of the pool and may run there. */
export const mayUse =
  (pool: Pool) =>
  ({ need, stage }: Pick<PendingGroup, 'need' | 'stage'>): boolean =>
    fits(need, pool.type.capacity) && brokenConstraint(stage.constraints, pool) === null;

/** Pools open for purchases, by id. */
export const openPools = (input: AcquireInput): ReadonlyMap<string, Pool> =>
  new Map(input.snapshot.pools.filter((v) => v.open && v.quote !== null).map((v) => [v.pool.id, v.pool]));

/**
 * US dollars per instance-hour that a task pays for useful work: expected cost, preferences taken off, over its share
 * and running time.
 */
export function effectiveUsdPerHour(offer: Offer, leftover: Leftover, config: SchedulerConfig): number {
  const hours = hoursIn(most(leftover.runtimeS, seconds(1)));
  const net = offer.expectedCostUsd - (offer.preferenceUsd ?? 0);
  // Start-up is paid once per instance, so it weighs most for short work.
  const startUp = (raw(offer.priceUsdPerHour) * config.startDelayMeanS) / 3600 / hours;
  return Math.max(net / (offer.newShare * hours) + startUp, 1e-6);
}
