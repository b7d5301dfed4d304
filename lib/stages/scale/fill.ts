import { compareText } from '../../kernel/compare.ts';
import { descending } from '../../kernel/units.ts';
import type { Purchase } from '../../domain/plan.ts';
import { fits, minusResources, type Resources, countFits, times } from '../../domain/resources.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { eligibleOffers, openPools, type EligibleOffer } from './eligible.ts';
import { capUsd, vcpusOf, rateText } from '../../domain/pool.ts';

/**
 * Common part of the baselines: each leftover goes to the offer that `prefers` ranks first (0 = as given), and the last
 * instance bought there is filled before the next; running times do not matter. Leftovers in descending runtime, then
 * by id. Stops at the vCPU limit; gangs are bought whole or not at all. O(leftovers x offers).
 */
export function fillInOrder(
  input: AcquireInput,
  prefers: (a: EligibleOffer, b: EligibleOffer) => number,
  allows: (offer: EligibleOffer) => boolean,
): readonly Purchase[] {
  const pools = openPools(input);
  let vcpus = vcpusLeft(input.snapshot);
  const lots = new Map<string, { offer: EligibleOffer; count: number; tasks: number; free: Resources | null }>();
  for (const leftover of [...input.leftovers].sort(byRuntime)) {
    const offers = [...eligibleOffers(leftover, input, pools)]
      .filter(allows)
      .sort((a, b) => prefers(a, b) || byName(a, b));
    const offer = offers[0];
    if (offer === undefined) continue;
    const key = `${offer.pool.id} ${capUsd(offer.offer.bid)}`;
    const lot = lots.get(key) ?? { offer, count: 0, tasks: 0, free: null };
    const { need } = leftover.group;
    const inLast = lot.free === null ? 0 : Math.min(leftover.count, countFits(need, lot.free));
    const perInstance = countFits(need, offer.pool.type.capacity);
    if (perInstance === 0) continue;
    const affordable = Math.max(0, Math.floor((vcpus + 1e-9) / vcpusOf(offer.pool)));
    const count = Math.min(affordable, Math.ceil((leftover.count - inLast) / perInstance));
    const placed = Math.min(leftover.count, inLast + count * perInstance);
    if (placed === 0 || (leftover.group.stage.gang && placed < leftover.count)) continue;
    vcpus -= count * vcpusOf(offer.pool);
    const onNewest = count === 0 ? inLast : placed - inLast - (count - 1) * perInstance;
    const newest = count === 0 ? lot.free : offer.pool.type.capacity;
    const load = times(need, onNewest);
    lot.free = newest !== null && fits(load, newest) ? minusResources(newest, load) : null;
    lot.count += count;
    lot.tasks += placed;
    lots.set(key, lot);
  }
  return [...lots.values()]
    .filter((lot) => lot.count > 0)
    .sort((a, b) => byName(a.offer, b.offer))
    .map(({ offer, count, tasks }) => ({
      pool: offer.pool.id,
      bid: offer.offer.bid,
      count,
      reason: `room for ${tasks} task(s) at ${rateText(offer.offer.priceUsdPerHour)} USD per instance-hour`,
    }));
}

const byRuntime = (a: Leftover, b: Leftover): number =>
  descending(a.runtimeS, b.runtimeS) || compareText(a.group.id, b.group.id);

const byName = (a: EligibleOffer, b: EligibleOffer): number =>
  compareText(a.pool.id, b.pool.id) || capUsd(b.offer.bid) - capUsd(a.offer.bid) || 0;
